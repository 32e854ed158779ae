"""What the `lifecycle` section forbids of a plan."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.plan import Action, Goal


def prevented(deployments: Iterable[Deployment], goals: Iterable[Goal]) -> Iterator[Diagnostic]:
    names = {d.name: d for d in deployments if d.lifecycle.prevent_destroy}
    for each in goals:
        for change in each.changes:
            if each.name in names and change.action in {Action.DESTROY, Action.REPLACE}:
                yield Diagnostic(
                    code="TPU3002",
                    message=f"{change.address} may not be destroyed, but this plan would {change.action} it.",
                    path="lifecycle.prevent_destroy",
                    location=names[each.name].origins.get("lifecycle.prevent_destroy"),
                    hint="Set lifecycle.prevent_destroy to false first, or undo the change that forces it.",
                )
