"""Check a plan against `lifecycle.prevent_destroy`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.plan import Action, Change, Goal


def prevented(deployments: Iterable[Deployment], goals: Iterable[Goal]) -> Iterator[Diagnostic]:
    names = {d.name: d for d in deployments if d.lifecycle.prevent_destroy}
    for each in goals:
        for change in each.changes:
            if each.name in names and _gives_up(change):
                yield Diagnostic(
                    code="TPU3002",
                    message=f"{change.address} may not be destroyed, but this plan would {change.action} it.",
                    path="lifecycle.prevent_destroy",
                    location=names[each.name].origins.get("lifecycle.prevent_destroy"),
                    hint="Set lifecycle.prevent_destroy to false first, or undo the change that forces it.",
                )


def _gives_up(change: Change) -> bool:
    """Return whether the change deletes a slice that the deployment could keep.

    A cutover deletes it only once another one serves in its place. `update: blue-green` and `on_run_end: renew` require
    that, and can be combined with `prevent_destroy`.
    """
    return change.action is Action.DESTROY or (change.action is Action.REPLACE and not change.hands_over)
