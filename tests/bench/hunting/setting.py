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
# A slice is had for good once it has served for so long; what Google takes back earlier was a lure.
LASTING = 30 * MINUTE
# A place that preempts early does so this long after ACTIVE, uniform.
EARLY = (1 * MINUTE, 10 * MINUTE)
# The hours (UTC) between which a place with capacity only at night has any.
NIGHT = (22 * HOUR, 6 * HOUR)
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


class Habit(StrEnum):
    """What the first zone of the profile does every time; the emulator's habits (emulator/habits.py) bear these names.

    * `early-preemption`: it grants spot at once, and preempts it within minutes of ACTIVE.
    * `internal-error`: it grants everything at once, provisions, and ends with code 13.
    * `flapping`: it opens every few minutes, for one to three, and half of what it grants ends with code 13.
    """

    NONE = "none"
    EARLY_PREEMPTION = "early-preemption"
    INTERNAL_ERROR = "internal-error"
    FLAPPING = "flapping"


class Deletion(StrEnum):
    """What becomes of a deletion that is asked for while a slice is PROVISIONING.

    * `fails`: its operation ends in an error, which a look shows.
    * `ignored`: nothing comes of it, and nothing says so.
    * `late`: nothing says so, and it is carried out once the slice is ACTIVE.
    """

    FAILS = "fails"
    IGNORED = "ignored"
    LATE = "late"


class Apis(StrEnum):
    """Which of Google's APIs there are, with a quota each, and whether they sell the same chips: that is not known.

    * `one`: the Cloud TPU API.
    * `apart`: Compute Engine beside it, with windows of its own in the same zones.
    * `alike`: Compute Engine beside it, with the same windows.
    """

    ONE = "one"
    APART = "apart"
    ALIKE = "alike"


@dataclass(frozen=True, slots=True, kw_only=True)
class Setting:
    """One kind of world.

    `gap` is the median between two windows of a zone, `window` a window's mean and `shortest` its least. `ours`: the share of windows in which
    we are served and not somebody else. `shared`: the share of gaps that a zone has in common with its region.
    `code13`: the share of grants that end in an internal error. `preempt`: preemptions an hour of a spot slice.
    `quota`: chips a region, or None for plenty. `no_quota`: the share of regions whose quota is 0, whatever their zones
    say, for each API by itself. `flex`, `spot`: the share of zones that offer it. `boot`: from ACTIVE to serving. `habit` is that of the zone
    that the profile lists first. `night`: there is capacity only at night, and spot is reclaimed in the morning.
    `slow`: how long each call about the zone that is listed second takes.
    """

    gap: float
    window: float = 8 * MINUTE
    shortest: float = 0.0
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
    no_quota: float = 0.0
    boot: float = 0.0
    habit: Habit = Habit.NONE
    night: bool = False
    deletion: Deletion = Deletion.FAILS
    apis: Apis = Apis.ONE
    slow: float = 0.0

    @property
    def mean_gap(self) -> float:
        """Of a lognormal with this median."""
        return self.gap * math.exp(self.sigma**2 / 2)
