"""What Google tells before anything is asked of it: hardware, quota, prices, what is held. Or why it does not tell."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone

UNLIMITED = -1


@dataclass(frozen=True, slots=True, kw_only=True)
class Unknown:
    """Why something could not be told, and what may help. It is never taken for a no.

    `needs_person`: asking again will not help before somebody acts.
    """

    because: str
    hint: str = ""
    needs_person: bool = False


class Pool(StrEnum):
    """Quota is kept in two pools; flex-start takes from the preemptible one."""

    PREEMPTIBLE = "preemptible"
    ON_DEMAND = "on-demand"


POOLS: Mapping[Provisioning, Pool] = {
    Provisioning.FLEX_START: Pool.PREEMPTIBLE,
    Provisioning.SPOT: Pool.PREEMPTIBLE,
    Provisioning.ON_DEMAND: Pool.ON_DEMAND,
    Provisioning.RESERVED: Pool.ON_DEMAND,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class Offers:
    """Which slice types each zone lists, for this project. `silent` zones did not answer: why, by zone.

    A zone can list a type and serve nothing. `read_at` is seconds since the epoch; `stale` says why a new reading,
    which was due, failed.
    """

    types: Mapping[Zone, tuple[str, ...]]
    read_at: float
    silent: Mapping[Zone, str] = field(default_factory=dict)
    stale: Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Limit:
    """A quota in chips, or `UNLIMITED`. `place` is a zone or a region; "" is every one that has no limit of its own."""

    generation: str
    pool: Pool
    zonal: bool
    place: str
    chips: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Use:
    """Chips that one queued resource holds of a quota: in every state, until it is deleted."""

    name: str
    zone: Zone
    generation: str
    pool: Pool
    chips: int


@dataclass(frozen=True, slots=True, kw_only=True)
class Rate:
    """USD per chip and hour."""

    generation: str
    region: str
    provisioning: Provisioning
    usd: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Prices:
    """The billing catalogue's, as of `read_at` (seconds since the epoch); `stale` as in `Offers`."""

    rates: tuple[Rate, ...]
    read_at: float
    stale: Unknown | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Facts:
    """Everything the gates are judged by, each fact by itself: one that is unknown hides no other."""

    offers: Offers | Unknown
    limits: tuple[Limit, ...] | Unknown
    uses: tuple[Use, ...] | Unknown
    prices: Prices | Unknown
