"""Ask the endpoint a question; print the answer as it streams, and its speed."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from tpudeploy.operations.declaration import Argument, Kind, Operation, profile
from tpudeploy.results import Result, result

if TYPE_CHECKING:
    from tpudeploy.adapters.vllm_client import Completion
    from tpudeploy.loading import OneProfile
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class Answer(Result):
    """A completion, and how fast it came. Rates are unknown (None) if no time passed."""

    FORMAT = "query"
    IS_VERBATIM = True
    answer: str
    ttft_seconds: float
    total_seconds: float
    prompt_tokens: int | None
    completion_tokens: int | None
    tokens_per_second: float | None
    tokens_per_second_after_first: float | None

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

    def messages(self, paint: Paint) -> str:
        rate, later_rate = self.tokens_per_second, self.tokens_per_second_after_first
        later_text = f" ({later_rate} after the first)" if later_rate else ""
        counts = (self.prompt_tokens, self.completion_tokens)
        prompt, answer = ("unknown" if count is None else count for count in counts)
        rate_text = f", {rate} tok/s{later_text}" if rate else ""
        return (
            f"TTFT {self.ttft_seconds:.3f} s, total {self.total_seconds:.3f} s, "
            f"{prompt} prompt + {answer} completion tokens{rate_text}"
        )


def query(
    workspace: Workspace,
    profile: OneProfile,
    prompt: str,
    *,
    max_tokens: int = 256,
    on_piece: Callable[[str], None] | None = None,
) -> Answer:
    """Ask a deployment's endpoint a question: the answer, and how fast it came.

    `on_piece` gets each piece of the text as it arrives. Raise `errors.QueryFailed`.
    """
    from tpudeploy import loading

    return Answer.from_completion(
        workspace.completion(loading.profile(profile), prompt, max_tokens=max_tokens, on_piece=on_piece)
    )


def _rounded(value: float | None) -> float | None:
    return None if value is None else round(value, 2)


OPERATION = Operation(
    run=query,
    arguments=(
        profile(),
        Argument(name="prompt", help="The question.", positional=True, is_required=True),
        Argument(
            name="max_tokens",
            help="The largest number of tokens in the answer (default 256).",
            kind=Kind.COUNT,
            default=256,
            most=65536,
        ),
    ),
    results=(Answer,),
    title="Ask the model",
    tool="query",
)
