"""All that a node's curl can reach: three of Google's hosts and the node itself. There is no other network."""

from __future__ import annotations

import http.client
from collections.abc import Callable, Mapping
from urllib.parse import SplitResult, urlencode

from tpudeploy.emulator.machine import cloud_storage, metadata, secret_manager
from tpudeploy.emulator.machine.node import Node
from tpudeploy.emulator.machine.web import Request, Response

LOOPBACK = frozenset(("127.0.0.1", "localhost", "0.0.0.0"))  # noqa: S104 - names that a script may ask for


LONGEST = 300.0  # real seconds that a server may take to answer


class UnknownHost(Exception):
    """No such name in this world."""


HOSTS: Mapping[tuple[str, str], Callable[[Node, Request], Response]] = {
    ("http", "169.254.169.254"): metadata.answer,
    ("http", "metadata"): metadata.answer,
    ("http", "metadata.google.internal"): metadata.answer,
    ("https", "secretmanager.googleapis.com"): secret_manager.answer,
    ("https", "storage.googleapis.com"): cloud_storage.answer,
}


def exchange(node: Node, url: SplitResult, request: Request) -> Response:
    """Raise UnknownHost, ConnectionError or TimeoutError."""
    scheme, host = url.scheme, url.hostname or ""
    if (scheme, host) in HOSTS:
        return HOSTS[scheme, host](node, request)
    if host in {*LOOPBACK, node.addresses.address, node.instance}:
        return _own(node, url.port or 80, request)
    raise UnknownHost(host)


def _own(node: Node, port: int, request: Request) -> Response:
    place = node.daemon.listening(port)
    if place is None:
        raise ConnectionRefusedError(port)
    target = request.path + (f"?{urlencode(request.query)}" if request.query else "")
    wire = http.client.HTTPConnection(*place, timeout=min(request.patience, LONGEST))
    try:
        wire.request(request.method, target, request.body or None, dict(request.headers))
        answer = wire.getresponse()
        return Response(status=answer.status, body=answer.read(), headers=dict(answer.getheaders()))
    except http.client.HTTPException as broken:
        raise ConnectionResetError(str(broken)) from broken
    finally:
        wire.close()
