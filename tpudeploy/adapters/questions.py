"""Sends questions to an endpoint in parallel. Each answer has its own error if it failed."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tpudeploy.accuracy.questions import Question, is_right
from tpudeploy.accuracy.sheet import Answer
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, NothingSaid, VllmClient

# These settings disable all randomness that a client can disable.
_SAMPLING = {"temperature": 0, "seed": 0}


def ask(
    client: VllmClient,
    model: str,
    questions: Sequence[Question],
    *,
    concurrency: int,
    max_tokens: int,
    now: Callable[[], float],
) -> tuple[Answer, ...]:
    """Return the answers in the order of the questions. Raise `NoAnswer` or `BadAnswer` if the first question fails."""
    first, *rest = questions

    def answer(question: Question) -> Answer:
        try:
            return _answer(client, model, question, max_tokens, now)
        except NoAnswer:
            return _retry(client, model, question, max_tokens, now)
        except BadAnswer as cause:
            return Answer(question=question.id, said="", is_right=False, problem=str(cause))

    first_answer = _answer(client, model, first, max_tokens, now)  # raises once for a wrong key or model name
    pool = ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="question")
    try:
        return (first_answer, *pool.map(answer, rest))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupt must not wait for long answers


def _answer(client: VllmClient, model: str, question: Question, max_tokens: int, now: Callable[[], float]) -> Answer:
    try:
        completion = client.complete(model, question.prompt, max_tokens=max_tokens, now=now, sampling=_SAMPLING)
    except NothingSaid:
        return Answer(question=question.id, said="", is_right=False)
    tokens = len(completion.pieces) if completion.completion_tokens is None else completion.completion_tokens
    return Answer(
        question=question.id,
        said=completion.text,
        is_right=is_right(completion.text, question.answer),
        is_cut=tokens >= max_tokens,
    )


def _retry(client: VllmClient, model: str, question: Question, max_tokens: int, now: Callable[[], float]) -> Answer:
    """Ask a question once more. That is safe, because it changes nothing, and one connection in thousands breaks."""
    try:
        return _answer(client, model, question, max_tokens, now)
    except (NoAnswer, BadAnswer) as cause:
        return Answer(question=question.id, said="", is_right=False, problem=str(cause))
