"""What a TPU VM finds around it, inside the machine: a metadata server, Google's APIs, a docker engine, and the server of a container.

inside.py FOLDER   metadata in FOLDER/metadata, a file a key; what happened goes to FOLDER/events, a JSON line each
"""

from __future__ import annotations

import json
import ssl
import sys
import threading
import time
import zlib
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any
from urllib.parse import parse_qs, urlsplit

from node import docker_api

from tpudeploy.emulator.clock import RealClock
from tpudeploy.emulator.machine.guest_attributes import GuestAttributes

PREFIX = "/computeMetadata/v1/instance/"
GUEST = PREFIX + "guest-attributes/"
COMPLETION = {"id": "c", "choices": [{"message": {"role": "assistant", "content": "Hello.\n"}}]}


class World:
    def __init__(self, folder: Path) -> None:
        self.metadata = folder / "metadata"
        self.attributes = GuestAttributes(RealClock())
        self._events = (folder / "events").open("a", encoding="utf-8")
        self._lock = threading.Lock()

    def note(self, kind: str, **facts: Any) -> None:
        with self._lock:
            self._events.write(json.dumps({"kind": kind, "at": time.time(), **facts}) + "\n")
            self._events.flush()

    def value(self, path: str) -> str | None:
        try:
            return (self.metadata / path.rpartition("/")[2]).read_text(encoding="utf-8")
        except OSError:
            return None


class _Handler(BaseHTTPRequestHandler):
    world: World
    engine: docker_api.Engine

    def answer(self, status: int, body: str = "", **headers: str) -> None:
        content = body.encode()
        self.send_response(status)
        for name, value in headers.items():
            self.send_header(name, value)
        self.send_header("Content-Length", str(len(content)))
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Silent."""


class Metadata(_Handler):
    def do_GET(self) -> None:
        url = urlsplit(self.path)
        query = {key: values[0] for key, values in parse_qs(url.query).items()}
        before, wait = query.get("last_etag"), float(query.get("timeout_sec", "0"))
        ends = time.monotonic() + (wait if "wait_for_change" in query else 0.0)
        while (tagged := self._tagged(url.path))[1] == before and time.monotonic() < ends:
            time.sleep(0.05)
        value, tag = tagged
        self.answer(404) if value is None else self.answer(200, value, ETag=tag)

    def do_PUT(self) -> None:
        name = self.path.removeprefix(GUEST)
        value = self.rfile.read(int(self.headers["Content-Length"])).decode()
        self.world.attributes.write(name, value)
        is_lost = name not in self.world.attributes.values
        self.world.note("attribute", name=name, value=value, lost=is_lost)
        self.answer(200)

    def _tagged(self, path: str) -> tuple[str | None, str]:
        value = self.world.value(path)
        return value, f"{zlib.crc32((value or '').encode()):08x}"


class Vllm(_Handler):
    """Port 8000: it answers while a container runs."""

    def do_GET(self) -> None:
        if self.path == "/metrics":
            ended = self.world.value("requests") or "0"
            self.answer(200, f"vllm:request_success_total {ended}\nvllm:num_requests_running 0\n")
        else:
            self.answer(200 if self._runs() else 503)

    def do_POST(self) -> None:
        self.rfile.read(int(self.headers["Content-Length"]))
        self.answer(200, json.dumps(COMPLETION)) if self._runs() else self.answer(503)

    def _runs(self) -> bool:
        started = [c.started_at for c in self.engine.containers.values() if c.is_running]
        return bool(started) and time.monotonic() - max(started) > float(self.world.value("boot-seconds") or 0)


class Google(_Handler):
    """Port 443: the Google APIs, which delete whatever they are asked to."""

    def do_DELETE(self) -> None:
        url = f"https://{self.headers['Host']}{self.path}"
        self.world.note("delete", url=url, authorization=self.headers["Authorization"])
        self.answer(200, "{}")


def main(folder: Path) -> None:
    world = World(folder)
    with docker_api.serving(
        Path("/run/docker.sock"), note=lambda verb, name: world.note("docker", verb=verb, name=name)
    ) as engine:
        for port, handler in ((80, Metadata), (443, Google), (8000, Vllm)):
            handler_class = type(handler.__name__, (handler,), {"world": world, "engine": engine})
            server = ThreadingHTTPServer(("0.0.0.0", port), handler_class)
            if handler is Google:
                context = ssl.SSLContext(ssl.PROTOCOL_TLS_SERVER)
                context.load_cert_chain(folder / "google.crt", folder / "google.key")
                server.socket = context.wrap_socket(server.socket, server_side=True)
            threading.Thread(target=server.serve_forever).start()
        world.note("ready")
        threading.Event().wait()


if __name__ == "__main__":
    main(Path(sys.argv[1]))
