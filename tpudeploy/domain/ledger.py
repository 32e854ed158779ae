"""Facts about the cost of each request: when it may have started to be billed, when it ran, and when it was gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone


@dataclass(frozen=True, slots=True, kw_only=True)
class PricedRequest:
    """The request that a fact is about: whose it is, its place, its chips and what they cost together per hour.

    `usd_per_hour` is None if unknown; `price_as_of` and `price_source` are its date and origin.
    """

    deployment: str
    name: str
    zone: Zone
    provisioning: Provisioning
    replica: int = 0
    project: str = ""
    backend: Backend = DEFAULT_BACKEND
    type: str = ""
    chips: int = 0
    model: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    usd_per_hour: float | None = None
    price_as_of: str = ""
    price_source: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _Fact:
    """Times are in seconds since the epoch; `at` is when the fact was recorded.

    `began` is the creation of the machine by Google's time, or when a run first saw it; None if no run did.
    """

    request: PricedRequest
    at: float
    began: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NewRequest(_Fact):
    """It may be granted from now on. Then it runs for `most_seconds` at most, until `ends_by` at the latest.

    None is no bound.
    """

    ends_by: float | None = None
    most_seconds: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Sighting(_Fact):
    """Google showed its machine running. `ends_at` is when Google ends the run, None if it doesn't."""

    ends_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class StillRuns(_Fact):
    """Its machine runs, although its request is gone."""


class EndEvidence(StrEnum):
    """How the end of a machine is known.

    deleted: a run requested its deletion then.  recorded: Google has a record of it.  bound: it was found gone, and
    ended by then.
    """

    DELETED = "deleted"
    RECORDED = "recorded"
    BOUND = "bound"


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineEnd(_Fact):
    """It no longer exists, since `ended`. None: it never ran as far as is known."""

    ended: float | None = None
    evidence: EndEvidence = EndEvidence.DELETED
    reason: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class StateRemoval(_Fact):
    """A person removed it from the state, and it may run on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class BackendMove(_Fact):
    """The ledger of another backend continues it."""


LedgerFact: TypeAlias = NewRequest | Sighting | StillRuns | MachineEnd | StateRemoval | BackendMove


@dataclass(frozen=True, slots=True, kw_only=True)
class Ledger:
    """All facts, oldest first. `unreadable_lines` counts damaged lines, beside an incomplete last one."""

    facts: tuple[LedgerFact, ...] = ()
    unreadable_lines: int = 0
