"""The one HTTP server of a node: its metadata server, and the private paths that shims and containers call."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Callable, Mapping

from tpudeploy.emulator.http_server import HttpRequest, HttpServer, Reply
from tpudeploy.emulator.machine import EXIT_CODE, Unsupported, metadata, shims
from tpudeploy.emulator.machine.commands import CommandCall, CommandResult
from tpudeploy.emulator.machine.commands.curl import curl
from tpudeploy.emulator.machine.commands.docker import docker
from tpudeploy.emulator.machine.commands.host import apt_get, date, getent, hostname, sleep
from tpudeploy.emulator.machine.commands.routers import envoy, haproxy, python, smg
from tpudeploy.emulator.machine.commands.systemd import systemctl, systemd_run
from tpudeploy.emulator.machine.node import NodeMachine
from tpudeploy.emulator.machine.sleepers import SCRIPT, TICK, Caller
from tpudeploy.emulator.machine.units import UNIT

# Commands that a package or `pip` installs; the others are there from the first boot on.
INSTALLED = frozenset(("docker", "envoy", "haproxy", "python", "python3", "smg"))
# The commands that a node answers itself instead of the system; bash finds no others.
COMMANDS: Mapping[str, Callable[[CommandCall], CommandResult]] = {
    "apt": apt_get,
    "apt-get": apt_get,
    "curl": curl,
    "date": date,
    "docker": docker,
    "envoy": envoy,
    "getent": getent,
    "haproxy": haproxy,
    "hostname": hostname,
    "python": python,
    "python3": python,
    "sleep": sleep,
    "smg": smg,
    "systemctl": systemctl,
    "systemd-run": systemd_run,
}
CONTAINER_PATH = "/emulator/container"


class NodeServer:
    """`callers` are the processes that wait for an answer: with the naps among them, they show whether a script moves.

    It serves from the start. `close` waits for every call under way: nothing of a node outlives it.
    """

    def __init__(self, node: NodeMachine) -> None:
        self._node = node
        self._callers: list[int] = []
        self._lock = threading.Lock()
        self._server = HttpServer(0, self._answer, now=node.facts.clock.now)
        self.port = self._server.port
        self.close = self._server.close

    @property
    def callers(self) -> tuple[int, ...]:
        with self._lock:
            return tuple(self._callers)

    def drain(self) -> None:
        """Wait until no call is under way: the callers are dead. A call that naps again is woken again."""
        while self.callers:
            self._node.sleepers.wake_all()
            time.sleep(TICK / 4)

    def _answer(self, request: HttpRequest) -> Reply:
        if request.path.startswith(metadata.PREFIX):
            try:
                return metadata.answer(self._node, request)
            except ConnectionError:
                return Reply(http=0, body="", cut="close")
            except Unsupported as cause:
                message = cause.message("metadata server")
                self._node.note_unsupported(message)
                return metadata.text_reply(f"{message}\n", 501)
        if request.headers.get("x-emulator-key") == self._node.key:
            if request.path == shims.PATH:
                return self._run_command(request)
            if request.path == CONTAINER_PATH:
                self._node.daemon.receive(json.loads(request.body))
                return metadata.json_reply({"now": self._node.facts.clock.now()})
        return metadata.text_reply("This is the metadata server of an emulated TPU VM (tpudeploy).\n", 404)

    def _run_command(self, request: HttpRequest) -> Reply:
        command = shims.parse_command(request.body)
        with self._lock:
            self._callers.append(command.pid)
        try:
            with self._node.sleepers.called_by(Caller(command.environment.get(UNIT, SCRIPT), request.is_gone)):
                outcome = self._run(command)
        finally:
            with self._lock:
                self._callers.remove(command.pid)
        headers = shims.reply_headers(outcome.code, outcome.output)
        return Reply(http=200, body=outcome.output + outcome.errors, headers=headers)

    def _run(self, command: shims.ShimCall) -> CommandResult:
        try:
            return COMMANDS[command.name](CommandCall(node=self._node, command=command))
        except Unsupported as cause:
            message = cause.message(command.name)
            self._node.note_unsupported(message)
            return CommandResult(EXIT_CODE, b"", f"{message}\n".encode())
