"""HTTP on loopback: sockets, headers, bytes. What an answer says is service.py's or stand_in.py's business."""

from __future__ import annotations

import json
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any


@dataclass(frozen=True, slots=True, kw_only=True)
class Reply:
    """`cut` is how the connection ends instead of a reply: "reset", "close", or "" to reply.

    `content_type` is that of text or bytes; a mapping is JSON. An iterator is written as it comes, and ends the
    connection.
    """

    http: int
    body: Mapping[str, Any] | str | bytes | Iterator[bytes]
    content_type: str = "text/plain"
    headers: Mapping[str, str] = field(default_factory=dict)
    cut: str = ""
    seconds: float = 0.0


Answer = Callable[[str, str, bytes], Reply]
_BODILESS = (204, 304)
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends RST


class Server:
    """One thread a connection; `close` ends them all. `sleep` is how a slow reply waits; `now` dates each reply."""

    def __init__(
        self,
        port: int,
        answer: Answer,
        *,
        sleep: Callable[[float], None],
        now: Callable[[], float] = time.time,
        address: str = "127.0.0.1",
    ) -> None:
        self._answer = answer
        self._sleep = sleep
        self._now = now
        self._listener = socket.create_server((address, port), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._open: set[socket.socket] = set()
        self._threads: set[threading.Thread] = set()
        self._guard = threading.Lock()
        self._closing = False
        self._acceptor = threading.Thread(target=self._accept, name="emulator-accept", daemon=True)
        self._acceptor.start()

    def close(self) -> None:
        self._closing = True
        with socket.create_connection(self._listener.getsockname()):
            self._acceptor.join()
        self._listener.close()
        with self._guard:
            connections, threads = tuple(self._open), tuple(self._threads)
        for connection in connections:
            _shut(connection)
        for thread in threads:
            thread.join()

    def _accept(self) -> None:
        while True:
            connection, address = self._listener.accept()
            if self._closing:
                connection.close()
                return
            thread = threading.Thread(target=self._serve, args=(connection, address), daemon=True)
            with self._guard:
                self._open.add(connection)
                self._threads.add(thread)
            thread.start()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        answer, sleep, clock = self._answer, self._sleep, self._now

        class Bound(_Handler):
            reply_to = staticmethod(answer)
            wait = staticmethod(sleep)
            now = staticmethod(clock)

        try:
            Bound(connection, address, None)  # type: ignore[arg-type]  # the handler never uses its server
        except OSError:
            pass  # the client hung up: nobody is left to be told
        finally:
            with self._guard:
                self._open.discard(connection)
                self._threads.discard(threading.current_thread())
            connection.close()


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server_version = "tpudeploy-emulator"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1
    reply_to: Answer
    wait: Callable[[float], None]
    now: Callable[[], float]

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the `Date` of a reply: time is the emulator's, as it is in the replies themselves."""
        return super().date_time_string(self.now() if timestamp is None else timestamp)

    def do_GET(self) -> None:
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        reply = self.reply_to(self.command, self.path, body)
        if reply.seconds:
            self.wait(reply.seconds)
        if reply.cut:
            self._cut(reply.cut)
        else:
            self._send(reply)

    do_HEAD = do_POST = do_DELETE = do_PATCH = do_GET  # noqa: N815  names are http.server's

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """The service keeps the log."""

    def _send(self, reply: Reply) -> None:
        if isinstance(reply.body, Iterator):
            self._stream(reply, reply.body)
            return
        is_json = isinstance(reply.body, Mapping)
        payload = _payload(reply.body)
        self.send_response(reply.http)
        self.send_header("Content-Type", "application/json; charset=UTF-8" if is_json else reply.content_type)
        if reply.http not in _BODILESS:
            self.send_header("Content-Length", str(len(payload)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)
        self.wfile.flush()

    def _stream(self, reply: Reply, chunks: Iterator[bytes]) -> None:
        self.close_connection = True
        self.send_response(reply.http)
        self.send_header("Content-Type", reply.content_type)
        self.send_header("Connection", "close")
        self.end_headers()
        for chunk in chunks:
            self.wfile.write(chunk)
            self.wfile.flush()

    def _cut(self, how: str) -> None:
        self.close_connection = True
        if how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _payload(body: Mapping[str, Any] | str | bytes) -> bytes:
    match body:
        case bytes():
            return body
        case str():
            return body.encode()
        case _:
            return json.dumps(body).encode()


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # already gone
