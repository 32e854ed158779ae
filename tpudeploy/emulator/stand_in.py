"""What a simulated node answers on its port: enough of vLLM's API to be found healthy. machine/vllm has more."""

from __future__ import annotations

import json
from collections.abc import Iterator
from itertools import cycle, islice
from typing import Any

from tpudeploy.emulator.machine.vllm.engine import Engine
from tpudeploy.emulator.machine.vllm.metrics import Metrics
from tpudeploy.emulator.server import Reply
from tpudeploy.emulator.streams import Streams
from tpudeploy.emulator.sums import reckoned

ANSWER = "This is the tpudeploy emulator; no model is loaded."
_MODEL = "emulated"


def answer(
    method: str,
    target: str,
    body: bytes,
    *,
    serves: bool,
    streams: Streams,
    token_seconds: float = 0.0,
    engine: Engine | None = None,
) -> Reply:
    """Any model asked for is there. `engine` is what its script would start, as far as that can be read.

    Whoever wants a stream that goes on (`ignore_eos`) gets a token each `token_seconds`.
    """
    if not serves:
        return Reply(http=503, body="")
    sent = json.loads(body) if body else {}
    match method, target:
        case "GET", "/health":
            return Reply(http=200, body="")
        case "GET", "/v1/models":
            return Reply(http=200, body={"object": "list", "data": _models(engine)})
        case "GET", "/version" if engine is not None:
            return Reply(http=200, body={"version": engine.version})
        case "GET", "/metrics" if engine is not None:
            told = Metrics(engine)
            told.running_now = streams.running
            return Reply(http=200, body=told.text())
        case "POST", "/v1/chat/completions":
            said = _said(sent, engine)
            return _completion(sent, "chat.completion", {"message": {"role": "assistant", "content": said}})
        case "POST", "/v1/completions":
            goes_on = sent.get("stream") and sent.get("ignore_eos")
            return (
                _long(sent, streams, token_seconds)
                if goes_on
                else _completion(sent, "text_completion", {"text": ANSWER})
            )
        case _:
            return Reply(http=404, body={"detail": "Not Found"})


def _said(sent: dict[str, Any], engine: Engine | None) -> str:
    """Of itself, or of a sum, where its scenario says that it reckons."""
    if engine is None or engine.knows is None:
        return ANSWER
    prompt = " ".join(str(message.get("content", "")) for message in sent.get("messages", []))
    return reckoned(prompt, engine.knows) or ANSWER


def _models(engine: Engine | None) -> list[dict[str, Any]]:
    card = {"object": "model", "owned_by": "tpudeploy-emulator"}
    if engine is None:
        return [{"id": _MODEL, **card}]
    more = {"root": engine.model, "max_model_len": engine.max_model_len}
    return [{"id": name, **card, **more} for name in engine.served_names]


def _completion(sent: dict[str, Any], kind: str, choice: dict[str, Any]) -> Reply:
    words = len(ANSWER.split())
    whole = {
        "id": "emulated-1",
        "object": kind,
        "model": sent.get("model", _MODEL),
        "choices": [{"index": 0, "finish_reason": "stop", **choice}],
        "usage": {"prompt_tokens": 1, "completion_tokens": words, "total_tokens": words + 1},
    }
    return _stream(whole) if sent.get("stream") else Reply(http=200, body=whole)


def _long(sent: dict[str, Any], streams: Streams, seconds: float) -> Reply:
    return Reply(http=200, body=streams.paced(tuple(_tokens(sent)), seconds), content_type="text/event-stream")


def _tokens(sent: dict[str, Any]) -> Iterator[bytes]:
    """As many as were asked for, one event each."""
    for word in islice(cycle(ANSWER.split()), int(sent.get("max_tokens", 1))):
        chunk = {"object": "text_completion", "choices": [{"index": 0, "text": f"{word} ", "finish_reason": None}]}
        yield f"data: {json.dumps(chunk)}\n\n".encode()
    yield b"data: [DONE]\n\n"


def _stream(whole: dict[str, Any]) -> Reply:
    """The whole answer as one chunk: who streams counts chunks of a machine, not of a simulation."""
    choices = [{**c, "delta": c.get("message", {})} for c in whole["choices"]]
    chunk = {**whole, "object": f"{whole['object']}.chunk", "choices": choices}
    return Reply(http=200, body=f"data: {json.dumps(chunk)}\n\ndata: [DONE]\n\n", content_type="text/event-stream")
