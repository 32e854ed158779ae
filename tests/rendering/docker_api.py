"""As much of the Docker Engine API, on a unix socket, as `docker run -d` needs; it writes down what it was asked for."""

from __future__ import annotations

import json
import socketserver
import sys
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

VERSION = {"Version": "28.0.0", "ApiVersion": "1.48", "MinAPIVersion": "1.24", "Os": "linux", "Arch": "amd64"}


@dataclass
class Created:
    name: str
    body: dict[str, Any]


@dataclass
class Engine:
    socket: Path
    created: list[Created] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)


class _Server(socketserver.ThreadingMixIn, socketserver.UnixStreamServer):
    daemon_threads = True
    engine: Engine

    def handle_error(self, request: object, client_address: object) -> None:
        """The client leaves without waiting for what it asked to wait for; all else is worth a noise."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)  # type: ignore[arg-type]  # passed on as it came


class _Handler(BaseHTTPRequestHandler):
    protocol_version = "HTTP/1.1"
    server: _Server

    def do_GET(self) -> None:
        path = urlsplit(self.path).path
        if path.endswith("/_ping"):
            return self._answer(200, b"OK", "text/plain")
        if path.endswith("/version"):
            return self._json(200, VERSION)
        if path.endswith("/info"):
            return self._json(200, {"OSType": "linux"})
        return self._unknown()

    do_HEAD = do_GET  # noqa: N815 -- the name http.server looks for

    def do_POST(self) -> None:
        parts = urlsplit(self.path)
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if parts.path.endswith("/containers/create"):
            name = parse_qs(parts.query)["name"][0]
            self.server.engine.created.append(Created(name, json.loads(body)))
            return self._json(201, {"Id": "c0ffee", "Warnings": []})
        if parts.path.endswith("/containers/c0ffee/wait"):
            return self._json(200, {"StatusCode": 0})
        if parts.path.endswith("/containers/c0ffee/start"):
            return self._answer(204, b"", "text/plain")
        return self._unknown()

    def _unknown(self) -> None:
        self.server.engine.strange.append(f"{self.command} {self.path}")
        self._json(404, {"message": "not here"})

    def _json(self, status: int, body: object) -> None:
        self._answer(status, json.dumps(body).encode(), "application/json")

    def _answer(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Api-Version", VERSION["ApiVersion"])
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        if self.command != "HEAD":
            self.wfile.write(body)

    def address_string(self) -> str:
        return "unix"  # a unix socket's peer has no address to print

    def log_message(self, *args: object) -> None:
        """Tests print nothing."""


@contextmanager
def serving(socket: Path) -> Iterator[Engine]:
    with _Server(str(socket), _Handler) as server:
        server.engine = Engine(socket)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.engine
        finally:
            server.shutdown()
            thread.join()
