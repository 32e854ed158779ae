"""Store what a server showed, so that exactly that can be carried out by its id: plans, and other entries.

Why: decision 40 in docs/decisions.md.
"""

from __future__ import annotations

import threading
from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from typing import Generic, Protocol, TypeVar

from tpudeploy.domain.errors import Unapproved
from tpudeploy.domain.plan import Plan
from tpudeploy.planning.effects import ChangeEffects, plan_effects
from tpudeploy.planning.plan_print import plan_print

_MAX_ENTRIES = 50  # entries that are kept; older ones are dropped


class HasId(Protocol):
    @property
    def id(self) -> str: ...


T = TypeVar("T", bound=HasId)


class EntryStore(Generic[T]):
    """A store of the latest entries by id. Several threads may use it."""

    def __init__(self) -> None:
        self._lock = threading.Lock()
        self._entries: dict[str, T] = {}
        self._count = 0

    def keep(self, make: Callable[[int], T]) -> T:
        """Store and return the entry that `make` creates from its number, counted from 1.

        An entry is never replaced: a person may have approved it. Raise `errors.Unapproved` if its id is taken.
        """
        with self._lock:
            self._count += 1
            entry = make(self._count)
            if entry.id in self._entries:
                raise Unapproved(
                    f"`{entry.id}` is another proposal already. Nothing was done.", hint="Propose it again."
                )
            self._entries[entry.id] = entry
            if len(self._entries) > _MAX_ENTRIES:
                del self._entries[next(iter(self._entries))]
            return entry

    def get(self, id_: str) -> T | None:
        with self._lock:
            return self._entries.get(id_)


@dataclass(frozen=True, slots=True, kw_only=True)
class StoredPlan:
    """A stored plan. `paths` are its profiles as they were named. The plan's source is its id, as for a saved plan."""

    id: str
    plan: Plan
    paths: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(goal.name for goal in self.plan.goals)

    @property
    def effects(self) -> tuple[ChangeEffects, ...]:
        """Return the effects of the changes that interrupt clients or spend more."""
        return tuple(each for each in plan_effects(self.plan) if each.interrupts or each.spends_more)

    @property
    def interrupts(self) -> bool:
        return any(each.interrupts for each in self.effects)

    @property
    def buys(self) -> bool:
        return any(each.buys for each in self.effects)

    @property
    def loosens(self) -> bool:
        """Return whether what exists may cost more, so that the limit of a purchase alone does not hold it."""
        return any(each.loosens for each in self.effects)


class Plans:
    """The plans of a server. Several threads may use it."""

    def __init__(self) -> None:
        self._entries = EntryStore[StoredPlan]()

    def keep(self, plan: Plan, paths: Sequence[str]) -> StoredPlan:
        def make(number: int) -> StoredPlan:
            id_ = f"plan-{number}-{plan_print(plan)[:8]}"
            return StoredPlan(id=id_, plan=replace(plan, source=id_), paths=tuple(paths))

        return self._entries.keep(make)

    def get(self, plan_id: str) -> StoredPlan | None:
        return self._entries.get(plan_id)

    def find(self, plan_id: str) -> StoredPlan:
        """Return the plan of that id. Raise `errors.Unapproved` if this server has none."""
        plan = self.get(plan_id)
        if plan is None:
            raise Unapproved(
                f"There is no plan `{plan_id}`. Nothing was done.",
                hint="Make one with the tool `plan`, and pass its plan_id, which is valid until this server ends.",
            )
        return plan
