"""Cloud Storage as a node reaches it: with the token of its own service account, in the time the scenario says."""

from __future__ import annotations

from urllib.parse import quote, urlencode

from tpudeploy.emulator.machine.node import Node
from tpudeploy.emulator.machine.web import Request, Response, as_json

_NO_TOKEN = "Anonymous caller does not have storage.objects access to the Google Cloud Storage object."  # noqa: S105 - the text of a refusal


def answer(node: Node, request: Request) -> Response:
    if request.headers.get("authorization") != f"Bearer {node.token}":
        return as_json({"error": {"code": 401, "message": _NO_TOKEN}}, 401)
    if request.path.startswith("/upload/") or request.query.get("alt") == "media":
        node.pause(min(node.behaviour.bucket, request.patience))
        if node.behaviour.bucket > request.patience:
            raise TimeoutError
    target = quote(request.path, safe="/%") + (f"?{urlencode(request.query)}" if request.query else "")
    return node.facts.storage(request.method, target, request.body)
