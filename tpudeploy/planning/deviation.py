"""What is not as it was left: a deployment that drifted, was lost, or does not serve."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Drift, DriftKind, Goal, Reason
from tpudeploy.domain.slices import BootPhase
from tpudeploy.domain.status import DeploymentStatus, ReplicaStatus
from tpudeploy.reconcile.desired import covers


class Kind(StrEnum):
    """The worst first: what serves nobody comes before what only differs."""

    LOST = "lost"
    UNHEALTHY = "unhealthy"
    NOT_IN_EFFECT = "not in effect"
    DRIFT = "drift"


_LOST = {DriftKind.LOST, DriftKind.DELETED, DriftKind.MISSING}


@frozen
class Deviation:
    """`kind` is the worst of what was found; `drifted` is what a plan would do about it.

    `lost` are the slices that were applied and are not there, by the mechanism of `tpudeploy drift`. `outside` is what
    was changed of what stands: it may be more than a plan would undo. `ineffective`: what serves otherwise than it was
    told.
    """

    name: str
    kind: Kind
    lost: tuple[Drift, ...]
    unhealthy: tuple[ReplicaStatus, ...]
    drifted: tuple[Change, ...]
    outside: tuple[Drift, ...]
    ineffective: tuple[Drift, ...] = ()


def deviation(goal: Goal, status: DeploymentStatus, observed: Goal | None = None) -> Deviation | None:
    """None where all is well and where nothing was ever deployed.

    While a run is under way, only what was lost is one, and a boot that failed: the rest is what the run is about.
    `observed` is the same deployment's part of a plan that asked its engines too.
    """
    if not goal.lineage:
        return None
    changes = () if status.underway else goal.changes
    lost = tuple(d for d in (observed or goal).drift if d.kind in _LOST)
    unhealthy = tuple(r for r in status.replicas if _is_unhealthy(r, is_underway=bool(status.underway)))
    drifted = tuple(c for c in changes if _differs(c))
    outside = () if status.underway else tuple(d for d in goal.drift if _matters(d, goal))
    asked = () if status.underway or observed is None else observed.drift
    ineffective = tuple(d for d in asked if d.kind is DriftKind.NOT_IN_EFFECT)
    for kind, found in (
        (Kind.LOST, lost),
        (Kind.UNHEALTHY, unhealthy),
        (Kind.NOT_IN_EFFECT, ineffective),
        (Kind.DRIFT, drifted or outside),
    ):
        if found:
            return Deviation(
                name=goal.name,
                kind=kind,
                lost=lost,
                unhealthy=unhealthy,
                drifted=drifted,
                outside=outside,
                ineffective=ineffective,
            )
    return None


def _matters(drift: Drift, goal: Goal) -> bool:
    """Whether what was changed outside is more than the profile says to ignore."""
    ignored = () if goal.deployment is None else goal.deployment.lifecycle.ignore_changes
    return drift.kind is DriftKind.CHANGED and not all(covers(ignored, f.path) for f in drift.fields)


def _is_unhealthy(replica: ReplicaStatus, *, is_underway: bool) -> bool:
    return replica.serving is False and (not is_underway or replica.boot == BootPhase.FAILED)


def _differs(change: Change) -> bool:
    """Not what an earlier run left to do, nor a server that failed: that one is unhealthy."""
    changed = change.action in {Action.UPDATE, Action.RESTART, Action.REPLACE, Action.DESTROY}
    # A successor for a run that ends is none either.
    return (
        changed and change.run_ends_at is None and change.reason not in {Reason.RESUMES, Reason.LEFTOVER, Reason.FAILED}
    )
