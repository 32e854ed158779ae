"""All that a node's curl can reach: five of Google's hosts and the node itself. There is no other network.

Secret Manager and Cloud Storage take the token of the node's own service account.
"""

from __future__ import annotations

import base64
import http.client
import re
from collections.abc import Callable, Mapping
from functools import partial
from urllib.parse import SplitResult

from tpudeploy.emulator.http_server import HttpRequest, Reply
from tpudeploy.emulator.machine import metadata
from tpudeploy.emulator.machine.metadata import json_reply
from tpudeploy.emulator.machine.node import NodeMachine
from tpudeploy.emulator.storage_objects import crc32c

LOOPBACK = frozenset(("127.0.0.1", "localhost", "0.0.0.0"))  # noqa: S104 - names that a script may ask for
MAX_WAIT = 300.0  # real seconds that a server may take to answer
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
NO_TOKEN = "Request had invalid authentication credentials. Expected OAuth 2 access token."  # noqa: S105 - the text of a refusal
ANONYMOUS = "Anonymous caller does not have storage.objects access to the Google Cloud Storage object."


class UnknownHost(Exception):
    """The name does not exist in this world."""


def exchange(node: NodeMachine, url: SplitResult, request: HttpRequest) -> Reply:
    """Return the reply of a host. Raise UnknownHost, ConnectionError or TimeoutError."""
    scheme, host = url.scheme, url.hostname or ""
    if (scheme, host) in HOSTS:
        return HOSTS[scheme, host](node, request)
    port = url.port or 80
    if host in {*LOOPBACK, node.addresses.address, node.instance}:
        return _ask_server(node.listening(port), port, request)
    if host in node.facts.workers():
        return _ask_server(node.facts.listening(host, port), port, request)
    raise UnknownHost(host)


def _ask_server(place: tuple[str, int] | None, port: int, request: HttpRequest) -> Reply:
    """Return the reply of a server of the node, or of another host of its slice."""
    if place is None:
        raise ConnectionRefusedError(port)
    wire = http.client.HTTPConnection(*place, timeout=min(request.patience, MAX_WAIT))
    try:
        wire.request(request.method, request.target, request.body or None, dict(request.headers))
        response = wire.getresponse()
        headers = dict(response.getheaders())
        content_type = headers.pop("Content-Type", "")
        return Reply(http=response.status, body=response.read(), content_type=content_type, headers=headers)
    except http.client.HTTPException as broken:
        raise ConnectionResetError(str(broken)) from broken
    finally:
        wire.close()


def _access_secret(node: NodeMachine, request: HttpRequest) -> Reply:
    """Answer versions.access, the one call of Secret Manager that a node makes."""
    match = ACCESS.fullmatch(request.path)
    if not match or request.method != "GET":
        return _error(404, "Method not found.")
    if request.headers.get("authorization") != f"Bearer {node.token}":
        return _error(401, NO_TOKEN)
    status, value = node.facts.secret(match[1])
    if status != 200:  # noqa: PLR2004 - HTTP's word for yes
        return _error(status, value)
    payload = {"data": base64.b64encode(value.encode()).decode(), "dataCrc32c": str(crc32c(value.encode()))}
    return json_reply({"name": re.sub(r"/latest$", "/1", match[1]), "payload": payload})


def _error(status: int, message: str) -> Reply:
    body = {"code": status, "message": message, "status": STATUS.get(status, "UNKNOWN")}
    return json_reply({"error": body}, status)


def _call_storage(node: NodeMachine, request: HttpRequest) -> Reply:
    """Answer a call of Cloud Storage, in the time that the scenario says."""
    if request.headers.get("authorization") != f"Bearer {node.token}":
        return json_reply({"error": {"code": 401, "message": ANONYMOUS}}, 401)
    if request.path.startswith("/upload/") or request.query.get("alt") == "media":
        node.pause(min(node.behaviour.bucket, request.patience))
        if node.behaviour.bucket > request.patience:
            raise TimeoutError
    return node.facts.storage(request.method, request.target, request.body)


def _call_api(host: str, node: NodeMachine, request: HttpRequest) -> Reply:
    """Answer a call of the API that the machine's request was made at."""
    if request.headers.get("authorization") != f"Bearer {node.token}":
        return _error(401, NO_TOKEN)
    reply = node.facts.google(request.method, host, request.target)
    return json_reply(reply.body, reply.http)


HOSTS: Mapping[tuple[str, str], Callable[[NodeMachine, HttpRequest], Reply]] = {
    ("http", "169.254.169.254"): metadata.answer,
    ("http", "metadata"): metadata.answer,
    ("http", "metadata.google.internal"): metadata.answer,
    ("https", "secretmanager.googleapis.com"): _access_secret,
    ("https", "storage.googleapis.com"): _call_storage,
    **{("https", host): partial(_call_api, host) for host in ("tpu.googleapis.com", "compute.googleapis.com")},
}
