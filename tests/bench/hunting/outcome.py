"""What one hunt came to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from bench.hunting.cloud import Cloud
from bench.hunting.setting import LOOK_EVERY


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`usable_at`: when the slice that lasts began to serve, in seconds; infinite for never. `left`: requests that stand
    at the end beside it. `doubles`: how many slices became ACTIVE beside it and were given back, `doomed`: how many
    Google took back. `wasted`: the chip-minutes that all of these were ACTIVE for, and billed.
    """

    usable_at: float
    creates: int = 0
    left: int = 0
    doubles: int = 0
    doomed: int = 0
    wasted: float = 0.0

    @classmethod
    def of(cls, cloud: Cloud, *, now: float, usable_at: float, winner: str | None) -> Self:
        cloud.close(now, winner)
        return cls(
            usable_at=usable_at,
            creates=cloud.creates,
            left=sum(name != winner for name in cloud.held),
            doubles=cloud.doubles,
            doomed=cloud.doomed,
            wasted=cloud.wasted,
        )


def next_look(now: float, moment: float) -> float:
    """The first look after `now` that is not before `moment`."""
    return max(math.floor(now / LOOK_EVERY) + 1, math.ceil(moment / LOOK_EVERY)) * LOOK_EVERY
