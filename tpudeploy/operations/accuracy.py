"""Examining: servers asked questions whose answers are known. Wires the clients to the questions and to the disk."""

from __future__ import annotations

import tempfile
from http import HTTPStatus
from pathlib import Path
from urllib.parse import urlsplit

from tpudeploy.accuracy import lm_eval as samples
from tpudeploy.accuracy.questions import QuestionSet
from tpudeploy.accuracy.sheet import Answer, Sheet, Terms
from tpudeploy.adapters import ids, lm_eval, questions
from tpudeploy.adapters.sheets import LocalSheets
from tpudeploy.adapters.vllm_client import BadAnswer, NoAnswer, VllmClient
from tpudeploy.benchmark.subject import runs_as_declared, serving_attempt
from tpudeploy.config.profile import Profile
from tpudeploy.domain.budget import Engine, HbmBudget
from tpudeploy.domain.errors import Interrupted, QueryFailed, UsageError
from tpudeploy.domain.frozen import frozen
from tpudeploy.node.serving import served_model
from tpudeploy.workspace import Workspace

# Where nobody says how many requests a server is to take at once.
CONCURRENCY = 64
MAX_TOKENS = 512
# Seconds without a byte: a question may wait in a queue behind hundreds of others.
_PATIENCE = 600.0


@frozen
class Server:
    """Who is asked. `at_once` is how many requests it is said to run together."""

    client: VllmClient
    api_key: str | None
    model: str
    at_once: int
    deployment: str = ""
    image: str = ""
    command: tuple[str, ...] = ()


class Examining:
    """Sheets are kept in `sheets`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.sheets = LocalSheets(workspace.runs.folder / "accuracy")

    def deployment(self, profile: Profile) -> Server:
        """A deployment's published endpoint.

        Raise `errors.QueryFailed` where it has none, `errors.UsageError` where what serves is not what the profile
        says: whoever compares two flags is not to compare one with itself.
        """
        workspace = self._workspace
        deployment = workspace.deployment(profile, script=False)
        published = workspace.endpoint(deployment.name)
        if published is None:
            raise QueryFailed(f"{deployment.name} has no endpoint yet.", hint="Run `tpudeploy apply` first.")
        attempt = serving_attempt(workspace.states.read(deployment.name).state)
        if attempt is not None and not runs_as_declared(deployment, attempt):
            hint = "Run `tpudeploy apply` first."
            raise UsageError(f"What serves as {deployment.name} is not what its profile says.", hint=hint)
        key, budget = workspace.probe.key(deployment), deployment.budget
        return Server(
            client=VllmClient(str(published["url"]), api_key=key, timeout=_PATIENCE),
            api_key=key,
            model=served_model(deployment),
            at_once=_at_once(budget.engine) if isinstance(budget, HbmBudget) else CONCURRENCY,
            deployment=deployment.name,
            image=deployment.container.image,
            command=deployment.container.serve,
        )

    def address(self, url: str, *, api_key: str | None = None) -> Server:
        """Whoever answers there, by the first name it serves. Raise `errors.QueryFailed`, `errors.UsageError`."""
        if not urlsplit(url).hostname:
            raise UsageError(f"`{url}` is no address.", hint="Write http://HOST:PORT.")
        client = VllmClient(url.rstrip("/"), api_key=api_key, timeout=_PATIENCE)
        try:
            names = client.models()
        except (NoAnswer, BadAnswer) as cause:
            raise _unanswered(client, cause) from cause
        if not names:
            raise QueryFailed(f"{url} serves no model.")
        return Server(client=client, api_key=api_key, model=names[0], at_once=CONCURRENCY)

    def ask(self, server: Server, asked: QuestionSet, *, concurrency: int, max_tokens: int) -> Sheet:
        """Every question, kept. Raise `errors.QueryFailed` where the first one is not answered.

        Raise `errors.Interrupted` for a KeyboardInterrupt: some answers are no test, and are not kept.
        """
        try:
            answers = questions.ask(
                server.client,
                server.model,
                asked.questions,
                concurrency=concurrency,
                max_tokens=max_tokens,
                now=self._workspace.clock.now,
            )
        except (NoAnswer, BadAnswer) as cause:
            raise _unanswered(server.client, cause) from cause
        except KeyboardInterrupt as cause:
            hint = "Run the same command again; -questions N asks fewer."
            raise Interrupted("Interrupted before every question was answered: nothing is kept.", hint=hint) from cause
        terms = Terms(questions=asked.name, digest=asked.digest, max_tokens=max_tokens)
        return self._kept(server, terms, answers, concurrency)

    def run_lm_eval(self, server: Server, task: str, *, count: int | None, concurrency: int, max_tokens: int) -> Sheet:
        """One of lm_eval's tasks, by its own program. Raise `errors.UsageError` where that is not installed."""
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
        found = samples.sheet(text, source="lm_eval", task=task)
        return self._kept(server, found.terms, found.answers, concurrency)

    def _kept(self, server: Server, terms: Terms, answers: tuple[Answer, ...], concurrency: int) -> Sheet:
        now = self._workspace.clock.now()
        of = server.deployment or "address"
        sheet = Sheet(
            id=f"{of}-{ids.new(now)}",
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


def _at_once(engine: Engine) -> int:
    """All that it may run: batches are what cheaper numbers show in."""
    return engine.max_num_seqs * engine.data_parallel


def _unanswered(client: VllmClient, cause: NoAnswer | BadAnswer) -> QueryFailed:
    wants_key = isinstance(cause, BadAnswer) and cause.status == HTTPStatus.UNAUTHORIZED
    hint = "It wants a key: set VLLM_API_KEY." if wants_key else "See `tpudeploy status` for what the machine says."
    return QueryFailed(f"{client.url} did not answer: {cause}.", hint=hint)
