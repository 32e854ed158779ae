"""The body of an upload: bytes alone (`media`), or a resource and bytes as two MIME parts (`multipart`)."""

from __future__ import annotations

import json
from collections.abc import Mapping
from dataclasses import dataclass
from email.parser import BytesParser
from email.policy import HTTP
from typing import Any

from tpudeploy.emulator import discovery, wire
from tpudeploy.emulator.storage.answers import Refused
from tpudeploy.emulator.storage.crc32c import crc32c

_MOST_METADATA = 8 << 10  # bytes of custom metadata an object may have


@dataclass(frozen=True, slots=True, kw_only=True)
class Upload:
    """What is to be stored under which name."""

    name: str
    content: bytes
    content_type: str
    metadata: Mapping[str, str]


def read(query: Mapping[str, str], body: bytes) -> Upload:
    """Raise Refused for what the service does not take, and for a resumable upload, which is not emulated."""
    match query.get("uploadType"):
        case "media":
            resource: Mapping[str, Any] = {}
            content_type, content = "application/octet-stream", body
        case "multipart":
            resource, content_type, content = _parts(body)
        case other:
            raise Refused(501, f"The emulator serves no upload of the type `{other}`.")
    name = query.get("name") or resource.get("name", "")
    if not name:
        raise Refused(400, "Required object name.")  # UNVERIFIED
    stated = resource.get("crc32c")
    if stated is not None and stated != crc32c(content):
        raise Refused(400, f'Provided CRC32C "{stated}" doesn\'t match calculated CRC32C.')  # UNVERIFIED
    metadata: Mapping[str, str] = resource.get("metadata", {})
    if sum(len(word.encode()) for pair in metadata.items() for word in pair) > _MOST_METADATA:
        raise Refused(400, "The metadata of an object may have 8 KiB.")  # UNVERIFIED
    stored_type = resource.get("contentType", content_type)
    return Upload(name=name, content=content, content_type=stored_type, metadata=metadata)


def named(query: Mapping[str, str], body: bytes) -> str:
    """The object's name as far as it can be told, for trouble that strikes by name."""
    try:
        return read(query, body).name
    except Refused:
        return ""


def _parts(body: bytes) -> tuple[Mapping[str, Any], str, bytes]:
    """The resource, and the media with its type. The boundary is the first line: no header is needed to know it."""
    boundary = body.partition(b"\r\n")[0].removeprefix(b"--").decode(errors="replace")
    head = f'Content-Type: multipart/related; boundary="{boundary}"\r\n\r\n'.encode()
    parts = list(BytesParser(policy=HTTP).parsebytes(head + body).iter_parts())
    try:
        first, second = parts
        resource = json.loads(_bytes(first))
        return (
            discovery.accept(resource, "Object", "storage.v1", at="object"),
            second.get_content_type(),
            _bytes(second),
        )
    except ValueError as cause:
        raise Refused(400, f"Multipart body is malformed: {cause}") from cause
    except wire.Refusal as refusal:
        raise Refused(refusal.status.http, refusal.status.message) from refusal


def _bytes(part: Any) -> bytes:
    content = part.get_payload(decode=True)
    return content if isinstance(content, bytes) else b""
