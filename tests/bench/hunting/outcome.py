"""What one hunt came to."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from bench.hunting.cloud import Cloud
from bench.hunting.setting import LOOK_EVERY


@dataclass(frozen=True, slots=True, kw_only=True)
class Outcome:
    """`usable_at`: seconds until a look showed a usable slice, infinite for never. `left`: requests that stand at the
    end beside the one that is kept. `doubles`: how many slices became usable beside it, and had to be given back.
    """

    usable_at: float
    creates: int = 0
    left: int = 0
    doubles: int = 0

    @classmethod
    def of(cls, cloud: Cloud, *, usable_at: float, kept: str | None) -> Self:
        left = sum(name != kept for name in cloud.held)
        return cls(usable_at=usable_at, creates=cloud.creates, left=left, doubles=max(0, cloud.active - 1))


def next_look(now: float, moment: float) -> float:
    """The first look after `now` that is not before `moment`."""
    return max(math.floor(now / LOOK_EVERY) + 1, math.ceil(moment / LOOK_EVERY)) * LOOK_EVERY
