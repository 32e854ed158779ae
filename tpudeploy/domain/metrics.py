"""The figures in a running engine's /metrics, and the meaning of each."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.serialization import to_json


@frozen
class Histogram:
    """Cumulative counts per bound: `counts` grow with `bounds`, whose last is infinite. `sum` is in seconds."""

    bounds: tuple[float, ...]
    counts: tuple[float, ...]
    sum: float

    @property
    def count(self) -> float:
        return self.counts[-1] if self.counts else 0.0

    def within(self, share: float) -> float | None:
        """Return the smallest bound that covers this share of the samples, or None without samples."""
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
    """The sums over all engines behind one endpoint; `kv_cache_used` (0 to 1) is that of the fullest. None: unknown.

    `running` and `waiting` requests are current. All other figures count from `since`. `queued`, `prefilling` and
    `decoding` say where finished requests spent their time.
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
    """`PLAIN`: a figure that is neither good nor bad by itself. `COARSE`: a figure too coarse for comparisons."""

    OK = "ok"
    WARN = "warn"
    PLAIN = "plain"
    COARSE = "coarse"


@frozen
class Reading:
    """One figure. `shown` is its text, `says` is its meaning, `hint` is the remedy."""

    name: str
    unit: str
    value: float | Mapping[str, float] | None
    shown: str
    grade: Grade
    says: str = ""
    hint: str = ""


@frozen
class Metered:
    """One replica, or the server at a published endpoint. `silent` says why there are no readings."""

    address: str
    url: str
    readings: tuple[Reading, ...] = ()
    silent: str = ""


@frozen
class Metrics:
    replicas: tuple[Metered, ...]

    def to_dict(self) -> dict[str, object]:
        """Return the document of `tpudeploy metrics --json` without its format."""
        document: dict[str, object] = to_json(self)
        return document
