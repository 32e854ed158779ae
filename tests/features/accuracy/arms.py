"""Arms: servers that speak vLLM's API and have a known share of the questions right, always the same ones."""

from __future__ import annotations

import json
import threading
import zlib
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from real_time import DEADLINE

MODEL = "google/gemma-4-E2B-it"


@dataclass
class Arm:
    """`answers` is prompt → right answer, `share` how many of them it knows; of `deaf` it answers an error.

    What a server with a smaller share knows, one with a larger share knows too. The first `hang_up` requests after the
    first of all get no answer. With a `barrier`, requests wait for each other; `most` were there at once.
    """

    answers: Mapping[str, str]
    share: float
    deaf: float = 0.0
    key: str | None = None
    hang_up: int = 0
    requests: list[dict[str, Any]] = field(default_factory=list)
    url: str = ""
    lock: threading.Lock = field(default_factory=threading.Lock)
    now: int = 0
    most: int = 0
    barrier: threading.Barrier | None = None

    def answer(self, prompt: str) -> str:
        right = self.answers[prompt]
        knows = luck(prompt, "knows") < self.share
        return f"Let me think: 1 + 1 = 2.\nAnswer: {right if knows else f'{right}1'}"


def luck(prompt: str, about: str) -> float:
    """From 0 to 1, as if by chance."""
    return zlib.crc32(f"{about} {prompt}".encode()) / 2**32


@contextmanager
def serving(arm: Arm) -> Iterator[Arm]:
    """At `arm.url`."""
    server = _Server(arm)
    thread = threading.Thread(target=server.serve_forever, daemon=True)
    thread.start()
    arm.url = f"http://127.0.0.1:{server.server_address[1]}"
    try:
        yield arm
    finally:
        server.shutdown()
        server.server_close()
        thread.join()


class _Server(ThreadingHTTPServer):
    daemon_threads = True
    request_queue_size = 512  # else a crowd is turned away

    def __init__(self, arm: Arm) -> None:
        self.arm = arm
        super().__init__(("127.0.0.1", 0), _Handler)


class _Handler(BaseHTTPRequestHandler):
    server: _Server
    protocol_version = "HTTP/1.1"

    def do_GET(self) -> None:
        self._reply(200, {"data": [{"id": MODEL}]})

    def do_POST(self) -> None:
        arm = self.server.arm
        body = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        prompt = body["messages"][0]["content"]
        with arm.lock:
            arm.requests.append(body)
            arm.now += 1
            arm.most = max(arm.most, arm.now)
            hangs_up = len(arm.requests) <= arm.hang_up + 1 and len(arm.requests) > 1
        if arm.barrier is not None and len(arm.requests) > 1:
            arm.barrier.wait(timeout=DEADLINE)
        with arm.lock:
            arm.now -= 1  # before the answer: whoever has it may ask the next thing at once
        self._answer(prompt, hangs_up=hangs_up)

    def _answer(self, prompt: str, *, hangs_up: bool) -> None:
        arm = self.server.arm
        if hangs_up:
            self.close_connection = True
        elif arm.key is not None and self.headers.get("Authorization") != f"Bearer {arm.key}":
            self._reply(401, {"error": "Unauthorized"})
        elif luck(prompt, "hears") < arm.deaf:
            self._reply(500, {"error": {"message": "EngineCore died", "code": 500}})
        else:
            self._stream(arm.answer(prompt))

    def _stream(self, text: str) -> None:
        pieces = [{"choices": [{"delta": {"content": f"{word} "}}]} for word in text.split(" ")]
        usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": len(pieces)}}
        lines = [f"data: {json.dumps(piece)}\n\n" for piece in (*pieces, usage)]
        self._send(200, "".join([*lines, "data: [DONE]\n\n"]), "text/event-stream")

    def _reply(self, status: int, tree: object) -> None:
        self._send(status, json.dumps(tree), "application/json")

    def _send(self, status: int, text: str, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(text.encode())))
        self.end_headers()
        self.wfile.write(text.encode())

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class's name
        pass
