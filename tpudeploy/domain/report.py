"""Report: what an apply or destroy came to."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.errors import NotInEffect, TpudeployError, worst
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action
from tpudeploy.domain.tree import tree


@frozen
class Endpoint:
    """Where a replica answers. `url` has no path; `reached_from` is the door it was seen through."""

    address: str
    url: str
    reached_from: str
    zone: str
    slice_name: str


@frozen
class Outcome:
    """`underway`: begun, and left to the next apply, because no more was to be waited for."""

    address: str
    action: Action
    error: TpudeployError | None = None
    underway: bool = False

    def to_dict(self) -> dict[str, object]:
        error = None if self.error is None else self.error.to_dict()
        return {"address": self.address, "action": self.action, "error": error, "underway": self.underway}


class Result(StrEnum):
    """What a run came to for one deployment."""

    SERVED = "served"
    GONE = "gone"
    UNDER_WAY = "under way"
    FAILED = "failed"
    UNCHANGED = "unchanged"


@frozen
class Summary:
    """One deployment of a run. `error` is its worst."""

    name: str
    result: Result
    error: TpudeployError | None = None

    def to_dict(self) -> dict[str, object]:
        error = None if self.error is None else self.error.to_dict()
        return {"name": self.name, "result": self.result, "error": error}


@frozen
class Report:
    """`unchanged` are the deployments of which nothing was asked.

    `not_in_effect`: of each replica that serves otherwise than it was told, how; that ends no outcome.
    """

    outcomes: tuple[Outcome, ...]
    endpoints: tuple[Endpoint, ...] = ()
    unchanged: tuple[str, ...] = ()
    not_in_effect: tuple[NotInEffect, ...] = ()

    @property
    def failures(self) -> tuple[TpudeployError, ...]:
        """What ended an outcome, each once."""
        return tuple(dict.fromkeys(o.error for o in self.outcomes if o.error is not None))

    @property
    def error(self) -> TpudeployError | None:
        """The worst thing that went wrong, or None."""
        return worst((*self.failures, *self.not_in_effect))

    @property
    def deployments(self) -> tuple[Summary, ...]:
        """Each deployment once, by name."""
        of: dict[str, list[Outcome]] = {}
        for outcome in self.outcomes:
            of.setdefault(outcome.address.partition("[")[0], []).append(outcome)
        told = {name: _summary(name, outcomes) for name, outcomes in of.items()}
        left = {name: Summary(name=name, result=Result.UNCHANGED) for name in self.unchanged}
        return tuple(summary for _, summary in sorted((left | told).items()))

    def count(self, *actions: Action) -> int:
        """How many of these came to their end."""
        return sum(1 for o in self.outcomes if o.action in actions and o.error is None and not o.underway)

    def to_dict(self) -> dict[str, object]:
        """The last line that `--json` prints of an apply or destroy."""
        return {
            "format": "tpudeploy.report/1",
            "type": "report",
            "outcomes": [outcome.to_dict() for outcome in self.outcomes],
            "endpoints": tree(self.endpoints),
            "not_in_effect": [error.to_dict() for error in self.not_in_effect],
            "deployments": [summary.to_dict() for summary in self.deployments],
        }


def _summary(name: str, outcomes: list[Outcome]) -> Summary:
    error = worst(o.error for o in outcomes if o.error is not None)
    if error is not None:
        return Summary(name=name, result=Result.FAILED, error=error)
    if any(o.underway for o in outcomes):
        return Summary(name=name, result=Result.UNDER_WAY)
    is_gone = all(o.action is Action.DESTROY for o in outcomes)
    return Summary(name=name, result=Result.GONE if is_gone else Result.SERVED)
