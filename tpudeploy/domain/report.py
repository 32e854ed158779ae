"""Report: what an apply or destroy came to."""

from __future__ import annotations

from tpudeploy.domain.errors import TpudeployError
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


@frozen
class Report:
    outcomes: tuple[Outcome, ...]
    endpoints: tuple[Endpoint, ...] = ()

    @property
    def error(self) -> TpudeployError | None:
        """The first thing that went wrong, or None."""
        return next((o.error for o in self.outcomes if o.error is not None), None)

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
        }
