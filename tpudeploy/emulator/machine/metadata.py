"""The metadata server of a node: what a Compute Engine VM finds at metadata.google.internal.

Texts of refusals are from memory of the real server, not recorded from a TPU VM.
"""

from __future__ import annotations

import json
import math
import zlib
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace

from tpudeploy.emulator.http_server import HttpRequest, Reply
from tpudeploy.emulator.machine import Unsupported
from tpudeploy.emulator.machine.node import NodeMachine

PREFIX = "/computeMetadata/v1/"
ATTRIBUTES = "instance/attributes"
GUEST = "instance/guest-attributes/"
MAX_GUEST_VALUE_BYTES = 262_144
PARAMETERS = frozenset(("last_etag", "recursive", "timeout_sec", "wait_for_change"))
SCOPE = "https://www.googleapis.com/auth/cloud-platform"
ACCOUNTS = "instance/service-accounts/"


def text_reply(text: str, status: int = 200) -> Reply:
    return Reply(http=status, body=text.encode(), content_type="application/text")


def json_reply(tree: object, status: int = 200) -> Reply:
    return Reply(http=status, body=json.dumps(tree, ensure_ascii=False).encode(), content_type="application/json")


def _scopes(node: NodeMachine) -> Sequence[str]:
    return (SCOPE,) if node.facts.plain_image is None else node.facts.plain_image.scopes


VALUES: Mapping[str, Callable[[NodeMachine], str]] = {
    "instance/hostname": lambda n: f"{n.instance}.{n.facts.zone}.c.{n.facts.project}.internal",
    "instance/id": lambda n: f"{10**18 + n.number}",
    "instance/name": lambda n: n.instance,
    "instance/preempted": lambda n: "TRUE" if n.is_preempted else "FALSE",
    "instance/service-accounts/default/email": lambda n: n.facts.service_account,
    "instance/service-accounts/default/scopes": lambda n: "".join(f"{scope}\n" for scope in _scopes(n)),
    "instance/service-accounts/default/token": lambda n: json.dumps(
        {"access_token": n.token, "expires_in": 3599, "token_type": "Bearer"}
    ),
    "instance/zone": lambda n: f"projects/{n.facts.project_number}/zones/{n.facts.zone}",
    "project/numeric-project-id": lambda n: n.facts.project_number,
    "project/project-id": lambda n: n.facts.project,
}


def answer(node: NodeMachine, request: HttpRequest) -> Reply:
    """Answer one request. Raise ConnectionRefusedError while the scenario has the metadata server down."""
    if not node.has_metadata_server:
        raise ConnectionRefusedError("the metadata server is away")
    if request.headers.get("metadata-flavor") != "Google":
        return text_reply("Missing Metadata-Flavor:Google header.\n", 403)
    path = request.path.removeprefix(PREFIX).rstrip("/")
    if path.startswith(GUEST):
        return _answer_guest_attribute(node, path.removeprefix(GUEST), request)
    if request.method not in {"GET", "HEAD"}:
        return text_reply("Method not allowed.\n", 405)
    query = request.query
    unknown = query.keys() - PARAMETERS
    if unknown:
        raise Unsupported(f"the parameter `{min(unknown)}` of the metadata server")
    if query.get("wait_for_change") == "true":
        _await_change(node, path, query, request.patience)
    return _read(node, path, query)


def _read(node: NodeMachine, path: str, query: Mapping[str, str]) -> Reply:
    reply = text_reply("Not Found\n", 404)
    plain_image = node.facts.plain_image
    has_account = plain_image is None or bool(plain_image.scopes)
    if path in VALUES and (has_account or not path.startswith(ACCOUNTS)):
        reply = text_reply(VALUES[path](node))
    elif path.startswith(ATTRIBUTES):
        of_tpu = {
            "accelerator-type": node.facts.accelerator_type,
            "agent-worker-number": str(node.facts.worker),
            "worker-network-endpoints": ",".join(f"unknown:unknown:{address}" for address in node.facts.workers()),
        }
        attributes = (of_tpu if plain_image is None else {}) | dict(node.metadata())
        name = path.removeprefix(ATTRIBUTES + "/")
        if path == ATTRIBUTES and query.get("recursive", "").lower() == "true":
            reply = json_reply(attributes)
        elif path == ATTRIBUTES:
            reply = text_reply("".join(f"{key}\n" for key in sorted(attributes)))
        elif name in attributes:
            reply = text_reply(attributes[name])
    etag = f"{zlib.crc32(reply.payload()):016x}"
    return replace(reply, headers={"Metadata-Flavor": "Google", "ETag": etag})


def _await_change(node: NodeMachine, path: str, query: Mapping[str, str], patience: float) -> None:
    def etag() -> str:
        return _read(node, path, query).headers["ETag"]

    previous = query.get("last_etag") or etag()
    wait = float(query.get("timeout_sec", math.inf))
    node.sleepers.wait(min(wait, patience), woken=lambda: not node.has_metadata_server or etag() != previous)
    if not node.has_metadata_server:
        raise ConnectionResetError("the metadata server went away")
    if patience < wait and etag() == previous:
        raise TimeoutError


def _answer_guest_attribute(node: NodeMachine, name: str, request: HttpRequest) -> Reply:
    if not (node.behaviour.guest_attributes and node.facts.enables_guest_attributes):
        return text_reply("Guest attributes endpoint access is disabled.\n", 403)
    if name.count("/") != 1 or name.startswith("/") or name.endswith("/"):
        return text_reply("A guest attribute is NAMESPACE/KEY.\n", 400)
    match request.method:
        case "PUT" if len(request.body) > MAX_GUEST_VALUE_BYTES:
            return text_reply("The value is too long.\n", 400)
        case "PUT":
            node.guest_attributes.write(name, request.body.decode("utf-8", "replace"))
            return text_reply("")
        case "DELETE":
            node.guest_attributes.remove(name)
            return text_reply("")
        case "GET" | "HEAD":
            value = node.guest_attributes.read().get(name)
            return text_reply("Not Found\n", 404) if value is None else text_reply(value)
        case _:
            return text_reply("Method not allowed.\n", 405)
