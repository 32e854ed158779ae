"""Report: what an apply or destroy came to."""

from __future__ import annotations

from dataclasses import dataclass

from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.plan import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Endpoint:
    """Where a replica answers. `url` has no path; `reached_from` is the door it was seen through."""

    address: str
    url: str
    reached_from: str
    zone: str
    slice_name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    address: str
    action: Action
    error: TpudeployError | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Report:
    outcomes: tuple[Outcome, ...]
    endpoints: tuple[Endpoint, ...] = ()

    @property
    def error(self) -> TpudeployError | None:
        """The first thing that went wrong, or None."""
        return next((o.error for o in self.outcomes if o.error is not None), None)

    def count(self, *actions: Action) -> int:
        return sum(1 for o in self.outcomes if o.action in actions and o.error is None)
