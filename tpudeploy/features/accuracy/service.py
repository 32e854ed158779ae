"""Accuracy tests of a workspace: servers are asked questions with known answers, and the answers are stored."""

from __future__ import annotations

import tempfile
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass, replace
from pathlib import Path
from urllib.parse import urlsplit

from tpudeploy.adapters import records
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, NothingSaid, VllmClient
from tpudeploy.config.profile import Profile
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.errors import Interrupted, QueryFailed, UsageError
from tpudeploy.features.accuracy import lm_eval, sheet
from tpudeploy.features.accuracy.questions import (
    ARITHMETIC,
    ARITHMETIC_QUESTIONS,
    Question,
    QuestionSet,
    arithmetic,
    is_right,
    parsed,
)
from tpudeploy.features.accuracy.sheet import GradedAnswer, Sheet, Terms
from tpudeploy.features.accuracy.store import LocalSheets, read_text
from tpudeploy.node.serving import served_model
from tpudeploy.operations.endpoint import check_declared, no_answer, published_endpoint, require_completions
from tpudeploy.workspace import Workspace

CONCURRENCY = 64  # for a server whose maximum of parallel requests is unknown
MAX_TOKENS = 512
_LM_EVAL = "lm_eval:"
_TIMEOUT = 600.0  # seconds without a byte: a question may wait in a queue behind hundreds of others


@dataclass(frozen=True, slots=True, kw_only=True)
class ExaminedServer:
    """The server to ask. `at_once` is the number of requests that it can run together."""

    client: VllmClient
    api_key: str | None
    model: str
    at_once: int
    deployment: str = ""
    image: str = ""
    command: tuple[str, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class QuestionRequest:
    """The questions and how to ask them. None means as the other server was asked, or the default.

    `source` is `arithmetic`, `lm_eval:TASK`, or a JSONL file in `folder`; `count` limits the questions to the first of
    them.
    """

    source: str
    folder: Path = Path()
    count: int | None = None
    concurrency: int | None = None
    max_tokens: int | None = None

    @property
    def lm_eval_task(self) -> str:
        """Return the task of lm_eval, or "" for other questions."""
        return self.source.removeprefix(_LM_EVAL) if self.source.startswith(_LM_EVAL) else ""


class AccuracyTests:
    """Asks servers. The answers are kept in `sheets`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.sheets = LocalSheets(workspace.adapters.own_folder("runs").sub("accuracy"))

    def deployment(self, profile: Profile) -> ExaminedServer:
        """Return the published endpoint of a deployment.

        Raise `errors.QueryFailed` where it has none, `errors.UsageError` where its server is not the one that the
        profile declares: a comparison of two flags must not compare one with itself.
        """
        require_completions(self._workspace.deployment(profile, script=False), "it cannot be asked questions")
        endpoint = published_endpoint(self._workspace, profile)
        deployment, budget = endpoint.deployment, endpoint.deployment.budget
        check_declared(deployment, endpoint.attempt, deployment.name, hint="Run `tpudeploy apply` first.")
        at_once = CONCURRENCY
        if isinstance(budget, HbmBudget):
            # As many as the server may run: the errors of less exact numbers show in full batches.
            at_once = budget.engine.max_num_seqs * budget.engine.data_parallel
        return ExaminedServer(
            client=VllmClient(endpoint.url, api_key=endpoint.api_key, timeout=_TIMEOUT),
            api_key=endpoint.api_key,
            model=served_model(deployment),
            at_once=at_once,
            deployment=deployment.name,
            image=deployment.container.image,
            command=deployment.container.serve,
        )

    def address(self, url: str, *, api_key: str | None = None) -> ExaminedServer:
        """Return any server, by the first name that it serves. Raise `errors.QueryFailed` or `errors.UsageError`."""
        if not urlsplit(url).hostname:
            raise UsageError(f"`{url}` is not an address.", hint="Write http://HOST:PORT.")
        client = VllmClient(url.rstrip("/"), api_key=api_key, timeout=_TIMEOUT)
        try:
            names = client.models()
        except (NoAnswer, BadAnswer) as cause:
            raise _unanswered(client, cause) from cause
        if not names:
            raise QueryFailed(f"{url} serves no model.")
        return ExaminedServer(client=client, api_key=api_key, model=names[0], at_once=CONCURRENCY)

    def ask_as(
        self,
        server: ExaminedServer,
        request: QuestionRequest,
        *,
        at_once: int,
        before: Sheet | None,
        on_message: Callable[[str], None],
    ) -> Sheet:
        """Ask a server the questions as `before` was asked, except for what the request sets.

        `at_once` is the number of parallel requests if neither sets it; `on_message` gets a line before the first
        question. Raise as `ask` and `run_lm_eval` do, and `errors.UsageError` for questions that cannot be read.
        """
        concurrency = request.concurrency or (before and before.concurrency) or at_once
        max_tokens = request.max_tokens or (before and before.terms.max_tokens) or MAX_TOKENS
        if request.lm_eval_task:
            on_message(f"lm_eval asks {server.client.url}, {concurrency} questions at once...")
            return self.run_lm_eval(
                server, request.lm_eval_task, count=request.count, concurrency=concurrency, max_tokens=max_tokens
            )
        question_set = read_questions(request)
        on_message(f"Asking {server.client.url} {len(question_set.questions)} questions, {concurrency} at once...")
        return self.ask(server, question_set, concurrency=concurrency, max_tokens=max_tokens)

    def ask(self, server: ExaminedServer, question_set: QuestionSet, *, concurrency: int, max_tokens: int) -> Sheet:
        """Ask every question and store the answers. Raise `errors.QueryFailed` where the first one gets no answer.

        Raise `errors.Interrupted` for a KeyboardInterrupt. Some of the answers are no test, so none is stored then.
        """
        try:
            answers = ask(
                server.client,
                server.model,
                question_set.questions,
                concurrency=concurrency,
                max_tokens=max_tokens,
                now=self._workspace.adapters.clock.now,
            )
        except (NoAnswer, BadAnswer) as cause:
            raise _unanswered(server.client, cause) from cause
        except KeyboardInterrupt as cause:
            hint = "Run the same command again; -questions N asks fewer."
            raise Interrupted("Interrupted before every question was answered: nothing is kept.", hint=hint) from cause
        terms = Terms(questions=question_set.name, digest=question_set.digest, max_tokens=max_tokens)
        return self._store(server, terms, answers, concurrency)

    def run_lm_eval(
        self, server: ExaminedServer, task: str, *, count: int | None, concurrency: int, max_tokens: int
    ) -> Sheet:
        """Run a task of lm_eval in its own program. Raise `errors.UsageError` where that is not installed."""
        with tempfile.TemporaryDirectory(prefix="tpudeploy-lm-eval-") as folder:
            command = lm_eval.command(
                url=server.client.url,
                model=server.model,
                task=task,
                count=count,
                concurrency=concurrency,
                max_tokens=max_tokens,
                out=folder,
            )
            text = lm_eval.run(command, Path(folder), api_key=server.api_key)
        result = lm_eval.sheet(text, source="lm_eval", task=task)
        return self._store(server, result.terms, result.answers, concurrency)

    def _store(
        self, server: ExaminedServer, terms: Terms, answers: tuple[GradedAnswer, ...], concurrency: int
    ) -> Sheet:
        now = self._workspace.adapters.clock.now()
        answer_sheet = Sheet(
            id=f"{server.deployment or 'address'}-{records.new_id(now)}",
            at=now,
            url=server.client.url,
            model=server.model,
            terms=terms,
            concurrency=concurrency,
            answers=answers,
            deployment=server.deployment,
            image=server.image,
            server=server.command,
        )
        self.sheets.keep(answer_sheet)
        return answer_sheet


def read_questions(request: QuestionRequest) -> QuestionSet:
    """Return the questions of a file or of the built-in set. Raise `errors.UsageError`."""
    source, count = request.source, request.count
    if source == ARITHMETIC:
        return arithmetic(count or ARITHMETIC_QUESTIONS)
    question_set = parsed(read_text(request.folder / source), name=Path(source).name)
    if count is not None and count > len(question_set.questions):
        raise UsageError(f"{source} has {len(question_set.questions)} questions, not {count}.")
    return question_set if count is None else replace(question_set, questions=question_set.questions[:count])


def check_questions(request: QuestionRequest) -> None:
    """Raise `errors.UsageError` for questions that cannot be read; a task of lm_eval is looked up when it is asked."""
    if not request.lm_eval_task:
        read_questions(request)


def read_answers(path: Path) -> Sheet | None:
    """Return saved answers, or None for a file that holds something else.

    Raise `errors.UsageError` or `errors.RunUnreadable`.
    """
    text = read_text(path)
    if sheet.is_sheet(text):
        return sheet.loads(text, source=str(path))
    return lm_eval.sheet(text, source=path.name, task=path.stem) if lm_eval.is_samples(text) else None


def _unanswered(client: VllmClient, cause: NoAnswer | BadAnswer) -> QueryFailed:
    return no_answer(client.url, cause, hint="See `tpudeploy status` for what the machine reports.")


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
) -> tuple[GradedAnswer, ...]:
    """Return the answers in the order of the questions. Raise `NoAnswer` or `BadAnswer` if the first question fails."""
    first, *rest = questions

    def answer(question: Question) -> GradedAnswer:
        try:
            return _answer(client, model, question, max_tokens, now)
        except NoAnswer:
            return _retry(client, model, question, max_tokens, now)
        except BadAnswer as cause:
            return GradedAnswer(question=question.id, said="", is_right=False, problem=str(cause))

    first_answer = _answer(client, model, first, max_tokens, now)  # raises once for a wrong key or model name
    pool = ThreadPoolExecutor(max_workers=concurrency, thread_name_prefix="question")
    try:
        return (first_answer, *pool.map(answer, rest))
    finally:
        pool.shutdown(wait=False, cancel_futures=True)  # an interrupt must not wait for long answers


def _answer(
    client: VllmClient, model: str, question: Question, max_tokens: int, now: Callable[[], float]
) -> GradedAnswer:
    try:
        completion = client.complete(model, question.prompt, max_tokens=max_tokens, now=now, sampling=_SAMPLING)
    except NothingSaid:
        return GradedAnswer(question=question.id, said="", is_right=False)
    tokens = len(completion.pieces) if completion.completion_tokens is None else completion.completion_tokens
    return GradedAnswer(
        question=question.id,
        said=completion.text,
        is_right=is_right(completion.text, question.answer),
        is_cut=tokens >= max_tokens,
    )


def _retry(
    client: VllmClient, model: str, question: Question, max_tokens: int, now: Callable[[], float]
) -> GradedAnswer:
    """Ask a question once more. That is safe, because it changes nothing, and one connection in thousands breaks."""
    try:
        return _answer(client, model, question, max_tokens, now)
    except (NoAnswer, BadAnswer) as cause:
        return GradedAnswer(question=question.id, said="", is_right=False, problem=str(cause))
