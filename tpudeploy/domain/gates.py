"""The gates before a slice, for every pair of zone and provisioning model: what `zones` shows and `doctor` counts."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.history import Ending
from tpudeploy.domain.names import Zone
from tpudeploy.domain.tree import tree


class Gate(StrEnum):
    """In the order in which they stand."""

    HARDWARE = "hardware"
    MODEL = "model"
    QUOTA = "quota"
    PRICE = "price"
    LUCK = "luck"


class Standing(StrEnum):
    """open: it can be asked.  doubtful: quota speaks against it, which a request may still prove wrong.

    closed: the zone has no such hardware, takes no such model, or is dearer than allowed.
    """

    OPEN = "open"
    DOUBTFUL = "doubtful"
    CLOSED = "closed"


class Source(StrEnum):
    """live: Google's word, now or kept.  table: the catalogue's, dated.  log: what asking came to.  none: nobody's."""

    LIVE = "live"
    TABLE = "table"
    LOG = "log"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class Word:
    """Yes, no, or None for nobody knows; by whom, and as of when: a month, or a day. `because` is Google's text."""

    yes: bool | None
    source: Source = Source.NONE
    as_of: str = ""
    because: str = ""


class Fill(StrEnum):
    """Whether a quota leaves room for the slice. short: too little of it is left.  none: it is 0."""

    ENOUGH = "enough"
    SHORT = "short"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """Chips of one pool: a zone's limit and its region's, both of which count. None: not known. -1: no limit.

    `used` is what queued resources hold, husks too, whoever asked for them.
    """

    fill: Fill
    zone_limit: int | None
    zone_used: int | None
    region_limit: int | None
    region_used: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """USD per chip and hour, None where nobody knows. `is_too_dear`: above what the profile allows."""

    usd_per_chip_hour: float | None
    source: Source = Source.NONE
    as_of: str = ""
    is_too_dear: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """What asking for this type came to: last of all, and counted over the window. Times in seconds.

    `median_wait` is that of the grants. `last_kind` is the kind of the last refusal.
    """

    last: Ending | None = None
    last_kind: str = ""
    last_age: float | None = None
    counts: Mapping[Ending, int]
    median_wait: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One pair. `closed_by` is the first gate that closes it."""

    zone: Zone
    provisioning: Provisioning
    standing: Standing
    closed_by: Gate | None
    hardware: Word
    model: Word
    quota: Quota
    price: Price
    luck: Luck


@dataclass(frozen=True, slots=True, kw_only=True)
class Reading:
    """Where one gate's facts come from. `age` in seconds; `unknown` says why there are none, or no newer ones."""

    source: Source
    age: float | None = None
    as_of: str = ""
    unknown: Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Zones:
    """Where one slice type can be had, what one would ask first on top. `profile` is "" where none was named."""

    profile: str
    project: str | None
    type: str
    chips: int
    window: float
    pairs: tuple[Pair, ...]
    readings: Mapping[Gate, Reading]

    def to_dict(self) -> dict[str, object]:
        """One of the `tables` that `zones --json` prints."""
        known: dict[str, object] = tree(self)
        return known
