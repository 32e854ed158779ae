"""Paired: the same questions put to two servers, counted, and what such counts can and cannot show.

Pairs, because most questions are answered alike by both: only those that changed tell anything, and comparing two
shares as if of different questions would need twice as many. McNemar's test, exact and one-sided: had nothing changed
for the worse, a question that changed would be lost or gained with equal chance.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from tpudeploy.domain.frozen import frozen

ALPHA = 0.05  # how often a fall is seen where there is none, at most
POWER = 0.8  # how often a fall that is there is to be seen


@frozen
class Paired:
    """How many questions both had right, only the one before, only the one after, neither."""

    both: int
    lost: int
    gained: int
    neither: int

    @property
    def questions(self) -> int:
        return self.both + self.lost + self.gained + self.neither

    @property
    def before(self) -> float:
        """The share that was right before."""
        return _share(self.both + self.lost, self.questions)

    @property
    def after(self) -> float:
        return _share(self.both + self.gained, self.questions)

    @property
    def changed(self) -> float:
        """The share of questions that one had right and the other had not."""
        return _share(self.lost + self.gained, self.questions)


def chance(of: Paired) -> float:
    """How likely as many lost ones are, or more, where nothing became worse."""
    changed = of.lost + of.gained
    ways = tail = math.comb(changed, of.lost)
    for lost in range(of.lost, changed):
        ways = ways * (changed - lost) // (lost + 1)
        tail += ways
    return tail / (1 << changed)  # whole numbers, which Python divides however long they are


def most_that_fell(of: Paired) -> float:
    """The upper 95 % bound of the fall, as a share of questions: what cannot be excluded.

    Wald's interval of a paired difference with half a question added to each cell (Agresti and Min, 2005), without
    which no change at all would seem to be certainty.
    """
    lost, gained, n = of.lost + 0.5, of.gained + 0.5, of.questions + 2
    spread = math.sqrt(lost + gained - (lost - gained) ** 2 / n) / n
    return (lost - gained) / n + _z(1 - ALPHA) * spread


def power(questions: int, *, changed: float, fall: float) -> float:
    """How often so many questions show a fall of this share, where this share of them changes.

    The normal approximation of the exact test. Lost less gained moves in steps of two, and has to pass the bound: one
    is what that costs on average. Beside the exact sums it is too low by less than 1 point where 10 % change, by 5
    where hardly any do.
    """
    changed = max(changed, fall)
    spread = math.sqrt(questions * (changed - fall**2))
    beyond = questions * fall - 1 - _z(1 - ALPHA) * math.sqrt(questions * changed)
    return NormalDist().cdf(beyond / spread)


def needed(*, changed: float, fall: float) -> int:
    """The fewest questions that show such a fall as often as `POWER`."""
    few, many = 1, 2
    while power(many, changed=changed, fall=fall) < POWER:
        few, many = many, many * 2
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if power(middle, changed=changed, fall=fall) >= POWER else (middle, many)
    return many


def _share(part: int, of: int) -> float:
    return part / of if of else 0.0


def _z(share: float) -> float:
    return NormalDist().inv_cdf(share)
