"""The facts that Google gives before any request: hardware, quota, prices and use, or why they are unknown."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone

UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Why a fact is unknown, and what may help. Unknown is never taken for no.

    `needs_person`: a retry does not help until a person acts.
    """

    because: str
    hint: str = ""
    needs_person: bool = False


class QuotaPool(StrEnum):
    """The two pools of quota; flex-start uses the preemptible one."""

    PREEMPTIBLE = "preemptible"
    ON_DEMAND = "on-demand"


POOLS: Mapping[Provisioning, QuotaPool] = {
    Provisioning.FLEX_START: QuotaPool.PREEMPTIBLE,
    Provisioning.SPOT: QuotaPool.PREEMPTIBLE,
    Provisioning.ON_DEMAND: QuotaPool.ON_DEMAND,
    Provisioning.RESERVED: QuotaPool.ON_DEMAND,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """The slice types that each zone lists for this project. `silent` zones did not answer: the reason by zone.

    A zone can list a type and have no capacity. `read_at` is in seconds since the epoch; `stale` says why the update
    of an old value failed.
    """

    types: Mapping[Zone, tuple[str, ...]]
    read_at: float
    silent: Mapping[Zone, str] = field(default_factory=dict)
    stale: Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class QuotaLimit:
    """A quota in chips, `UNLIMITED`, or None where it is not known.

    `place` is a zone or a region; "" means all without a limit of their own.
    """

    generation: str
    pool: QuotaPool
    zonal: bool
    place: str
    chips: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """The chips of a quota that one queued resource or instance uses."""

    name: str
    zone: Zone
    generation: str
    pool: QuotaPool
    chips: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """A price in USD per chip-hour."""

    generation: str
    region: str
    provisioning: Provisioning
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The prices of the billing catalogue at `read_at` (seconds since the epoch); `stale` is as in `Offers`."""

    rates: tuple[Rate, ...]
    read_at: float
    stale: Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class ApiFacts:
    """What one API has for a project: the slice types by zone, the limits of its quota, and what uses it."""

    offers: Offers | Unknown
    limits: tuple[QuotaLimit, ...] | Unknown
    uses: tuple[Use, ...] | Unknown


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """All facts about the availability of slices. Each is read by itself: an unknown one hides no other.

    `apis` are those that were read. Both bill by the same prices.
    """

    apis: Mapping[Backend, ApiFacts]
    prices: Prices | Unknown
