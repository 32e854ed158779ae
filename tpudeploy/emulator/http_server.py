"""HTTP on loopback: sockets, headers, bytes. The server's callable decides the contents of a reply."""

from __future__ import annotations

import json
import math
import select
import socket
import struct
import threading
import time
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field
from email.utils import formatdate
from http import HTTPStatus
from typing import Any, BinaryIO
from urllib.parse import parse_qsl, urlsplit

_METHODS = ("GET", "HEAD", "POST", "PUT", "DELETE", "PATCH")
_PHRASES = {status.value: status.phrase for status in HTTPStatus}
_BODILESS = (204, 304)
_LONGEST_LINE = 65536  # bytes of a line of a request
_RESET = struct.pack("ii", 1, 0)  # SO_LINGER on, 0 seconds: close() sends RST


def never() -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class HttpRequest:
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


_HOUR = 3600.0


class HttpServer:
    """One thread a connection; `close` ends them all. `sleep` is how a slow reply waits; `now` dates each reply."""

    def __init__(
        self,
        port: int,
        answer: Callable[[HttpRequest], Reply],
        *,
        sleep: Callable[[float], None] = time.sleep,
        now: Callable[[], float] = time.time,
        address: str = "127.0.0.1",
    ) -> None:
        self.answer = answer
        self.sleep = sleep
        self.now = now
        self._listener = socket.create_server((address, port), backlog=128)
        # Without a timeout, Python waits inside of `accept`, which reserves a descriptor for as long as it waits: one
        # more for each machine of a fleet.
        self._listener.settimeout(_HOUR)
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
            try:
                connection, _ = self._listener.accept()
            except TimeoutError:
                continue
            if self._closing:
                connection.close()
                return
            thread = threading.Thread(target=self._serve, args=(connection,), daemon=True)
            with self._guard:
                self._connections[thread] = connection
            thread.start()

    def _serve(self, connection: socket.socket) -> None:
        try:
            _Conversation(connection, self).run()
        except OSError:
            pass  # the client hung up
        finally:
            with self._guard:
                del self._connections[threading.current_thread()]
            connection.close()


class _Conversation:
    """The requests of one connection, each answered before the next is read.

    Headers are read here, because the standard library parses them as e-mail, which costs more than the whole reply.
    """

    def __init__(self, connection: socket.socket, server: HttpServer) -> None:
        self._connection = connection
        self._server = server

    def run(self) -> None:
        self._connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
        with self._connection.makefile("rb") as stream:
            while self._answer_next(stream):
                pass

    def _answer_next(self, stream: BinaryIO) -> bool:
        """Answer one request. Return whether the connection stays open for another one."""
        try:
            request, stays_open = self._read(stream)
        except EOFError:
            return False  # the client is done, or was killed while it sent its request
        except _Malformed as cause:
            self._send("GET", Reply(http=cause.http, body="", headers={"Connection": "close"}))
            return False
        try:
            reply = self._server.answer(request)
        except OSError as cause:  # an error of the emulator, not of the client's socket, must be seen
            raise RuntimeError(f"the emulator failed at {request.method} {request.target}") from cause
        if reply.seconds:
            self._server.sleep(reply.seconds)
        if reply.cut:
            if reply.cut == "reset":
                self._connection.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _RESET)
            return False
        self._send(request.method, reply)
        return stays_open and not isinstance(reply.body, Iterator)

    def _read(self, stream: BinaryIO) -> tuple[HttpRequest, bool]:
        """Return a request, and whether its client keeps the connection.

        Raise EOFError for a request that was cut off, and `_Malformed` for one that is not HTTP.
        """
        words = _read_line(stream, too_long=414).split()
        if len(words) != 3 or not words[2].startswith("HTTP/1."):  # noqa: PLR2004  method, target and version
            raise _Malformed(400)
        method, target, version = words
        if method not in _METHODS:
            raise _Malformed(501)
        headers: dict[str, str] = {}
        while line := _read_line(stream, too_long=431):
            name, _, value = line.partition(":")
            headers[name.lower()] = value.strip()
        length = headers.get("content-length", "0")
        if not length.isdecimal():
            raise _Malformed(400)
        if headers.get("expect", "").lower() == "100-continue":
            self._connection.sendall(b"HTTP/1.1 100 Continue\r\n\r\n")
        body = stream.read(int(length))
        if len(body) < int(length):
            raise EOFError
        default = "close" if version == "HTTP/1.0" else "keep-alive"
        stays_open = headers.get("connection", default).lower() != "close"
        # Two slashes in front would make the first folder of the path a host.
        path = f"/{target.lstrip('/')}" if target.startswith("//") else target
        request = HttpRequest(method=method, target=path, headers=headers, body=body, is_gone=self._has_hung_up)
        return request, stays_open

    def _has_hung_up(self) -> bool:
        """Return whether the client is gone: it sends nothing after its request, so what can be read is the end."""
        waiting = select.poll()
        try:
            waiting.register(self._connection, select.POLLIN)
        except ValueError:  # the request was answered, and its connection closed, since it was listed
            return True
        return bool(waiting.poll(0))

    def _send(self, method: str, reply: Reply) -> None:
        is_json = isinstance(reply.body, Mapping)
        headers = {
            "Server": "tpudeploy-emulator",
            # Time is the emulator's, as it is in the replies themselves.
            "Date": formatdate(self._server.now(), usegmt=True),
            "Content-Type": "application/json; charset=UTF-8" if is_json else reply.content_type,
        }
        if isinstance(reply.body, Iterator):
            self._connection.sendall(_head(reply.http, {**headers, "Connection": "close"}))
            for chunk in reply.body:
                self._connection.sendall(chunk)
            return
        payload = reply.payload()
        if reply.http not in _BODILESS:
            headers["Content-Length"] = str(len(payload))
        head = _head(reply.http, {**headers, **reply.headers})
        self._connection.sendall(head if method == "HEAD" else head + payload)


class _Malformed(Exception):
    """Ends a connection with this status."""

    def __init__(self, http: int) -> None:
        super().__init__(http)
        self.http = http


def _read_line(stream: BinaryIO, *, too_long: int) -> str:
    """Return the next line of a request without its end. Raise EOFError where it was cut off, and `_Malformed`."""
    line = stream.readline(_LONGEST_LINE + 1)
    if len(line) > _LONGEST_LINE:
        raise _Malformed(too_long)
    if not line.endswith(b"\n"):
        raise EOFError
    return line.decode("iso-8859-1").rstrip("\r\n")


def _head(http: int, headers: Mapping[str, str]) -> bytes:
    lines = (f"HTTP/1.1 {http} {_PHRASES.get(http, '')}", *(f"{name}: {value}" for name, value in headers.items()))
    return "".join(f"{line}\r\n" for line in (*lines, "")).encode("iso-8859-1")


def _shut(connection: socket.socket) -> None:
    try:
        connection.shutdown(socket.SHUT_RDWR)
    except OSError:
        return  # already closed
