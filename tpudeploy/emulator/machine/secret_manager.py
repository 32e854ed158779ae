"""The one call of Secret Manager that a node makes: versions.access, with the token of its own service account."""

from __future__ import annotations

import base64
import re

from tpudeploy.emulator.machine.node import Node
from tpudeploy.emulator.machine.web import Request, Response, as_json

ACCESS = re.compile(r"/v1/(projects/[^/]+/secrets/[^/]+/versions/[^/:]+):access")
STATUS = {
    400: "INVALID_ARGUMENT",
    401: "UNAUTHENTICATED",
    403: "PERMISSION_DENIED",
    404: "NOT_FOUND",
    429: "RESOURCE_EXHAUSTED",
    500: "INTERNAL",
    503: "UNAVAILABLE",
}
CASTAGNOLI = 0x82F63B78
NO_TOKEN = "Request had invalid authentication credentials. Expected OAuth 2 access token."  # noqa: S105 - the text of a refusal


def answer(node: Node, request: Request) -> Response:
    found = ACCESS.fullmatch(request.path)
    if not found or request.method != "GET":
        return error(404, "Method not found.")
    if request.headers.get("authorization") != f"Bearer {node.token}":
        return error(401, NO_TOKEN)
    status, words = node.facts.secret(found[1])
    if status != 200:  # noqa: PLR2004 - HTTP's word for yes
        return error(status, words)
    payload = {"data": base64.b64encode(words.encode()).decode(), "dataCrc32c": str(crc32c(words.encode()))}
    return as_json({"name": re.sub(r"/latest$", "/1", found[1]), "payload": payload})


def error(status: int, words: str) -> Response:
    body = {"code": status, "message": words, "status": STATUS.get(status, "UNKNOWN")}
    return as_json({"error": body}, status)


def crc32c(octets: bytes) -> int:
    """The checksum that Secret Manager sends beside a value (RFC 3720, appendix B.4)."""
    remainder = 0xFFFFFFFF
    for octet in octets:
        remainder ^= octet
        for _ in range(8):
            remainder = (remainder >> 1) ^ (CASTAGNOLI * (remainder & 1))
    return remainder ^ 0xFFFFFFFF
