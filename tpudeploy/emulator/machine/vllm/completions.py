"""The answers of the stand-in to a prompt: plain words about itself, in the form of vLLM's bodies."""

from __future__ import annotations

import itertools
import json
import zlib
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from typing import Any

from tpudeploy.emulator.machine.vllm.engine import EmulatedEngine

DEFAULT_COMPLETION_TOKENS = 16
NO_TEMPLATE = (
    "As of transformers v4.44, default chat template is no longer allowed, so you must provide a chat template if the "
    "tokenizer does not define one."
)
SENTENCE = "This is the tpudeploy emulator, standing in for {model}: no model ran. The prompt had {count} tokens."


class CompletionError(Exception):
    """Ends a request with vLLM's error body: status, type, text and the parameter that it is about."""

    def __init__(self, status: int, kind: str, message: str, param: str | None = None) -> None:
        super().__init__(message)
        self.status = status
        self.body = {"error": {"message": message, "type": kind, "param": param, "code": status}}


def bad_request(message: str, param: str | None = None) -> CompletionError:
    return CompletionError(400, "BadRequestError", message, param)


@dataclass(frozen=True, slots=True, kw_only=True)
class Prompt:
    """One request, checked. A token is a word, or a number where the prompt is a list of numbers.

    `prefixes` has a hash for each whole block of the prompts, with all of its prompt before it.
    """

    is_chat: bool
    model: str
    sizes: tuple[int, ...]
    limits: tuple[int, ...]
    copies: int
    stream: bool
    include_usage: bool
    ignore_eos: bool
    prefixes: tuple[int, ...]


def read(engine: EmulatedEngine, body: Mapping[str, Any], *, is_chat: bool) -> Prompt:
    """Raise CompletionError, also for a body whose fields have other types than vLLM's."""
    with typed_fields():
        return _read(engine, body, is_chat=is_chat)


@contextmanager
def typed_fields() -> Iterator[None]:
    """Raise CompletionError for a field of another type than vLLM's."""
    try:
        yield
    except (AttributeError, TypeError, ValueError) as error:
        raise CompletionError(
            400, "Bad Request", f"[{{'type': 'type_error', 'loc': ('body',), 'msg': '{error}'}}]"
        ) from error


def _read(engine: EmulatedEngine, body: Mapping[str, Any], *, is_chat: bool) -> Prompt:
    model = body.get("model") or engine.served_names[0]
    if model not in engine.served_names:
        raise CompletionError(404, "NotFoundError", f"The model `{model}` does not exist.", "model")
    if is_chat and not engine.has_chat_template:
        raise bad_request(NO_TEMPLATE)
    _refuse_what_takes_a_model(body)
    texts = (chat_tokens(body),) if is_chat else prompt_tokens(body)
    _refuse_unknown_ids(engine, texts)
    sizes = tuple(map(len, texts))
    max_tokens = body.get("max_completion_tokens") or body.get("max_tokens") if is_chat else body.get("max_tokens")
    if max_tokens is None and not is_chat:
        max_tokens = DEFAULT_COMPLETION_TOKENS
    return Prompt(
        is_chat=is_chat,
        model=model,
        sizes=sizes,
        limits=tuple(_limit(engine, size, max_tokens) for size in sizes),
        copies=int(body.get("n") or 1),
        stream=bool(body.get("stream")),
        include_usage=bool((body.get("stream_options") or {}).get("include_usage")),
        ignore_eos=bool(body.get("ignore_eos")),
        prefixes=tuple(hashed for text in texts for hashed in _prefixes(text, engine.cache.block_size)),
    )


def _refuse_unknown_ids(engine: EmulatedEngine, prompts: Sequence[Sequence[object]]) -> None:
    """Raise CompletionError for a token id that the model does not have (vLLM 0.32.0, v1/engine/input_processor.py)."""
    largest = max((token for prompt in prompts for token in prompt if isinstance(token, int)), default=0)
    if engine.vocabulary is not None and largest >= engine.vocabulary:
        raise bad_request(f"Token id {largest} is out of vocabulary", "prompt")


def _refuse_what_takes_a_model(body: Mapping[str, Any]) -> None:
    """Raise CompletionError for what only a model can answer: an answer without it would claim that it was done."""
    fields = [field for field, is_harmless in TAKES_A_MODEL.items() if not is_harmless(body.get(field))]
    kinds = {str(part.get("type")) for part in _parts_of(body)} - {"text"}
    if fields or kinds:
        what = " and ".join(
            (*(f"`{field}`" for field in fields), *(f"`{kind}` in a message" for kind in sorted(kinds)))
        )
        message = f"The tpudeploy emulator runs no model, and its stand-in cannot do {what}. Ask a real server."
        raise CompletionError(501, "NotImplementedError", message, next(iter(fields), "messages"))


def _parts_of(body: Mapping[str, Any]) -> Iterator[Mapping[str, Any]]:
    for message in body.get("messages") or ():
        if isinstance(message.get("content"), list):
            yield from message["content"]


def _is_unset(value: object) -> bool:
    return not value


# What only a model can answer, each with the values that ask for nothing.
TAKES_A_MODEL: Mapping[str, Callable[[Any], bool]] = {
    "echo": _is_unset,
    "guided_json": _is_unset,
    "logprobs": lambda value: value is None or value is False,
    "prompt_logprobs": lambda value: value is None,
    "response_format": lambda value: not value or value.get("type") == "text",
    "structured_outputs": _is_unset,
    "suffix": _is_unset,
    "tool_choice": lambda value: value in (None, "none", "auto"),
    "use_beam_search": _is_unset,
}


def _limit(engine: EmulatedEngine, size: int, max_tokens: int | None) -> int:
    room = engine.max_model_len - size
    if room < 1 or (max_tokens is not None and max_tokens < 1):
        limit = 0 if room < 1 else max_tokens
        raise bad_request(
            f"max_tokens must be at least 1, got {limit}. (parameter=max_tokens, value={limit})", "max_tokens"
        )
    return room if max_tokens is None else min(room, max_tokens)


def chat_tokens(body: Mapping[str, Any]) -> Sequence[object]:
    messages = body.get("messages")
    if not isinstance(messages, list) or not messages:
        raise missing("messages")
    return [word for message in messages for word in _words_in(message.get("content") or "")]


def _words_in(content: Any) -> list[str]:
    if isinstance(content, str):
        return content.split()
    return [word for part in content for word in str(part.get("text", "")).split()]


def prompt_tokens(body: Mapping[str, Any]) -> tuple[Sequence[object], ...]:
    match body.get("prompt"):
        case str(text):
            return (text.split(),)
        case [int(), *_] as tokens:
            return (tokens,)
        case [list(), *_] | [str(), *_] as several:
            return tuple(one.split() if isinstance(one, str) else one for one in several)
        case _:
            raise missing("prompt")


def _prefixes(tokens: Sequence[object], block: int) -> Iterator[int]:
    """Yield a hash for each whole block without the last token, which is always computed (kv_cache_manager.py)."""
    before = 0
    for begin in range(0, (len(tokens) - 1) // block * block, block):
        before = hash((before, *tokens[begin : begin + block]))
        yield before


def missing(name: str) -> CompletionError:
    return CompletionError(
        400, "Bad Request", f"[{{'type': 'missing', 'loc': ('body', '{name}'), 'msg': 'Field required'}}]"
    )


@dataclass(frozen=True, slots=True, kw_only=True)
class CompletionChoice:
    words: tuple[str, ...]
    reason: str

    @property
    def text(self) -> str:
        return " ".join(self.words)


@dataclass(frozen=True, slots=True, kw_only=True)
class EmulatedCompletion:
    id: str
    created: int
    prompt: Prompt
    choices: tuple[CompletionChoice, ...]

    @property
    def usage(self) -> dict[str, Any]:
        prompt_tokens = sum(self.prompt.sizes)
        completion_tokens = sum(len(choice.words) for choice in self.choices)
        return {
            "prompt_tokens": prompt_tokens,
            "total_tokens": prompt_tokens + completion_tokens,
            "completion_tokens": completion_tokens,
            "prompt_tokens_details": None,
        }


def answer(engine: EmulatedEngine, prompt: Prompt, number: int, now: float) -> EmulatedCompletion:
    choices = [
        _choice(engine, size, limit, ignore_eos=prompt.ignore_eos)
        for size, limit in zip(prompt.sizes, prompt.limits, strict=True)
        for _ in range(prompt.copies)
    ]
    prefix = "chatcmpl" if prompt.is_chat else "cmpl"
    identity = "".join(f"{zlib.crc32(str(number).encode(), salt):08x}" for salt in range(4))
    return EmulatedCompletion(id=f"{prefix}-{identity}", created=int(now), prompt=prompt, choices=tuple(choices))


def _choice(engine: EmulatedEngine, size: int, limit: int, *, ignore_eos: bool) -> CompletionChoice:
    sentence = SENTENCE.format(model=engine.model, count=size).split()
    if len(sentence) > limit or ignore_eos:
        return CompletionChoice(words=tuple(itertools.islice(itertools.cycle(sentence), limit)), reason="length")
    return CompletionChoice(words=tuple(sentence), reason="stop")


def whole(reply: EmulatedCompletion) -> dict[str, Any]:
    """Return the body of an answer that is not streamed."""
    chat = reply.prompt.is_chat
    body = _head(reply, "chat.completion" if chat else "text_completion")
    body["choices"] = [_whole_choice(index, choice, is_chat=chat) for index, choice in enumerate(reply.choices)]
    return body | {"service_tier": None, "system_fingerprint": None, "usage": reply.usage, "kv_transfer_params": None}


def _whole_choice(index: int, choice: CompletionChoice, *, is_chat: bool) -> dict[str, Any]:
    message: dict[str, Any] = {
        "role": "assistant",
        "content": choice.text,
        "refusal": None,
        "tool_calls": [],
        "reasoning": None,
    }
    text = {"message": message} if is_chat else {"text": choice.text}
    return {"index": index, **text, "logprobs": None, "finish_reason": choice.reason, "stop_reason": None}


def events(reply: EmulatedCompletion) -> Iterator[bytes]:
    """Yield the server-sent events of a streamed answer: one token each."""
    kind = "chat.completion.chunk" if reply.prompt.is_chat else "text_completion"
    for index, choice in enumerate(reply.choices):
        for part in _parts(choice, is_chat=reply.prompt.is_chat):
            yield _event({**_head(reply, kind), "choices": [{"index": index, "logprobs": None, **part}]})
    if reply.prompt.include_usage:
        yield _event({**_head(reply, kind), "choices": [], "usage": reply.usage})
    yield b"data: [DONE]\n\n"


def _parts(choice: CompletionChoice, *, is_chat: bool) -> Sequence[dict[str, Any]]:
    tokens = [word if at == 0 else f" {word}" for at, word in enumerate(choice.words)]
    if not is_chat:
        *most, last = tokens
        return [{"text": token, "finish_reason": None} for token in most] + [
            {"text": last, "finish_reason": choice.reason}
        ]
    first = {"delta": {"role": "assistant", "content": ""}, "finish_reason": None}
    middle = [{"delta": {"content": token}, "finish_reason": None} for token in tokens]
    return [first, *middle, {"delta": {"content": ""}, "finish_reason": choice.reason}]


def _head(reply: EmulatedCompletion, kind: str) -> dict[str, Any]:
    return {"id": reply.id, "object": kind, "created": reply.created, "model": reply.prompt.model}


def _event(body: Mapping[str, Any]) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"
