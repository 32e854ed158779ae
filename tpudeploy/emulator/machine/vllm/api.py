"""The HTTP side of the stand-in: what vLLM answers on its paths, its guard, its error bodies."""

from __future__ import annotations

import itertools
import json
import sys
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler
from socketserver import ThreadingTCPServer
from typing import Any
from urllib.parse import urlsplit

from tpudeploy.domain.pace import LOOP_PATH
from tpudeploy.emulator.machine.vllm import closed_loop, completions, pooling
from tpudeploy.emulator.machine.vllm.completions import CompletionError
from tpudeploy.emulator.machine.vllm.engine import EmulatedEngine
from tpudeploy.emulator.machine.vllm.lifeline import Lifeline, say
from tpudeploy.emulator.machine.vllm.metrics import Served, VllmMetrics


@dataclass(frozen=True, slots=True, kw_only=True)
class AnswerPace:
    """Real seconds to the first token of an answer, and for each later one. `scale` is those in an emulated second."""

    first: float = 0.0
    token: float = 0.0
    scale: float = 1.0

    def wait_until(self, start: float, number: int) -> None:
        delay = start + self.first + number * self.token - time.perf_counter()
        if delay > 0 and self.first:
            time.sleep(delay)

    def wait_for_first(self, start: float) -> float:
        """Return the seconds to the first token."""
        self.wait_until(start, 0)
        return time.perf_counter() - start

    def wait_for_last(self, start: float, answer: completions.EmulatedCompletion) -> None:
        self.wait_until(start, max(len(choice.words) for choice in answer.choices) - 1)


class ApiServer(ThreadingTCPServer):  # not HTTPServer: it would ask the DNS for our name
    daemon_threads = True
    request_queue_size = 512
    allow_reuse_address = True

    def __init__(
        self,
        place: tuple[str, int],
        engine: EmulatedEngine,
        lifeline: Lifeline,
        *,
        has_access_log: bool = True,
        real_second: float = 0.0,
    ) -> None:
        """`real_second` is how long a second of the emulator's time really is, 0 where its time is virtual."""
        self.engine = engine
        self.now = lifeline.now
        self.real_second = real_second
        self.has_access_log = has_access_log
        began = lifeline.now()
        self.metrics = VllmMetrics(engine, served_seconds=lambda: lifeline.now() - began)
        self.started = int(began)
        self.numbers = itertools.count(1)
        self.counting = threading.Lock()
        super().__init__(place, ApiHandler)

    def handle_error(self, request: Any, client_address: Any) -> None:
        """Ignore a client that hangs up in the middle of a stream: vLLM's log has no trace of it either."""
        if not isinstance(sys.exception(), ConnectionError):
            super().handle_error(request, client_address)


class ApiHandler(BaseHTTPRequestHandler):
    server: ApiServer
    protocol_version = "HTTP/1.1"
    server_version = "tpudeploy-emulator"
    sys_version = ""
    disable_nagle_algorithm = True

    def do_GET(self) -> None:
        self._route(GETS)

    def do_POST(self) -> None:
        self._route(POSTS)

    def _route(self, table: Mapping[str, Callable[[ApiHandler, bytes], None]]) -> None:
        path = urlsplit(self.path).path
        body = self.rfile.read(int(self.headers.get("Content-Length") or 0))
        try:
            if not self.server.engine.accepts(path, self.headers.get("Authorization", "")):
                self.send(401, {"error": "Unauthorized"})
            elif path in table and self.has(path):
                table[path](self, body)
            else:
                raise self._refusal(path)
        except CompletionError as refusal:
            self.send(refusal.status, refusal.body)

    def _refusal(self, path: str) -> CompletionError:
        if self.has(path) and path not in GETS and path not in POSTS:
            what = f"The tpudeploy emulator's stand-in cannot do {path}. Ask a real server."
            return CompletionError(HTTPStatus.NOT_IMPLEMENTED, "NotImplementedError", what)
        wrong = HTTPStatus.METHOD_NOT_ALLOWED if self.has(path) else HTTPStatus.NOT_FOUND
        return CompletionError(wrong, wrong.phrase, wrong.phrase)

    def has(self, path: str) -> bool:
        """Return whether vLLM attaches this path for the model: completions for one that generates alone."""
        return path in self.server.engine.paths or path == LOOP_PATH

    def send(self, status: int, tree: object) -> None:
        self.send_bytes(status, json.dumps(tree).encode(), "application/json")

    def send_bytes(self, status: int, body: bytes, kind: str) -> None:
        self.send_response(status)
        self.send_header("Content-Type", kind)
        self.send_header("Content-Length", str(len(body)))
        self.end_headers()
        self.wfile.write(body)

    def complete(self, body: bytes, *, is_chat: bool) -> None:
        server = self.server
        start = time.perf_counter()
        prompt = completions.read(server.engine, parsed(body), is_chat=is_chat)
        with server.counting:
            number = next(server.numbers)
        answer = completions.answer(server.engine, prompt, number, server.started)
        with server.metrics.running():
            pace = self._pace(answer)
            first = self._stream(answer, start, pace) if prompt.stream else pace.wait_for_first(start)
            if not prompt.stream:
                pace.wait_for_last(start, answer)
                self.send(200, completions.whole(answer))
        scale = pace.scale
        server.metrics.count(Served(answer=answer, first=first / scale, whole=(time.perf_counter() - start) / scale))

    def _pace(self, answer: completions.EmulatedCompletion) -> AnswerPace:
        """Return how long the pieces of an answer really take, with as many requests as run now."""
        performance, real_second = self.server.engine.performance, self.server.real_second
        if performance is None or not real_second:
            return AnswerPace()
        running = max(1, -(-self.server.metrics.running_now // performance.ranks))
        size = sum(answer.prompt.sizes)
        first = closed_loop.first_token_seconds(performance, size, running)
        token = performance.step_seconds(0, running, size * running) / performance.tokens_per_step
        return AnswerPace(first=first * real_second, token=token * real_second, scale=real_second)

    def loop(self, body: bytes) -> None:
        """Answer a whole cell of load at once, by arithmetic."""
        performance = self.server.engine.performance
        if performance is None:
            raise CompletionError(404, "Not Found", "Not Found")
        try:
            offer = closed_loop.LoopOffer.read(parsed(body))
        except (KeyError, TypeError, ValueError) as error:
            raise CompletionError(400, "Bad Request", f"not a load: {error}") from error
        loop = closed_loop.play(performance, offer, self.server.now())
        self.server.metrics.count_loop(len(loop["answers"]), offer.context, offer.output)
        self.send(200, loop)

    def pool(self, body: bytes, path: str) -> None:
        engine, tree = self.server.engine, parsed(body)
        model = tree.get("model") or engine.served_names[0]
        if model not in engine.served_names:
            raise CompletionError(404, "NotFoundError", f"The model `{model}` does not exist.", "model")
        try:
            self.send(200, pooling.reply(engine.task, path, tree, model))
        except (AttributeError, TypeError, ValueError) as error:
            text = f"[{{'type': 'missing', 'loc': ('body', '{error}'), 'msg': 'Field required'}}]"
            raise CompletionError(400, "Bad Request", text) from error

    def _stream(self, answer: completions.EmulatedCompletion, start: float, pace: AnswerPace) -> float:
        """Return the seconds to the first token."""
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream; charset=utf-8")
        self.send_header("Transfer-Encoding", "chunked")
        self.end_headers()
        first = 0.0
        for number, event in enumerate(completions.events(answer)):
            pace.wait_until(start, number)
            self.wfile.write(f"{len(event):x}\r\n".encode() + event + b"\r\n")
            first = first or time.perf_counter() - start
        self.wfile.write(b"0\r\n\r\n")
        return first

    def log_request(self, code: int | str = "-", size: int | str = "-") -> None:  # noqa: ARG002 - the base class's signature
        if not self.server.has_access_log:
            return
        status = HTTPStatus(int(code))
        place = "{}:{}".format(*self.client_address)
        say(f'(APIServer pid=1) INFO:     {place} - "{self.requestline}" {status} {status.phrase}')


def parsed(body: bytes) -> Mapping[str, Any]:
    try:
        tree = json.loads(body)
    except ValueError as error:
        raise CompletionError(
            400, "Bad Request", f"[{{'type': 'json_invalid', 'msg': 'JSON decode error: {error}'}}]"
        ) from error
    if not isinstance(tree, dict):
        raise CompletionError(400, "Bad Request", "[{'type': 'model_attributes_type', 'loc': ('body',)}]")
    return tree


def empty(handler: ApiHandler, _body: bytes) -> None:
    handler.send_bytes(200, b"", "text/plain")


def version(handler: ApiHandler, _body: bytes) -> None:
    handler.send(200, {"version": handler.server.engine.version})


def load(handler: ApiHandler, _body: bytes) -> None:
    handler.send(200, {"server_load": handler.server.metrics.running_now})


def metrics(handler: ApiHandler, _body: bytes) -> None:
    text = handler.server.metrics.text()
    handler.send_bytes(200, text.encode(), "text/plain; version=0.0.4; charset=utf-8")


def models(handler: ApiHandler, _body: bytes) -> None:
    engine = handler.server.engine
    cards: list[dict[str, Any]] = [
        {
            "id": name,
            "object": "model",
            "created": handler.server.started,
            "owned_by": "vllm",
            "root": engine.model,
            "parent": None,
            "max_model_len": engine.max_model_len,
            "permission": [],
        }
        for name in engine.served_names
    ]
    handler.send(200, {"object": "list", "data": cards})


def tokenize(handler: ApiHandler, body: bytes) -> None:
    """Return one token for each word, numbered by its place."""
    fields = parsed(body)
    with completions.typed_fields():
        is_chat = "messages" in fields
        words = completions.chat_tokens(fields) if is_chat else completions.prompt_tokens(fields)[0]
    counts = {"count": len(words), "max_model_len": handler.server.engine.max_model_len}
    handler.send(200, {**counts, "tokens": list(range(len(words))), "token_strs": None})


def detokenize(handler: ApiHandler, body: bytes) -> None:
    """Return a word for each token: which words they were isn't known here."""
    tokens = parsed(body).get("tokens")
    if not isinstance(tokens, list):
        raise completions.missing("tokens")
    handler.send(200, {"prompt": " ".join(f"token-{token}" for token in tokens)})


def invoke(handler: ApiHandler, body: bytes) -> None:
    """Answer as the first route that takes a body with these fields, in vLLM's order."""
    fields = parsed(body)
    for field, path in INVOCATIONS:
        if field in fields and handler.has(path):
            POSTS[path](handler, body)
            return
    raise completions.bad_request("Cannot find suitable handler for request.")


def documentation(handler: ApiHandler, _body: bytes) -> None:
    handler.send_bytes(200, b"<!doctype html><title>FastAPI - Swagger UI</title>", "text/html; charset=utf-8")


def openapi(handler: ApiHandler, _body: bytes) -> None:
    paths: dict[str, object] = {path: {} for path in sorted(handler.server.engine.paths)}
    handler.send(200, {"openapi": "3.1.0", "info": {"title": "FastAPI", "version": "0.1.0"}, "paths": paths})


# A field that a body needs, and the route that takes it.
INVOCATIONS = (
    ("messages", "/v1/chat/completions"),
    ("prompt", "/v1/completions"),
    ("input", "/v1/embeddings"),
    ("input", "/classify"),
    ("query", "/rerank"),
    *((field, "/score") for field in ("text_1", "queries", "data_1")),
    ("input", "/pooling"),
)
GETS: Mapping[str, Callable[[ApiHandler, bytes], None]] = {
    "/docs": documentation,
    "/health": empty,
    "/kv_event_sources": lambda handler, _body: handler.send(200, {}),
    "/load": load,
    "/metrics": metrics,
    "/openapi.json": openapi,
    "/ping": empty,
    "/redoc": documentation,
    "/v1/models": models,
    "/version": version,
}
POSTS: Mapping[str, Callable[[ApiHandler, bytes], None]] = {
    LOOP_PATH: ApiHandler.loop,
    "/detokenize": detokenize,
    "/invocations": invoke,
    "/is_scaling_elastic_ep": lambda handler, _body: handler.send(200, {"is_scaling_elastic_ep": False}),
    "/ping": empty,
    "/tokenize": tokenize,
    "/v1/chat/completions": lambda handler, body: handler.complete(body, is_chat=True),
    "/v1/completions": lambda handler, body: handler.complete(body, is_chat=False),
    **{path: partial(ApiHandler.pool, path=path) for path in pooling.REPLIES},
}
