"""The answers of a simulated node on its port: enough of vLLM's API to count as healthy. machine/vllm has more."""

from __future__ import annotations

import ast
import json
import operator
import re
import threading
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from itertools import cycle, islice
from typing import Any

from tpudeploy.emulator.clock import EmulatorClock
from tpudeploy.emulator.http_server import HttpRequest, Reply
from tpudeploy.emulator.machine.sleepers import DEADLINE, Sleepers
from tpudeploy.emulator.machine.vllm import pooling
from tpudeploy.emulator.machine.vllm.engine import EmulatedEngine
from tpudeploy.emulator.machine.vllm.metrics import VllmMetrics

ANSWER = "This is the tpudeploy emulator; no model is loaded."
_MODEL = "emulated"
_EVENTS = "text/event-stream"


class Streams:
    """Answers that send one token in a number of seconds of the emulator's clock.

    Which of them are under way depends on the clock alone, however late a thread writes: tests rely on it.
    """

    def __init__(self, clock: EmulatorClock) -> None:
        self._clock = clock
        self._sleepers = Sleepers(clock)
        self._ends: dict[object, float] = {}
        self._changed = threading.Condition()

    @property
    def running(self) -> int:
        now = self._clock.now()
        with self._changed:
            return sum(end > now for end in self._ends.values())

    def paced(self, chunks: Sequence[bytes], seconds: float) -> Iterator[bytes]:
        """Return the chunks, `seconds` apart; the first comes at once."""
        start, key = self._clock.now(), object()
        with self._changed:
            self._ends[key] = start + seconds * (len(chunks) - 1)
        return self._write(key, chunks, start, seconds)

    def settle(self) -> None:
        """Wait until every stream that is over by the clock is written to its end. Raise TimeoutError."""
        now = self._clock.now()
        with self._changed:
            if not self._changed.wait_for(lambda: all(end > now for end in self._ends.values()), timeout=DEADLINE):
                raise TimeoutError("a stream is over, and not written to its end")

    def close(self) -> None:
        """Cut off every stream under way."""
        self._sleepers.wake_all(for_good=True)

    def _write(self, key: object, chunks: Sequence[bytes], start: float, seconds: float) -> Iterator[bytes]:
        try:
            for number, chunk in enumerate(chunks):
                due = start + seconds * number
                self._sleepers.sleep_until("stream", due)
                if self._sleepers.closed and self._clock.now() < due:
                    return
                yield chunk
        finally:
            with self._changed:
                self._ends.pop(key, None)
                self._changed.notify_all()


def answer(
    request: HttpRequest,
    *,
    streams: Streams,
    token_seconds: float,
    engine: EmulatedEngine | None,
    served_seconds: float = 0.0,
) -> Reply:
    """Answer a request to a server that has served for `served_seconds`, for any model.

    `engine` is the engine of its script, as far as that can be read. A stream with `ignore_eos` has a token each
    `token_seconds`.
    """
    body = json.loads(request.body) if request.body else {}
    is_attached = engine is None or request.path in engine.paths
    match request.method, request.path if is_attached else "":
        case "GET", "/health":
            return Reply(http=200, body="")
        case "GET", "/v1/models":
            return Reply(http=200, body={"object": "list", "data": _models(engine)})
        case "GET", "/version" if engine is not None:
            return Reply(http=200, body={"version": engine.version})
        case "GET", "/metrics" if engine is not None:
            metrics = VllmMetrics(engine, served_seconds=lambda: served_seconds)
            metrics.running_now = streams.running
            return Reply(http=200, body=metrics.text())
        case "POST", "/v1/chat/completions":
            message = {"role": "assistant", "content": _chat_answer(body, engine)}
            return _completion(body, "chat.completion", {"message": message})
        case "POST", "/v1/completions" if body.get("stream") and body.get("ignore_eos"):
            return Reply(http=200, body=streams.paced(tuple(_tokens(body)), token_seconds), content_type=_EVENTS)
        case "POST", "/v1/completions":
            return _completion(body, "text_completion", {"text": ANSWER})
        case method, path:
            return _pooling_reply(engine, path if method == "POST" else "", body)


def _pooling_reply(engine: EmulatedEngine | None, path: str, body: dict[str, Any]) -> Reply:
    if engine is None or path not in pooling.REPLIES:
        return Reply(http=404, body={"detail": "Not Found"})
    try:
        return Reply(http=200, body=pooling.reply(engine.task, path, body, str(body.get("model", _MODEL))))
    except (AttributeError, TypeError, ValueError) as error:
        return Reply(http=400, body={"error": {"message": f"{error}: Field required", "code": 400}})


def _chat_answer(body: dict[str, Any], engine: EmulatedEngine | None) -> str:
    """Return an answer about the stand-in, or the result of a sum, where its scenario says that it knows sums."""
    if engine is None or engine.knows is None:
        return ANSWER
    prompt = " ".join(str(message.get("content", "")) for message in body.get("messages", []))
    return answer_sum(prompt, engine.knows) or ANSWER


def _models(engine: EmulatedEngine | None) -> list[dict[str, Any]]:
    card = {"object": "model", "owned_by": "tpudeploy-emulator"}
    if engine is None:
        return [{"id": _MODEL, **card}]
    more = {"root": engine.model, "max_model_len": engine.max_model_len}
    return [{"id": name, **card, **more} for name in engine.served_names]


def _completion(body: dict[str, Any], kind: str, choice: dict[str, Any]) -> Reply:
    words = len(ANSWER.split())
    completion = {
        "id": "emulated-1",
        "object": kind,
        "model": body.get("model", _MODEL),
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 1, "completion_tokens": words, "total_tokens": words + 1},
    }
    if not body.get("stream"):
        return Reply(http=200, body=completion)
    # The whole answer is one chunk: only the chunks of a machine, not of a simulation, are worth counting.
    choices = [{**c, "delta": c.get("message", {})} for c in completion["choices"]]
    chunk = {**completion, "object": f"{kind}.chunk", "choices": choices}
    return Reply(http=200, body=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", content_type=_EVENTS)


def _tokens(body: dict[str, Any]) -> Iterator[bytes]:
    """Yield `max_tokens` tokens, one event each."""
    for word in islice(cycle(ANSWER.split()), int(body.get("max_tokens", 1))):
        chunk = {"object": "text_completion", "choices": [{"index": 0, "text": f"{word} ", "finish_reason": None}]}
        yield f"data: {json.dumps(chunk)}\n\n".encode()
    yield b"data: [DONE]\n\n"


_SUM = re.compile(r"What is ([0-9 +*()-]{1,80})\?")
# Sums in the form of a story: the numbers in their order, and the calculation.
_STORIES: tuple[tuple[re.Pattern[str], Callable[..., int]], ...] = (
    (re.compile(r"has (\d{1,9}) boxes, gets (\d{1,9}) more, and sells (\d{1,9})\."), lambda a, b, c: a + b - c),
    (re.compile(r"(\d{1,9}) shelves hold (\d{1,9}) books each, and (\d{1,9}) books"), lambda a, b, c: a * b - c),
)
_OPERATIONS: Mapping[type[ast.operator], Callable[[int, int], int]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
}


def answer_sum(prompt: str, share: float) -> str | None:
    """Return an answer as a model would write it, right for this `share` of sums; None for a prompt without a sum.

    A sum that is right with a smaller share is right with a larger one too.
    """
    right = _calculate(prompt)
    if right is None:
        return None
    rank = zlib.crc32(prompt.encode()) / 2**32
    return f"Let me reckon.\nAnswer: {right if rank < share else right + 1}"


def _calculate(prompt: str) -> int | None:
    match = _SUM.search(prompt)
    if match is not None:
        try:
            return _value(ast.parse(match[1].strip(), mode="eval").body)
        except (SyntaxError, ValueError):
            return None
    for story, calculate in _STORIES:
        numbers = story.search(prompt)
        if numbers is not None:
            return calculate(*map(int, numbers.groups()))
    return None


def _value(expression: ast.expr) -> int:
    match expression:
        case ast.Constant(value=int(number)):
            return number
        case ast.BinOp(left=left, op=op, right=right) if type(op) in _OPERATIONS:
            return _OPERATIONS[type(op)](_value(left), _value(right))
        case _:
            raise ValueError("not a sum")
