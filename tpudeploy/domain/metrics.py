"""What a running engine says of itself in /metrics, and what each figure of it means."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.tree import tree


@frozen
class Histogram:
    """How many fell below each bound: `counts` grow with `bounds`, the last of which is infinite. `sum` in seconds."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float

    @property
    def count(self) -> float:
        return self.counts[-1] if self.counts else 0.0

    def within(self, share: float) -> float | None:
        """The least bound below which that share of all fell; None for none at all. No interpolation: it is coarse."""
        if not self.count:
            return None
        return next(bound for bound, count in zip(self.bounds, self.counts, strict=True) if count >= share * self.count)


@frozen
class Spent:
    """The time that `requests` which ended spent in one phase, all together."""

    seconds: float
    requests: float

    @property
    def mean(self) -> float | None:
        return self.seconds / self.requests if self.requests else None


@frozen
class Figures:
    """Of all engines behind one endpoint together; `kv_cache_used` (0 to 1) of the fullest. None: it is not said.

    Requests running and waiting are those of this moment. All else is counted `since` then. `queued`,
    `prefilling` and `decoding` say where finished requests spent their time.
    """

    running: float | None = None
    waiting: Mapping[str, float] = field(default_factory=dict)
    kv_cache_used: float | None = None
    preemptions: float | None = None
    rejected: float | None = None
    finished: Mapping[str, float] = field(default_factory=dict)
    prompt_tokens: float | None = None
    generation_tokens: float | None = None
    prefix_queried_tokens: float | None = None
    prefix_hit_tokens: float | None = None
    first_token: Histogram | None = None
    between_tokens: Histogram | None = None
    queued: Spent | None = None
    prefilling: Spent | None = None
    decoding: Spent | None = None
    process_bytes: float | None = None
    is_awake: bool | None = None
    since: str = "since the server started"


class Grade(StrEnum):
    """`PLAIN`: a figure that is neither good nor bad by itself. `COARSE`: no figure to compare by."""

    OK = "ok"
    WARN = "warn"
    PLAIN = "plain"
    COARSE = "coarse"


@frozen
class Reading:
    """One figure. `shown` is it for people, `says` what it means in words, `hint` what to do about it."""

    name: str
    unit: str
    value: float | Mapping[str, float] | None
    shown: str
    grade: Grade
    says: str = ""
    hint: str = ""


@frozen
class Metered:
    """One replica, or whatever answers at a published endpoint. `silent` says why there are no readings."""

    address: str
    url: str
    readings: tuple[Reading, ...] = ()
    silent: str = ""


@frozen
class Metrics:
    replicas: tuple[Metered, ...]

    def to_dict(self) -> dict[str, object]:
        """What `tpudeploy metrics --json` prints, but for its format."""
        told: dict[str, object] = tree(self)
        return told
