"""The results of requests for slices by place. This history outlives every state."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import Place, Provisioning
from tpudeploy.domain.names import Zone


class Ending(StrEnum):
    """How one request ended.

    granted: a machine started.  refused: Google refused.  lapsed: it waited until its end.
    released: we deleted it, e.g. after a grant elsewhere.  stuck: it was selected, and no machine started in time.
    preempted: it was granted, and Google reclaimed it too early to count (reconcile/failed_landings.py).
    """

    GRANTED = "granted"
    REFUSED = "refused"
    LAPSED = "lapsed"
    RELEASED = "released"
    STUCK = "stuck"
    PREEMPTED = "preempted"


@dataclass(frozen=True, slots=True, kw_only=True)
class HistoryEntry:
    """The end of one request. `at` is in seconds since the epoch, `waited` the seconds until then.

    `type` is the slice's, e.g. `v6e-1`. `kind` is the row of the error table (adapters/google/verdicts.py) and `text`
    is Google's raw text; both are empty without a refusal.
    """

    at: float
    zone: Zone
    provisioning: Provisioning
    type: str
    chips: int
    outcome: Ending
    waited: float
    kind: str = ""
    text: str = ""
    backend: Backend = DEFAULT_BACKEND

    @property
    def place(self) -> Place:
        return Place(self.zone, self.provisioning, self.backend)
