"""Plan: what would change, and why. Data; views draw it, the engine holds itself to it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.names import address
from tpudeploy.domain.tree import tree


class Effect(StrEnum):
    """What it costs to change one attribute."""

    REPLACE = "replace"
    RESTART = "restart"
    COSMETIC = "cosmetic"


class Action(StrEnum):
    """What happens to one replica."""

    NO_OP = "no-op"
    CREATE = "create"
    UPDATE = "update"
    RESTART = "restart"
    REPLACE = "replace"
    DESTROY = "destroy"


class Reason(StrEnum):
    """Why, beyond the changed attributes. For display only: never decide on it."""

    NONE = ""
    RESUMES = "an earlier run began this; it goes on where it stopped"
    FAILED = "its server did not come up; it is booted once more"
    GONE = "its slice is gone: deleted outside tpudeploy"
    LOST = "its slice was taken away: preempted, failed or run out"
    SURPLUS = "the profile asks for fewer replicas"
    LEFTOVER = "requests of an earlier run are still there"
    ADOPTED = "found in the cloud: no state remembered it"


@dataclass(frozen=True, slots=True, kw_only=True)
class FieldChange:
    """One attribute. `origin` is where the new value was written; None for a default."""

    path: str
    before: Json
    after: Json
    effect: Effect
    origin: Location | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Change:
    """What happens to one replica. `slice_name` is the slice it has now, "" for none.

    `usd_per_hour_before` and `_after` are list prices of the whole slice, None where unknown; `_most` is that of the
    dearest place that may be asked. `max_run_seconds` after the grant Google deletes the machine.
    """

    deployment: str
    replica: int
    action: Action
    reason: Reason = Reason.NONE
    fields: tuple[FieldChange, ...] = ()
    unchanged: int = 0
    slice_name: str = ""
    zone: str = ""
    create_before_destroy: bool = True
    usd_per_hour_before: float | None = None
    usd_per_hour_after: float | None = None
    usd_per_hour_most: float | None = None
    max_run_seconds: float | None = None

    @property
    def address(self) -> str:
        return address(self.deployment, self.replica)

    def to_dict(self) -> dict[str, object]:
        return {"address": self.address, **tree(self)}


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """One deployment's part of a plan. `deployment` is None where it is to be removed.

    `lineage` and `serial` name the state it was planned against; "" and 0 where there was none. `adopts` names the
    slices that a new state is to begin with.
    """

    name: str
    deployment: Deployment | None
    fingerprint: str
    lineage: str
    serial: int
    resumes: bool
    changes: tuple[Change, ...]
    adopts: tuple[str, ...] = ()

    def to_dict(self) -> dict[str, object]:
        return {
            "name": self.name,
            "fingerprint": self.fingerprint,
            "lineage": self.lineage,
            "serial": self.serial,
            "resumes": self.resumes,
            "adopts": list(self.adopts),
            "changes": [change.to_dict() for change in self.changes],
            "size": None if self.deployment is None else self.deployment.budget.to_dict(),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class Plan:
    goals: tuple[Goal, ...]
    diagnostics: tuple[Diagnostic, ...] = ()

    @property
    def changes(self) -> tuple[Change, ...]:
        return tuple(c for g in self.goals for c in g.changes)

    @property
    def is_empty(self) -> bool:
        return all(c.action is Action.NO_OP for c in self.changes)

    @property
    def needs_approval(self) -> bool:
        """Whether anything would happen that nobody has approved yet."""
        return any(c.action is not Action.NO_OP for g in self.goals if not g.resumes for c in g.changes)

    def to_dict(self) -> dict[str, object]:
        """The line that `--json` prints of a plan."""
        return {
            "format": "tpudeploy.plan/1",
            "type": "plan",
            "is_empty": self.is_empty,
            "goals": [goal.to_dict() for goal in self.goals],
            "diagnostics": tree(self.diagnostics),
        }
