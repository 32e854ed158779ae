"""As much of the Docker Engine API, on a unix socket, as the startup script needs; it writes down what it was asked for."""

from __future__ import annotations

import json
import re
import socketserver
import sys
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

LOG = b"INFO:     Application startup complete.\n"
_CONTAINER = re.compile(r"/containers/(?P<name>[^/]+)/(?P<what>json|logs|start|wait)$")
_IMAGE = re.compile(r"/images/(?P<name>.+)/json$")
VERSION = {"Version": "28.0.0", "ApiVersion": "1.48", "MinAPIVersion": "1.24", "Os": "linux", "Arch": "amd64"}


@dataclass
class Created:
    """A container. `started_at` is of the monotonic clock."""

    name: str
    body: dict[str, Any]
    started_at: float = 0.0
    is_running: bool = False


@dataclass
class Engine:
    """`containers` are those that exist now, by name; `note` hears of each verb that changes something."""

    socket: Path
    note: Callable[[str, str], None]
    created: list[Created] = field(default_factory=list)
    strange: list[str] = field(default_factory=list)
    containers: dict[str, Created] = field(default_factory=dict)
    images: set[str] = field(default_factory=set)


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
        engine, path = self.server.engine, urlsplit(self.path).path
        if path.endswith("/_ping"):
            return self._answer(200, b"OK", "text/plain")
        if path.endswith("/version"):
            return self._json(200, VERSION)
        if path.endswith("/info"):
            return self._json(200, {"OSType": "linux"})
        match = _CONTAINER.search(path)
        if match is not None and match["name"] in engine.containers:
            is_running = engine.containers[match["name"]].is_running
            state = {"Id": match["name"], "State": {"Running": is_running, "ExitCode": 0}, "Config": {"Tty": True}}
            return self._json(200, state) if match["what"] == "json" else self._answer(200, LOG, "text/plain")
        image = _IMAGE.search(path)
        if image is not None and image["name"] in engine.images:
            return self._json(200, {"Id": "sha256:1", "RepoDigests": []})
        if match is not None or image is not None:
            return self._json(404, {"message": "No such object"})
        return self._unknown()

    do_HEAD = do_GET  # noqa: N815 -- the name http.server looks for

    def do_POST(self) -> None:
        engine, parts = self.server.engine, urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(parts.query).items()}
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        if parts.path.endswith("/images/create"):
            engine.images.add(f"{query['fromImage'].removeprefix('docker.io/')}:{query['tag']}")
            engine.note("pull", query["fromImage"])
            return self._answer(200, json.dumps({"status": "Pull complete", "id": "1"}).encode(), "application/json")
        if parts.path.endswith("/containers/create"):
            form = json.loads(body)
            form["Env"] = sorted(form["Env"] or ())  # the client keeps them in a map: their order is another each time
            created = Created(query["name"], form)
            engine.created.append(created)
            engine.containers[created.name] = created
            engine.note("create", created.name)
            return self._json(201, {"Id": created.name, "Warnings": []})
        match = _CONTAINER.search(parts.path)
        if match is not None and match["what"] == "wait":
            return self._json(200, {"StatusCode": 0})
        if match is not None and match["what"] == "start":
            created = engine.containers[match["name"]]
            created.started_at, created.is_running = time.monotonic(), True
            engine.note("start", created.name)
            return self._answer(204, b"", "text/plain")
        return self._unknown()

    def do_DELETE(self) -> None:
        name = urlsplit(self.path).path.rpartition("/")[2]
        if self.server.engine.containers.pop(name, None) is None:
            return self._json(404, {"message": f"No such container: {name}"})
        self.server.engine.note("remove", name)
        return self._answer(204, b"", "text/plain")

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


def _ignore(_verb: str, _name: str) -> None:
    """Who asks the engine itself afterwards need not be told."""


@contextmanager
def serving(socket: Path, note: Callable[[str, str], None] = _ignore) -> Iterator[Engine]:
    with _Server(str(socket), _Handler) as server:
        server.engine = Engine(socket, note)
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
        thread.start()
        try:
            yield server.engine
        finally:
            server.shutdown()
            thread.join()
