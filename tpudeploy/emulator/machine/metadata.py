"""The metadata server of a node: what a Compute Engine VM finds at metadata.google.internal.

Texts of refusals are from memory of the real server, not recorded from a TPU VM.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Mapping

from tpudeploy.emulator.machine.node import Node
from tpudeploy.emulator.machine.unsupported import Unsupported
from tpudeploy.emulator.machine.web import Request, Response, as_json, text

PREFIX = "/computeMetadata/v1/"
ATTRIBUTES = "instance/attributes"
GUEST = "instance/guest-attributes/"
MAX_GUEST_VALUE_BYTES = 262_144
PARAMETERS = frozenset(("last_etag", "recursive", "timeout_sec", "wait_for_change"))
FLAVOR = {"Metadata-Flavor": "Google"}


def project_number(node: Node) -> str:
    return f"{100_000_000_000 + zlib.crc32(node.facts.project.encode())}"


def attributes(node: Node) -> Mapping[str, str]:
    own = {"accelerator-type": node.facts.accelerator_type, "agent-worker-number": str(node.facts.worker)}
    return own | dict(node.metadata())


def token(node: Node) -> str:
    return json.dumps({"access_token": node.token, "expires_in": 3599, "token_type": "Bearer"})


VALUES: Mapping[str, Callable[[Node], str]] = {
    "instance/hostname": lambda n: f"{n.instance}.{n.facts.zone}.c.{n.facts.project}.internal",
    "instance/id": lambda n: f"{10**18 + n.number}",
    "instance/name": lambda n: n.instance,
    "instance/preempted": lambda n: "FALSE",  # noqa: ARG005 - one signature for the table; a preempted node is killed
    "instance/service-accounts/default/email": lambda n: f"{project_number(n)}-compute@developer.gserviceaccount.com",
    "instance/service-accounts/default/scopes": lambda n: "https://www.googleapis.com/auth/cloud-platform\n",  # noqa: ARG005 - one signature
    "instance/service-accounts/default/token": token,
    "instance/zone": lambda n: f"projects/{project_number(n)}/zones/{n.facts.zone}",
    "project/numeric-project-id": project_number,
    "project/project-id": lambda n: n.facts.project,
}


def answer(node: Node, request: Request) -> Response:
    """Raise ConnectionRefusedError while the scenario has it away."""
    if not node.has_metadata_server:
        raise ConnectionRefusedError("the metadata server is away")
    if request.headers.get("metadata-flavor") != "Google":
        return text("Missing Metadata-Flavor:Google header.\n", 403)
    path = request.path.removeprefix(PREFIX).rstrip("/")
    if path.startswith(GUEST):
        return _guest(node, path.removeprefix(GUEST), request)
    if request.method not in {"GET", "HEAD"}:
        return text("Method not allowed.\n", 405)
    unknown = request.query.keys() - PARAMETERS
    if unknown:
        raise Unsupported(f"the parameter `{min(unknown)}` of the metadata server")
    if request.query.get("wait_for_change") == "true":
        _await_change(node, path, request)
    return _tagged(_read(node, path, request.query))


def _read(node: Node, path: str, query: Mapping[str, str]) -> Response:
    if path in VALUES:
        return text(VALUES[path](node))
    if path == ATTRIBUTES:
        listed = attributes(node)
        recursive = query.get("recursive", "").lower() == "true"
        return as_json(dict(listed)) if recursive else text("".join(f"{key}\n" for key in sorted(listed)))
    value = attributes(node).get(path.removeprefix(ATTRIBUTES + "/")) if path.startswith(ATTRIBUTES) else None
    return text("Not Found\n", 404) if value is None else text(value)


def _tagged(response: Response) -> Response:
    etag = f"{zlib.crc32(response.body):016x}"
    return Response(status=response.status, body=response.body, headers={**response.headers, **FLAVOR, "ETag": etag})


def _await_change(node: Node, path: str, request: Request) -> None:
    def etag() -> str:
        return _tagged(_read(node, path, request.query)).headers["ETag"]

    known = request.query.get("last_etag") or etag()
    wait = float(request.query.get("timeout_sec", math.inf))
    node.sleepers.wait(min(wait, request.patience), woken=lambda: not node.has_metadata_server or etag() != known)
    if not node.has_metadata_server:
        raise ConnectionResetError("the metadata server went away")
    if request.patience < wait and etag() == known:
        raise TimeoutError


def _guest(node: Node, name: str, request: Request) -> Response:
    if not node.behaviour.guest_attributes:
        return text("Guest attributes endpoint access is disabled.\n", 403)
    if name.count("/") != 1 or name.startswith("/") or name.endswith("/"):
        return text("A guest attribute is NAMESPACE/KEY.\n", 400)
    match request.method:
        case "PUT" if len(request.body) > MAX_GUEST_VALUE_BYTES:
            return text("The value is too long.\n", 400)
        case "PUT":
            node.guest_attributes.write(name, request.body.decode("utf-8", "replace"))
            return text("")
        case "DELETE":
            node.guest_attributes.remove(name)
            return text("")
        case "GET" | "HEAD":
            value = node.guest_attributes.read().get(name)
        case _:
            return text("Method not allowed.\n", 405)
    return text("Not Found\n", 404) if value is None else text(value)
