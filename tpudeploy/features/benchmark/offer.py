"""One cell of a sweep as the load client is asked to drive it, and everything that the client then saw."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

Load: TypeAlias = tuple[int | None, int | None]  # tokens of a prompt and of an answer; None: unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Point:
    """One cell: this many streams at once, each asking again as soon as it is answered, with prompts of one length.

    None is unknown: published tables and the results of other clients leave some of it out. A sweep of ours does not.
    """

    concurrency: int | None
    context_tokens: int | None
    output_tokens: int | None

    @property
    def load(self) -> Load:
        return self.context_tokens, self.output_tokens

    @property
    def sizes(self) -> tuple[int, int, int]:
        """The streams, the tokens of a prompt, and those of an answer, for a cell that is measured here."""
        assert self.concurrency is not None
        assert self.context_tokens is not None
        assert self.output_tokens is not None
        return self.concurrency, self.context_tokens, self.output_tokens

    @property
    def rank(self) -> tuple[int, int, int]:
        """The order of cells in tables: by answer, prompt and streams; unknown ones come first."""
        return self.output_tokens or 0, self.context_tokens or 0, self.concurrency or 0


@dataclass(frozen=True, slots=True, kw_only=True)
class Offer:
    """The work of the client for one cell.

    Each stream's first request is its warm-up. Measured is from the moment when the last of them has ended, until
    `requests` more were answered and `least_seconds` have passed, or at the latest `window_seconds`. `seed` makes the
    prompts: another seed, another prefix for every request. `vocabulary` is how many tokens the model has at least,
    None where it takes all that are usually sent. After `most_seconds`, warm-up and all, the cell is cut
    off; None: it never is.
    """

    point: Point
    model: str
    seed: int
    requests: int
    window_seconds: float
    least_seconds: float = 0.0
    most_seconds: float | None = None
    vocabulary: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class RequestRecord:
    """One request. Times are seconds of the client's own clock; `arrivals` has one for each piece of the stream.

    `sent_at` is stamped when the request is written to a connection that was open before. `turn` counts the requests
    of a stream from 0, the warm-up. Tokens are the server's own count; None if not reported. `error` is "" for an
    answer that came whole.
    """

    turn: int
    sent_at: float
    ended_at: float
    arrivals: tuple[float, ...]
    prompt_tokens: int | None
    output_tokens: int | None
    error: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Observation:
    """The client's observations of one cell, and its own load.

    `window` is None where it was cut off before the warm-up had ended. `lags` is by how many seconds the client's own
    timer was late, each time within the window; `cpu_share` of one core was taken there. `seconds` is all of it:
    opening, warm-up, window and the wait for what was still under way.
    """

    answers: tuple[RequestRecord, ...]
    window: tuple[float, float] | None
    lags: tuple[float, ...]
    cpu_share: float
    seconds: float
    is_cut: bool = False
