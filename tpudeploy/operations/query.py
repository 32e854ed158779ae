"""Ask the endpoint a question; print the answer as it streams, or an embedding or a score, and its speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import Annotated

from annotated_types import Le

from tpudeploy import loading
from tpudeploy.adapters.vllm_client import BadAnswer, Completion, NoAnswer, VllmClient
from tpudeploy.config.profile import Profile
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import QueryFailed, UsageError
from tpudeploy.domain.task import TASKS, TaskReply, is_absent_route
from tpudeploy.node.serving import served_model
from tpudeploy.operations.arguments import AProfile, Arg, Count
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class Answer(Result):
    """A completion, or what another server returned, and how fast. Rates are unknown (None) at one instant.

    `numbers` are those of an embedding, a score or classes; there are none in a completion.
    """

    FORMAT = "query"
    IS_VERBATIM = True
    ADDED_LATER = frozenset({"numbers"})
    answer: str
    ttft_seconds: float
    total_seconds: float
    prompt_tokens: int | None
    completion_tokens: int | None
    tokens_per_second: float | None
    tokens_per_second_after_first: float | None
    numbers: tuple[float, ...] = ()

    @classmethod
    def from_reply(cls, reply: TaskReply, seconds: float) -> Answer:
        """Return the answer of a server that completes no prompts: it comes in one piece."""
        return cls(
            answer=reply.text,
            ttft_seconds=round(seconds, 4),
            total_seconds=round(seconds, 4),
            prompt_tokens=reply.prompt_tokens,
            completion_tokens=None,
            tokens_per_second=None,
            tokens_per_second_after_first=None,
            numbers=reply.values,
        )

    @classmethod
    def from_completion(cls, completion: Completion) -> Answer:
        return cls(
            answer=completion.text,
            ttft_seconds=round(completion.seconds_to_first, 4),
            total_seconds=round(completion.seconds, 4),
            prompt_tokens=completion.prompt_tokens,
            completion_tokens=completion.completion_tokens,
            tokens_per_second=_rounded(completion.tokens_per_second),
            tokens_per_second_after_first=_rounded(completion.tokens_per_second_then),
        )

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return self.answer

    @property
    def _why_no_rate(self) -> str:
        return "" if self.completion_tokens is None else " (the answer came at one instant)"

    def messages(self, paint: Paint) -> str:
        if self.numbers:
            tokens = "" if self.prompt_tokens is None else f", {self.prompt_tokens} prompt tokens"
            return f"total {self.total_seconds:.3f} s{tokens}"
        rate, later_rate = self.tokens_per_second, self.tokens_per_second_after_first
        later_text = f" ({later_rate} after the first)" if later_rate else ""
        counts = (self.prompt_tokens, self.completion_tokens)
        prompt, answer = ("unknown" if count is None else count for count in counts)
        rate_text = f", {rate} tok/s{later_text}" if rate is not None else f", rate unknown{self._why_no_rate}"
        return (
            f"TTFT {self.ttft_seconds:.3f} s, total {self.total_seconds:.3f} s, "
            f"{prompt} prompt + {answer} completion tokens{rate_text}"
        )


def query(
    workspace: Workspace,
    profile: AProfile,
    prompt: Annotated[str, Arg("The question.", positional=True)],
    *,
    system: Annotated[str, Arg("The system prompt.", metavar="TEXT")] = "",
    model: Annotated[str, Arg("Another name that the server serves, such as that of an adapter.", metavar="NAME")] = "",
    max_tokens: Annotated[
        Count, Le(65536), Arg("The largest number of tokens in the answer (default 256).", metavar="MAX_TOKENS")
    ] = 256,
    on_piece: Callable[[str], None] | None = None,
) -> Answer:
    """Ask a deployment's endpoint a question: the answer, and how fast it came.

    `system` is the system prompt. `model` is another name that the server serves, such as that of an adapter.
    `on_piece` gets each piece of the text as it arrives. Raise `errors.QueryFailed`.
    """
    opened = loading.profile(profile)
    deployment = workspace.deployment(opened, script=False)
    facts = TASKS[deployment.task.task]
    if not facts.completions and (system or model):
        raise UsageError(f"{deployment.name} serves {facts.serves}: it takes no system prompt and no other model.")
    if not facts.completions:
        return _ask(workspace, opened, deployment, prompt)
    try:
        return Answer.from_completion(
            workspace.completion(opened, prompt, max_tokens=max_tokens, on_piece=on_piece, system=system, model=model)
        )
    except QueryFailed as refusal:
        if not facts.trials or not is_absent_route(getattr(refusal.__cause__, "status", 0)):
            raise
    return _ask(workspace, opened, deployment, prompt)


def _ask(workspace: Workspace, profile: Profile, deployment: Deployment, prompt: str) -> Answer:
    """Return what a server that completes no prompts returns for a text."""
    probe, now = workspace.adapters.probe, workspace.adapters.clock.now
    url = str(workspace.confirmed_endpoint(profile)["url"])
    client = VllmClient(url, api_key=probe.key(deployment), timeout=60.0)
    began = now()
    try:
        reply = client.answer(deployment.task.task, served_model(deployment), prompt, max_tokens=1, now=now)
    except (NoAnswer, BadAnswer) as cause:
        hint = "See `tpudeploy status` for what the machine says."
        raise QueryFailed(f"{client.url} did not answer: {cause}.", hint=hint) from cause
    assert isinstance(reply, TaskReply)  # this server has no route of completions
    return Answer.from_reply(reply, now() - began)


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


OPERATION = Operation(
    run=query,
    results=(Answer,),
    title="Ask the model",
    tool="query",
    takes_pieces=True,
)
