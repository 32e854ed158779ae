"""HTTP on loopback: sockets, headers, bytes. The server's callable decides the contents of a reply."""

from __future__ import annotations

import io
import json
import math
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from typing import Any
from urllib.parse import parse_qsl, urlsplit

_BODILESS = (204, 304)
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends RST


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """`target` is the path with its query, still quoted; header names are in lower case.

    `is_gone` says whether the client has hung up. `patience` is for how many seconds of the emulator's clock it waits.
    """

    method: str
    target: str
    headers: Mapping[str, str] = field(default_factory=dict)
    body: bytes = b""
    is_gone: Callable[[], bool] = never
    patience: float = math.inf

    @property
    def path(self) -> str:
        return urlsplit(self.target).path

    @property
    def query(self) -> Mapping[str, str]:
        return dict(parse_qsl(urlsplit(self.target).query, keep_blank_values=True))


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

    def payload(self, *, indent: int | None = None) -> bytes:
        """Return the bytes of a body that is not a stream; `indent` is that of JSON."""
        if isinstance(self.body, bytes):
            return self.body
        return self.body.encode() if isinstance(self.body, str) else json.dumps(self.body, indent=indent).encode()


class Server:
    """One thread a connection; `close` ends them all. `sleep` is how a slow reply waits; `now` dates each reply."""

    def __init__(
        self,
        port: int,
        answer: Callable[[Request], Reply],
        *,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        address: str = "127.0.0.1",
    ) -> None:
        self.answer = answer
        self.sleep = sleep
        self.now = now
        self._listener = socket.create_server((address, port), backlog=128)
        self.port: int = self._listener.getsockname()[1]
        self._connections: dict[threading.Thread, socket.socket] = {}
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
            connections = dict(self._connections)
        for connection in connections.values():
            _shut(connection)
        for thread in connections:
            thread.join()

    def _accept(self) -> None:
        while True:
            connection, address = self._listener.accept()
            if self._closing:
                connection.close()
                return
            thread = threading.Thread(target=self._serve, args=(connection, address), daemon=True)
            with self._guard:
                self._connections[thread] = connection
            thread.start()

    def _serve(self, connection: socket.socket, address: Any) -> None:
        try:
            _Handler(connection, address, self)  # type: ignore[arg-type]  # of its server it uses what this one has
        except OSError:
            pass  # the client hung up
        finally:
            with self._guard:
                del self._connections[threading.current_thread()]
            connection.close()


class _RequestReader(io.BufferedReader):
    """Keeps the last line read: a block of headers that does not end in an empty line was cut off."""

    last_line = b""

    def readline(self, size: int | None = -1, /) -> bytes:
        self.last_line = super().readline(size)
        return self.last_line


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    rbufsize = 0  # the buffer is that of `_RequestReader`
    server_version = "tpudeploy-emulator"
    sys_version = ""
    disable_nagle_algorithm = True
    wbufsize = -1
    server: Server  # type: ignore[assignment]  # the base class expects one of its own module

    def date_time_string(self, timestamp: float | None = None) -> str:
        """Return the `Date` of a reply: time is the emulator's, as it is in the replies themselves."""
        return super().date_time_string(self.server.now() if timestamp is None else timestamp)

    def setup(self) -> None:
        super().setup()
        self.rfile = _RequestReader(self.rfile)  # unbuffered: the raw stream

    def do_GET(self) -> None:
        length = int(self.headers.get("Content-Length") or 0)
        has_all_headers = self.rfile.last_line in (b"\r\n", b"\n")  # type: ignore[attr-defined]
        body = self.rfile.read(length)
        if not has_all_headers or len(body) < length:  # the client was killed while it sent its request
            self.close_connection = True
            return
        request = Request(
            method=self.command,
            target=self.path,
            headers={name.lower(): value for name, value in self.headers.items()},
            body=body,
            is_gone=self._has_hung_up,
        )
        try:
            reply = self.server.answer(request)
        except OSError as cause:  # an error of the emulator, not of the client's socket, must be seen
            raise RuntimeError(f"the emulator failed at {self.command} {self.path}") from cause
        if reply.seconds:
            self.server.sleep(reply.seconds)
        if reply.cut:
            self._cut(reply.cut)
        else:
            self._send(reply)

    do_HEAD = do_POST = do_PUT = do_DELETE = do_PATCH = do_GET  # noqa: N815  names are http.server's

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002  the base class's name
        """Log nothing: the service keeps the log."""

    def _has_hung_up(self) -> bool:
        """Return whether the client is gone: it sends nothing after its request, so what can be read is the end."""
        waiting = select.poll()
        try:
            waiting.register(self.connection, select.POLLIN)
        except ValueError:  # the request was answered, and its connection closed, since it was listed
            return True
        return bool(waiting.poll(0))

    def _send(self, reply: Reply) -> None:
        self.send_response(reply.http)
        is_json = isinstance(reply.body, Mapping)
        self.send_header("Content-Type", "application/json; charset=UTF-8" if is_json else reply.content_type)
        if isinstance(reply.body, Iterator):
            self.close_connection = True
            self.send_header("Connection", "close")
            self.end_headers()
            for chunk in reply.body:
                self.wfile.write(chunk)
                self.wfile.flush()
            return
        payload = reply.payload()
        if reply.http not in _BODILESS:
            self.send_header("Content-Length", str(len(payload)))
        for name, value in reply.headers.items():
            self.send_header(name, value)
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(payload)
        self.wfile.flush()

    def _cut(self, how: str) -> None:
        self.close_connection = True
        if how == "reset":
            self.connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # already closed
