"""What kind of worlds a hunt is tried in: every number of that kind, in one place. All times in seconds."""

from __future__ import annotations

import math
from dataclasses import dataclass
from enum import StrEnum

MINUTE = 60.0
HOUR = 3600.0

LOOK_EVERY = 15.0
# A fail-fast create answers after this long; a queued one waits in line at once.
ANSWER = 30.0
# A request that fails fast in its own words, but late: how long it is listed as waiting before it is FAILED (L3).
LATE = 10 * MINUTE
# How long nodes take to go, and a queued resource after them.
SUSPENDING = 30.0
DELETING = 20.0
# From PROVISIONING to usable, uniform: what v6e-8 was seen to take.
PROVISIONING = (2 * MINUTE, 5 * MINUTE)
CHIPS = 8
# Nobody hunts longer; who has nothing by then never gets it.
HORIZON = 90 * 24 * HOUR


class Refusals(StrEnum):
    """How a zone without room says no.

    * `mixed`: spot fails fast, flex-start waits in line.
    * `fast`, `queue`: both fail fast; both wait.
    * `late`: as mixed, but spot is taken into line and FAILED ten minutes later.
    """

    FAST = "fast"
    QUEUE = "queue"
    MIXED = "mixed"
    LATE = "late"


class Reopening(StrEnum):
    """How the zones of a region come back after a gap that they share; see worlds.py.

    Each on its own clock, unless a run says otherwise. Together, in the same second, two grants in one look cannot be
    told apart, and one in eight hunts gives a slice back, however it asks: `--reopening together` prints that world.
    """

    TOGETHER = "together"
    APART = "apart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One kind of world.

    `gap` is the median between two windows of a zone, `window` a window's mean. `ours`: the share of windows in which
    we are served and not somebody else. `shared`: the share of gaps that a zone has in common with its region.
    `code13`: the share of grants that end in an internal error. `preempt`: preemptions an hour of a spot slice that is
    not usable yet. `quota`: chips a region, or None for plenty. `flex`, `spot`: the share of zones that offer it.
    """

    gap: float
    window: float = 8 * MINUTE
    sigma: float = 1.2
    ours: float = 0.6
    shared: float = 1 / 3
    reopening: Reopening = Reopening.APART
    zones: int = 16
    regions: int = 8
    code13: float = 0.05
    preempt: float = 0.0
    quota: int | None = None
    refusals: Refusals = Refusals.MIXED
    flex: float = 1.0
    spot: float = 1.0

    @property
    def mean_gap(self) -> float:
        """Of a lognormal with this median."""
        return self.gap * math.exp(self.sigma**2 / 2)
