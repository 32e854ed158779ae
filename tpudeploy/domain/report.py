"""RunReport: the result of an apply or a destroy; and Wait, the point at which an apply returns."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.errors import NotInEffect, TpudeployError, worst
from tpudeploy.domain.plan import Action
from tpudeploy.domain.serialization import to_json


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaEndpoint:
    """The endpoint of a replica. `url` has no path.

    `reached_from` is the network route that the probe of this run used, or "" if it needed none.
    """

    address: str
    url: str
    reached_from: str
    zone: str
    slice_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaOutcome:
    """The result for one replica. `underway`: it is in progress, and the next apply continues it."""

    address: str
    action: Action
    error: TpudeployError | None = None
    underway: bool = False

    def to_dict(self) -> dict[str, object]:
        error = None if self.error is None else self.error.to_dict()
        return {"address": self.address, "action": self.action, "error": error, "underway": self.underway}


class DeploymentResult(StrEnum):
    """The result of a run for one deployment."""

    SERVED = "served"
    GONE = "gone"
    UNDER_WAY = "under way"
    FAILED = "failed"
    UNCHANGED = "unchanged"


@dataclass(frozen=True, slots=True, kw_only=True)
class Summary:
    """One deployment of a run. `error` is its worst error."""

    name: str
    result: DeploymentResult
    error: TpudeployError | None = None

    def to_dict(self) -> dict[str, object]:
        error = None if self.error is None else self.error.to_dict()
        return {"name": self.name, "result": self.result, "error": error}


@dataclass(frozen=True, slots=True, kw_only=True)
class RunReport:
    """The result of a run. `unchanged` are the deployments without changes; `endpoints` has theirs, too.

    `not_in_effect` has an error for each replica that serves with other settings than declared, and for each router of
    this machine that does not answer; that ends no outcome.
    """

    outcomes: tuple[ReplicaOutcome, ...]
    endpoints: tuple[ReplicaEndpoint, ...] = ()
    unchanged: tuple[str, ...] = ()
    not_in_effect: tuple[NotInEffect, ...] = ()

    @property
    def failures(self) -> tuple[TpudeployError, ...]:
        """The errors that ended an outcome, each once."""
        return tuple(dict.fromkeys(o.error for o in self.outcomes if o.error is not None))

    @property
    def error(self) -> TpudeployError | None:
        """The worst error of the run, or None."""
        return worst((*self.failures, *self.not_in_effect))

    @property
    def deployments(self) -> tuple[Summary, ...]:
        """Each deployment once, by name."""
        outcomes_by_name: dict[str, list[ReplicaOutcome]] = {}
        for outcome in self.outcomes:
            outcomes_by_name.setdefault(outcome.address.partition("[")[0], []).append(outcome)
        summaries = {name: _summary(name, outcomes) for name, outcomes in outcomes_by_name.items()}
        unchanged = {name: Summary(name=name, result=DeploymentResult.UNCHANGED) for name in self.unchanged}
        return tuple(summary for _, summary in sorted((unchanged | summaries).items()))

    def count(self, *actions: Action) -> int:
        """Return the number of completed outcomes with one of these actions."""
        return sum(1 for o in self.outcomes if o.action in actions and o.error is None and not o.underway)

    @property
    def summary(self) -> str:
        """What the run did to resources, in one line."""
        additions = self.count(Action.CREATE, Action.REPLACE)
        removals = self.count(Action.DESTROY, Action.REPLACE)
        restarts = self.count(Action.RESTART)
        restarts_text = f", {restarts} restarted" if restarts else ""
        changes = f"{self.count(Action.UPDATE)} changed{restarts_text}"
        # What serves with other settings, or behind a router that does not answer, is not what was asked for.
        verdict = "Done!" if self.error is None else "Not done."
        return f"{verdict} Resources: {additions} added, {changes}, {removals} destroyed."

    def to_dict(self) -> dict[str, object]:
        """Return the last line that `apply --json` or `destroy --json` prints."""
        return {
            "format": "tpudeploy.report/1",
            "type": "report",
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "endpoints": to_json(self.endpoints),
            "not_in_effect": [error.to_dict() for error in self.not_in_effect],
            "deployments": [summary.to_dict() for summary in self.deployments],
        }


def _summary(name: str, outcomes: list[ReplicaOutcome]) -> Summary:
    error = worst(o.error for o in outcomes if o.error is not None)
    if error is not None:
        return Summary(name=name, result=DeploymentResult.FAILED, error=error)
    if any(o.underway for o in outcomes):
        return Summary(name=name, result=DeploymentResult.UNDER_WAY)
    is_gone = all(o.action is Action.DESTROY for o in outcomes)
    return Summary(name=name, result=DeploymentResult.GONE if is_gone else DeploymentResult.SERVED)


class Wait(StrEnum):
    """Each value includes those above it. Work in progress continues in the cloud, and a later apply resumes it."""

    ACCEPTED = "accepted"
    GRANTED = "granted"
    SERVING = "serving"
