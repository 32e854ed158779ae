"""The availability of a slice type for every zone and provisioning model, at each API, for `zones` and `doctor`."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.history import Ending
from tpudeploy.domain.names import Zone
from tpudeploy.domain.serialization import to_json


class Gate(StrEnum):
    """One condition for a slice. The conditions are tested in this order."""

    HARDWARE = "hardware"
    MODEL = "model"
    QUOTA = "quota"
    PRICE = "price"
    LUCK = "luck"


class Standing(StrEnum):
    """open: a request is possible.  doubtful: the quota looks too small, which a request may disprove.

    closed: the zone lacks the hardware or the provisioning model, or is more expensive than allowed.
    """

    OPEN = "open"
    DOUBTFUL = "doubtful"
    CLOSED = "closed"


class FactSource(StrEnum):
    """live: Google, now or cached.  table: the catalogue, dated.  log: earlier requests.  none: unknown."""

    LIVE = "live"
    TABLE = "table"
    LOG = "log"
    NONE = "none"


@dataclass(frozen=True, slots=True, kw_only=True)
class SourcedAnswer:
    """An answer with its source and its date (month or day). `yes` is None if unknown; `because` is Google's text."""

    yes: bool | None
    source: FactSource = FactSource.NONE
    as_of: str = ""
    because: str = ""


class Fill(StrEnum):
    """Whether a quota has room for the slice. short: too little of it is free.  none: the quota is 0."""

    ENOUGH = "enough"
    SHORT = "short"
    NONE = "none"
    UNKNOWN = "unknown"


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """The chips of one pool: the limits of a zone and of its region; both apply. None: unknown. -1: no limit.

    `used` are the chips of all queued resources, including suspended ones and those of others, or of all instances
    that have a machine.
    """

    fill: Fill
    zone_limit: int | None
    zone_used: int | None
    region_limit: int | None
    region_used: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Price:
    """A price in USD per chip-hour, or None if unknown. `is_too_dear`: it is above the profile's limit."""

    usd_per_chip_hour: float | None
    source: FactSource = FactSource.NONE
    as_of: str = ""
    is_too_dear: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Luck:
    """The results of earlier requests for this type: the last one, and counts over the window. Times are in seconds.

    `median_wait` is that of the grants. `last_kind` is the kind of the last refusal.
    """

    last: Ending | None = None
    last_kind: str = ""
    last_age: float | None = None
    counts: Mapping[Ending, int]
    median_wait: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Pair:
    """One zone and provisioning model at one API. `closed_by` is the first gate that closes it."""

    zone: Zone
    provisioning: Provisioning
    backend: Backend
    standing: Standing
    closed_by: Gate | None
    hardware: SourcedAnswer
    model: SourcedAnswer
    quota: Quota
    price: Price
    luck: Luck

    @property
    def place(self) -> Place:
        return Place(self.zone, self.provisioning, self.backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class GateSource:
    """The source of one gate's facts. `age` is in seconds; `unknown` says why there are none, or no newer ones."""

    source: FactSource
    age: float | None = None
    as_of: str = ""
    unknown: Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ZoneTable:
    """The availability of one slice type, in the order of requests. `profile` is "" where none was named.

    `readings_by_api` are those of the gates that each API answers for itself; `readings` has those of the first one.
    """

    profile: str
    project: str | None
    type: str
    chips: int
    window: float
    pairs: tuple[Pair, ...]
    readings: Mapping[Gate, GateSource]
    readings_by_api: Mapping[Backend, Mapping[Gate, GateSource]] = field(default_factory=dict)

    def to_dict(self) -> dict[str, object]:
        """Return one of the `tables` of `zones --json`."""
        document: dict[str, object] = to_json(self)
        return document
