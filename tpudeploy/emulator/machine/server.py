"""The one HTTP server of a node: its metadata server, and the private paths that shims and containers call."""

from __future__ import annotations

import json
import select
import socket
import sys
import threading
import time
from collections.abc import Callable, Mapping
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any, TypeAlias
from urllib.parse import parse_qsl, urlsplit

from tpudeploy.emulator.machine import metadata, shims
from tpudeploy.emulator.machine.commands import COMMANDS, Call, Outcome
from tpudeploy.emulator.machine.node import Node
from tpudeploy.emulator.machine.sleepers import SCRIPT, TICK, Caller
from tpudeploy.emulator.machine.units import UNIT
from tpudeploy.emulator.machine.unsupported import EXIT_CODE, Unsupported
from tpudeploy.emulator.machine.web import Request, Response, as_json, text

_Wire: TypeAlias = "socket.socket | tuple[bytes, socket.socket]"  # as socketserver types it


class NodeServer:
    """`calls` counts what the script has under way: with the naps among it, it tells whether the script moves.

    `callers` are the processes that wait for an answer.
    """

    def __init__(self, node: Node) -> None:
        self._node = node
        self._private: Mapping[str, Callable[[Request], Response]] = {
            shims.PATH: self._run,
            "/emulator/container": self._container,
        }
        self._callers: list[int] = []
        self._lock = threading.Lock()
        self._http = _Http(("127.0.0.1", 0), self._handler())
        self._thread = threading.Thread(
            target=self._http.serve_forever, args=(0.05,), name=f"node {node.facts.node}", daemon=True
        )

    @property
    def port(self) -> int:
        port: int = self._http.server_address[1]
        return port

    @property
    def calls(self) -> int:
        return len(self.callers)

    @property
    def callers(self) -> tuple[int, ...]:
        with self._lock:
            return tuple(self._callers)

    def start(self) -> None:
        self._thread.start()

    def stop(self) -> None:
        self._http.shutdown()
        self._http.server_close()
        self._thread.join()

    def drain(self) -> None:
        """Wait until nobody calls: those who did are dead. A call that naps again is woken again."""
        while self.calls:
            self._node.sleepers.wake_all()
            time.sleep(TICK / 4)

    def answer(self, request: Request) -> Response:
        if request.path.startswith(metadata.PREFIX):
            try:
                return metadata.answer(self._node, request)
            except Unsupported as cause:
                message = cause.message("metadata server")
                self._node.note_unsupported(message)
                return text(f"{message}\n", 501)
        if request.path in self._private and request.headers.get("x-emulator-key") == self._node.key:
            return self._private[request.path](request)
        return text("This is the metadata server of an emulated TPU VM (tpudeploy).\n", 404)

    def _run(self, request: Request) -> Response:
        asked = shims.asked(request.body)
        with self._lock:
            self._callers.append(asked.pid)
        try:
            outcome = _run(self._node, asked, request.is_gone)
        finally:
            with self._lock:
                self._callers.remove(asked.pid)
        return Response(body=outcome.output + outcome.errors, headers=shims.headers(outcome.code, outcome.output))

    def _container(self, request: Request) -> Response:
        self._node.daemon.heard(json.loads(request.body))
        return as_json({"now": self._node.facts.clock.now()})

    def _handler(self) -> type[BaseHTTPRequestHandler]:
        return type("NodeHandler", (_Handler,), {"answer": staticmethod(self.answer)})


def _run(node: Node, asked: shims.Asked, is_gone: Callable[[], bool]) -> Outcome:
    with node.sleepers.called_by(Caller(asked.environment.get(UNIT, SCRIPT), is_gone)):
        try:
            return COMMANDS[asked.name](Call(node=node, asked=asked))
        except Unsupported as cause:
            message = cause.message(asked.name)
            node.note_unsupported(message)
            return Outcome(EXIT_CODE, b"", f"{message}\n".encode())


class _Http(ThreadingTCPServer):  # not HTTPServer: it would ask the DNS for our name
    """`server_close` waits for every handler: nothing of a node outlives it. A crash of ours waits for none."""

    request_queue_size = 64

    def __init__(self, place: tuple[str, int], handler: type[BaseHTTPRequestHandler]) -> None:
        self._handlers: set[threading.Thread] = set()
        super().__init__(place, handler)

    def process_request(self, request: _Wire, client_address: Any) -> None:
        thread = threading.Thread(target=self._handle, args=(request, client_address), daemon=True)
        self._handlers.add(thread)
        thread.start()

    def _handle(self, request: _Wire, client_address: Any) -> None:
        self.process_request_thread(request, client_address)
        self._handlers.discard(threading.current_thread())

    def server_close(self) -> None:
        super().server_close()
        for thread in tuple(self._handlers):
            thread.join()

    def handle_error(self, request: _Wire, client_address: Any) -> None:
        """A client that was killed in mid-call is part of the story; anything else is a bug that must show."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class _Handler(BaseHTTPRequestHandler):
    timeout = 10
    server_version = "tpudeploy-emulator"
    sys_version = ""
    answer: Callable[[Request], Response]

    def _serve(self) -> None:
        url = urlsplit(self.path)
        length = int(self.headers.get("Content-Length") or 0)
        request = Request(
            method=self.command,
            path=url.path,
            query=dict(parse_qsl(url.query, keep_blank_values=True)),
            headers={key.lower(): value for key, value in self.headers.items()},
            body=self.rfile.read(length),
            is_gone=self._has_hung_up,
        )
        response = self.answer(request)
        self.send_response(response.status)
        for key, value in response.headers.items():
            self.send_header(key, value)
        self.send_header("Content-Length", str(len(response.body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(response.body)

    def _has_hung_up(self) -> bool:
        """It sends nothing after its request: what can be read then is the end."""
        waiting = select.poll()
        try:
            waiting.register(self.connection, select.POLLIN)
        except ValueError:  # it was answered, and closed, while somebody else looked at who waits
            return True
        return bool(waiting.poll(0))

    do_GET = do_PUT = do_POST = do_DELETE = do_HEAD = _serve  # noqa: N815 - the base class looks for these names

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """A metadata server keeps no log."""
