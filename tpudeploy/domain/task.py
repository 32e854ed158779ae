"""Task: what a server does with a prompt, the requests that it answers, and how a reply is proven.

vLLM attaches completion routes for models that generate, and pooling routes for the others, so a request for the wrong
task ends with 404. Paths, bodies and replies: vLLM 0.32.0 entrypoints/launchers/api_server/routers.py,
entrypoints/pooling/factories.py and the protocol.py of each route.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import isfinite
from typing import Any


class Task(StrEnum):
    """What a server does. UNKNOWN: neither the profile nor the catalogue says so, and the server's routes decide."""

    GENERATE = "generate"
    EMBED = "embed"
    SCORE = "score"
    CLASSIFY = "classify"
    POOL = "pool"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskOrigin:
    """The task of a deployment. `because` is what decided it, for display: `args.runner: pooling`."""

    task: Task
    because: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskReply:
    """What a reply that is proven shows. `text` is for people; `values` are its numbers, none for a completion."""

    text: str
    values: tuple[float, ...] = ()
    prompt_tokens: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskTrial:
    """One request that proves a server: the body for a model and a prompt, and the numbers in a reply to it.

    `numbers` raises KeyError, TypeError, ValueError or IndexError for a reply in another form.
    """

    path: str
    body: Callable[[str, str], Mapping[str, Any]]
    numbers: Callable[[Mapping[str, Any]], Sequence[Any]]
    noun: str
    is_vector: bool = False

    def prove(self, tree: Mapping[str, Any]) -> TaskReply:
        """Return what a reply shows. Raise ValueError where it has no finite number, or not the form of the route."""
        try:
            values = tuple(float(number) for number in self.numbers(tree))
        except (AttributeError, IndexError, KeyError, TypeError, ValueError) as cause:
            raise ValueError(f"the reply has no {self.noun}") from cause
        if not values or not all(map(isfinite, values)):
            raise ValueError(f"its {self.noun}: {'not a finite number' if values else 'empty'}")
        usage = tree.get("usage") or {}
        count = usage.get("prompt_tokens") if isinstance(usage, Mapping) else None
        return TaskReply(text=self._text(values), values=values, prompt_tokens=count if type(count) is int else None)

    def _text(self, values: tuple[float, ...]) -> str:
        first = ", ".join(f"{value:.4g}" for value in values[:_SHOWN])
        more = ", …" if len(values) > _SHOWN else ""
        size = f" of {len(values):,} dimensions" if self.is_vector else ""
        return f"{self.noun}{size}: {first}{more}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Completing:
    """A request for a completion: its path, and the body for a model and a prompt."""

    path: str
    body: Callable[[str, str], Mapping[str, Any]]


@dataclass(frozen=True, slots=True, kw_only=True)
class TaskFacts:
    """The facts of a task. `noun` is one answer, `verb` what a healthy server did, and `serves` what clients get.

    `trials` are in the order to try: a route that a server does not have answers 4xx, and the next one is tried.
    """

    completions: tuple[Completing, ...]
    trials: tuple[TaskTrial, ...]
    noun: str
    verb: str
    serves: str

    @property
    def requests(self) -> Iterator[Completing | TaskTrial]:
        yield from self.completions
        yield from self.trials


_SHOWN = 4  # values of a vector in a text
_OTHER = "A server answers requests."  # the other text of a pair: whether it fits the prompt does not matter


def _chat(model: str, prompt: str) -> Mapping[str, Any]:
    return {"model": model, "messages": [{"role": "user", "content": prompt}], "max_tokens": 64, "temperature": 0}


def _completion(model: str, prompt: str) -> Mapping[str, Any]:
    return {"model": model, "prompt": prompt, "max_tokens": 64, "temperature": 0}


def _input(model: str, prompt: str) -> Mapping[str, Any]:
    return {"model": model, "input": prompt}


def _pair(model: str, prompt: str) -> Mapping[str, Any]:
    return {"model": model, "text_1": prompt, "text_2": _OTHER}


def _first_vector(tree: Mapping[str, Any]) -> Sequence[Any]:
    """Return the vector of a text, or the first one where each token has its own."""
    vector: Sequence[Any] = tree["data"][0]["data"]
    return vector[0] if vector and isinstance(vector[0], list) else vector


_COMPLETIONS = (
    Completing(path="/v1/chat/completions", body=_chat),
    # A base model has no chat template.
    Completing(path="/v1/completions", body=_completion),
)
_EMBEDDING = TaskTrial(
    path="/v1/embeddings",
    body=_input,
    numbers=lambda tree: tree["data"][0]["embedding"],
    noun="embedding",
    is_vector=True,
)
# `/rerank` is this with a query and documents; vLLM has both routes or none of them.
_SCORE = TaskTrial(path="/score", body=_pair, numbers=lambda tree: [tree["data"][0]["score"]], noun="score")
_CLASSES = TaskTrial(
    path="/classify", body=_input, numbers=lambda tree: tree["data"][0]["probs"], noun="class probabilities"
)
# Every model that pools has it.
_POOLING = TaskTrial(path="/pooling", body=_input, numbers=_first_vector, noun="pooled output", is_vector=True)

TASKS: Mapping[Task, TaskFacts] = {
    Task.GENERATE: TaskFacts(
        completions=_COMPLETIONS,
        trials=(),
        noun="a completion",
        verb="completed a prompt",
        serves="completions",
    ),
    Task.EMBED: TaskFacts(
        completions=(),
        trials=(_EMBEDDING,),
        noun="an embedding",
        verb="returned an embedding",
        serves="embeddings (/v1/embeddings)",
    ),
    Task.SCORE: TaskFacts(
        completions=(),
        trials=(_SCORE, _CLASSES),  # vLLM attaches the routes of scores where the model has one label
        noun="a score",
        verb="returned a score",
        serves="scores (/score, /rerank)",
    ),
    Task.CLASSIFY: TaskFacts(
        completions=(),
        trials=(_CLASSES,),
        noun="a classification",
        verb="classified a text",
        serves="classes (/classify)",
    ),
    Task.POOL: TaskFacts(
        completions=(),
        trials=(_POOLING,),
        noun="a pooling request",
        verb="pooled a text",
        serves="pooled outputs (/pooling)",
    ),
    Task.UNKNOWN: TaskFacts(
        completions=_COMPLETIONS,
        trials=(_EMBEDDING, _SCORE, _CLASSES, _POOLING),
        noun="a request",
        verb="answered a request",
        serves="what its routes say",
    ),
}


def is_absent_route(status: int) -> bool:
    """Return whether a status means that a server has no such route, or no such handler: another one may answer.

    vLLM answers 404 for a route that it did not attach, 405 for another method, and 501 for one without a handler.
    """
    return status in _ABSENT


_ABSENT = frozenset({404, 405, 501})
