"""The plans that a server showed, each under the id by which it may be applied: that very plan, or nothing."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tpudeploy.cli.mcp.shown import Shown
from tpudeploy.core.approval import plan_print
from tpudeploy.domain.errors import Unapproved
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Plan

# What interrupts nobody: an update may let go of what an earlier run left over, which serves nobody. Whatever else
# there may come to be is asked about.
_HARMLESS = {Action.NO_OP, Action.CREATE, Action.UPDATE}


@frozen
class Kept:
    """`paths` are the profiles as they were named. Its source is its id: it holds for the very world that it saw."""

    id: str
    plan: Plan
    paths: tuple[str, ...]

    @property
    def names(self) -> frozenset[str]:
        return frozenset(goal.name for goal in self.plan.goals)

    @property
    def ends(self) -> tuple[Change, ...]:
        """What of it takes something away from whoever uses it, for a while or for good."""
        return tuple(change for change in self.plan.changes if change.action not in _HARMLESS)


class Plans:
    """Safe to use from several threads."""

    def __init__(self) -> None:
        self._shown = Shown[Kept]()

    def keep(self, plan: Plan, paths: Sequence[str]) -> Kept:
        def made(number: int) -> Kept:
            id_ = f"plan-{number}-{plan_print(plan)[:8]}"
            return Kept(id=id_, plan=replace(plan, source=id_), paths=tuple(paths))

        return self._shown.keep(made)

    def get(self, plan_id: str) -> Kept | None:
        return self._shown.get(plan_id)

    def find(self, plan_id: str) -> Kept:
        """Raise `errors.Unapproved` for an id that no plan of this server has."""
        kept = self.get(plan_id)
        if kept is None:
            raise Unapproved(
                f"There is no plan `{plan_id}`: nothing was done.",
                hint="Make one with the tool `plan`, and name the plan_id that it answers. None outlives its server.",
            )
        return kept
