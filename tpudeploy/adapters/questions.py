"""Questions put to an endpoint, many at once; what could not be answered is said of each question by itself."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor

from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, NothingSaid, VllmClient
from tpudeploy.core.accuracy.grading import is_right
from tpudeploy.core.accuracy.questions import Question
from tpudeploy.core.accuracy.sheet import Answer

# Nothing of chance that a client can switch off.
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
    """In the order of the questions. Raise `NoAnswer` or `BadAnswer` where already the first one is not answered."""
    first, *rest = questions

    def answer(question: Question) -> Answer:
        try:
            return _asked(client, model, question, max_tokens, now)
        except NoAnswer:
            return _again(client, model, question, max_tokens, now)
        except BadAnswer as cause:
            return Answer(question=question.id, said="", is_right=False, problem=str(cause))

    known = _asked(client, model, first, max_tokens, now)  # a wrong key or name is told once, not of each
    pool = ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="question")
    try:
        return (known, *pool.map(answer, rest))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # after an interrupt, nobody waits for long answers


def _asked(client: VllmClient, model: str, question: Question, max_tokens: int, now: Callable[[], float]) -> Answer:
    try:
        made = client.complete(model, question.prompt, max_tokens=max_tokens, now=now, sampling=_SAMPLING)
    except NothingSaid:
        return Answer(question=question.id, said="", is_right=False)
    return Answer(
        question=question.id,
        said=made.text,
        is_right=is_right(made.text, question.answer),
        is_cut=made.completion_tokens >= max_tokens,
    )


def _again(client: VllmClient, model: str, question: Question, max_tokens: int, now: Callable[[], float]) -> Answer:
    """Once: a question changes nothing, and one connection in thousands breaks."""
    try:
        return _asked(client, model, question, max_tokens, now)
    except (NoAnswer, BadAnswer) as cause:
        return Answer(question=question.id, said="", is_right=False, problem=str(cause))
