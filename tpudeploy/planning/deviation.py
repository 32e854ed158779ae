"""Compare a deployment with what was last applied: what drifted, was lost, or does not serve."""

from __future__ import annotations

from collections.abc import Collection
from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.plan import Action, Change, DriftKind, Goal, Reason, SliceDrift
from tpudeploy.domain.slices import BootPhase
from tpudeploy.domain.status import DeploymentStatus, ReplicaStatus
from tpudeploy.reconcile.desired import covers

_OUTSIDE = {DriftKind.CHANGED, DriftKind.UNTRACKED}
_LOST = {DriftKind.LOST, DriftKind.DELETED, DriftKind.MISSING}


class DeviationKind(StrEnum):
    """The kinds of a deviation, the worst first: an outage comes before a difference."""

    LOST = "lost"
    UNHEALTHY = "unhealthy"
    NOT_IN_EFFECT = "not in effect"
    DRIFT = "drift"


@dataclass(frozen=True, slots=True, kw_only=True)
class Deviation:
    """How a deployment differs from what was last applied.

    `lost` are the slices that were applied and no longer exist, as `tpudeploy drift` reports them. `unhealthy` are the
    replicas that do not serve. `ineffective` are the settings that a server does not run with. `drifted` are the
    changes that a plan would make. `outside` are the changes from outside of slices that exist: a plan may ignore some.
    """

    name: str
    lost: tuple[SliceDrift, ...]
    unhealthy: tuple[ReplicaStatus, ...]
    drifted: tuple[Change, ...] = ()
    outside: tuple[SliceDrift, ...] = ()
    ineffective: tuple[SliceDrift, ...] = ()

    @property
    def kind(self) -> DeviationKind:
        """The worst kind that it has."""
        if self.lost:
            return DeviationKind.LOST
        if self.unhealthy:
            return DeviationKind.UNHEALTHY
        return DeviationKind.NOT_IN_EFFECT if self.ineffective else DeviationKind.DRIFT


def deviation(goal: Goal, status: DeploymentStatus, observed: Goal | None = None) -> Deviation | None:
    """Return how a deployment deviates, or None if it does not, or was never deployed.

    `observed` is the deployment's part of a plan that queried its engines too.
    """
    if not goal.lineage:
        return None
    losses = _drift_of(observed or goal, _LOST)
    if status.underway:
        return _underway_deviation(goal.name, losses, status)
    result = Deviation(
        name=goal.name,
        lost=losses,
        unhealthy=tuple(r for r in status.replicas if r.serving is False),
        drifted=tuple(c for c in goal.changes if _is_drift(c)),
        outside=tuple(d for d in goal.drift if d.kind in _OUTSIDE and not _is_ignored(d, goal)),
        ineffective=() if observed is None else _drift_of(observed, {DriftKind.NOT_IN_EFFECT}),
    )
    is_deviating = any((losses, result.unhealthy, result.drifted, result.outside, result.ineffective))
    return result if is_deviating else None


def _underway_deviation(name: str, losses: tuple[SliceDrift, ...], status: DeploymentStatus) -> Deviation | None:
    """Return the deviation while a run is under way: a loss and a failed boot. The run changes everything else."""
    failed = tuple(r for r in status.replicas if r.serving is False and r.boot == BootPhase.FAILED)
    return Deviation(name=name, lost=losses, unhealthy=failed) if losses or failed else None


def _drift_of(goal: Goal, kinds: Collection[DriftKind]) -> tuple[SliceDrift, ...]:
    return tuple(d for d in goal.drift if d.kind in kinds)


def _is_ignored(drift: SliceDrift, goal: Goal) -> bool:
    """Return whether the profile ignores everything that was changed outside."""
    ignored = () if goal.deployment is None else goal.deployment.lifecycle.ignore_changes
    return bool(drift.fields) and all(covers(ignored, f.path) for f in drift.fields)


def _is_drift(change: Change) -> bool:
    """Return whether a change corrects what differs: it resumes no run, and its server did not fail."""
    # A slice whose run ends gets a successor. Nothing differs.
    if change.run_ends_at is not None or change.reason in {Reason.RESUMES, Reason.LEFTOVER, Reason.FAILED}:
        return False
    return change.action in {Action.UPDATE, Action.RESTART, Action.REPLACE, Action.DESTROY}
