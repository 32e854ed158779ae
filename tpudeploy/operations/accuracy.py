"""Accuracy tests of a workspace: servers are asked questions with known answers, and the answers are stored."""

from __future__ import annotations

import tempfile
from pathlib import Path
from urllib.parse import urlsplit

from tpudeploy.accuracy import lm_eval as samples
from tpudeploy.accuracy.questions import QuestionSet
from tpudeploy.accuracy.sheet import Answer, Sheet, Terms
from tpudeploy.adapters import ids, lm_eval, questions
from tpudeploy.adapters.sheets import LocalSheets
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.config.profile import Profile
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.errors import Interrupted, QueryFailed, UsageError
from tpudeploy.domain.frozen import frozen
from tpudeploy.node.serving import served_model
from tpudeploy.operations.endpoint import check_declared, no_answer, published_endpoint
from tpudeploy.workspace import Workspace

CONCURRENCY = 64  # for a server whose maximum of parallel requests is unknown
MAX_TOKENS = 512
_TIMEOUT = 600.0  # seconds without a byte: a question may wait in a queue behind hundreds of others


@frozen
class Server:
    """The server to ask. `at_once` is the number of requests that it can run together."""

    client: VllmClient
    api_key: str | None
    model: str
    at_once: int
    deployment: str = ""
    image: str = ""
    command: tuple[str, ...] = ()


class AccuracyTests:
    """Asks servers. The answers are kept in `sheets`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.sheets = LocalSheets(workspace.adapters.runs.folder / "accuracy")

    def deployment(self, profile: Profile) -> Server:
        """Return the published endpoint of a deployment.

        Raise `errors.QueryFailed` where it has none, `errors.UsageError` where its server is not the one that the
        profile declares: a comparison of two flags must not compare one with itself.
        """
        endpoint = published_endpoint(self._workspace, profile)
        deployment, budget = endpoint.deployment, endpoint.deployment.budget
        check_declared(deployment, endpoint.attempt, deployment.name, hint="Run `tpudeploy apply` first.")
        at_once = CONCURRENCY
        if isinstance(budget, HbmBudget):
            # As many as the server may run: the errors of less exact numbers show in full batches.
            at_once = budget.engine.max_num_seqs * budget.engine.data_parallel
        return Server(
            client=VllmClient(endpoint.url, api_key=endpoint.api_key, timeout=_TIMEOUT),
            api_key=endpoint.api_key,
            model=served_model(deployment),
            at_once=at_once,
            deployment=deployment.name,
            image=deployment.container.image,
            command=deployment.container.serve,
        )

    def address(self, url: str, *, api_key: str | None = None) -> Server:
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
        return Server(client=client, api_key=api_key, model=names[0], at_once=CONCURRENCY)

    def ask(self, server: Server, question_set: QuestionSet, *, concurrency: int, max_tokens: int) -> Sheet:
        """Ask every question and store the answers. Raise `errors.QueryFailed` where the first one gets no answer.

        Raise `errors.Interrupted` for a KeyboardInterrupt. Some of the answers are no test, so none is stored then.
        """
        try:
            answers = questions.ask(
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

    def run_lm_eval(self, server: Server, task: str, *, count: int | None, concurrency: int, max_tokens: int) -> Sheet:
        """Run a task of lm_eval in its own program. Raise `errors.UsageError` where that is not installed."""
        with tempfile.TemporaryDirectory(prefix="tpudeploy-lm-eval-") as folder:
            command = samples.command(
                url=server.client.url,
                model=server.model,
                task=task,
                count=count,
                concurrency=concurrency,
                max_tokens=max_tokens,
                out=folder,
            )
            text = lm_eval.samples(command, Path(folder), api_key=server.api_key)
        sheet = samples.sheet(text, source="lm_eval", task=task)
        return self._store(server, sheet.terms, sheet.answers, concurrency)

    def _store(self, server: Server, terms: Terms, answers: tuple[Answer, ...], concurrency: int) -> Sheet:
        now = self._workspace.adapters.clock.now()
        sheet = Sheet(
            id=f"{server.deployment or 'address'}-{ids.new(now)}",
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
        self.sheets.keep(sheet)
        return sheet


def _unanswered(client: VllmClient, cause: NoAnswer | BadAnswer) -> QueryFailed:
    return no_answer(client.url, cause, hint="See `tpudeploy status` for what the machine reports.")
