"""Paired: counts of the same questions answered by two servers, and the statistics of such counts.

The answers are paired, because both servers answer most questions alike: only changed answers carry information, and a
comparison of two independent shares would need twice as many questions. The test is McNemar's, exact and one-sided:
if nothing became worse, a changed question is lost or gained with equal probability.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from tpudeploy.domain.frozen import frozen

ALPHA = 0.05  # the maximum probability of reporting a fall where there is none
POWER = 0.8  # the wanted probability of reporting a real fall


@frozen
class Paired:
    """The numbers of questions that both servers, only the first, only the second, or neither had right."""

    both: int
    lost: int
    gained: int
    neither: int

    @property
    def questions(self) -> int:
        return self.both + self.lost + self.gained + self.neither

    @property
    def before(self) -> float:
        """The share that the first server had right."""
        return _share(self.both + self.lost, self.questions)

    @property
    def after(self) -> float:
        return _share(self.both + self.gained, self.questions)

    @property
    def changed(self) -> float:
        """The share of questions that exactly one server had right."""
        return _share(self.lost + self.gained, self.questions)


def p_value(counts: Paired) -> float:
    """Return the probability of at least this many losses if nothing became worse."""
    changed = counts.lost + counts.gained
    ways = tail = math.comb(changed, counts.lost)
    for losses in range(counts.lost, changed):
        ways = ways * (changed - losses) // (losses + 1)
        tail += ways
    return tail / (1 << changed)  # integers, which Python divides exactly at any length


def largest_fall(counts: Paired) -> float:
    """Return the upper 95 % bound of the fall, as a share of questions.

    It is Wald's interval of a paired difference with half a question added to each cell (Agresti and Min, 2005);
    without that, counts without any change would look like certainty.
    """
    losses, gains, n = counts.lost + 0.5, counts.gained + 0.5, counts.questions + 2
    spread = math.sqrt(losses + gains - (losses - gains) ** 2 / n) / n
    return (losses - gains) / n + _z(1 - ALPHA) * spread


def power(questions: int, *, changed: float, fall: float) -> float:
    """Return the probability that this number of questions shows a fall of this share, if the share `changed` changes.

    It is the normal approximation of the exact test. The difference of losses and gains moves in steps of two and has
    to pass the bound, which costs one on average. Compared with the exact sums, it is too low by less than 1 point
    where 10 % change, and by 5 points where hardly any do.
    """
    changed = max(changed, fall)
    spread = math.sqrt(questions * (changed - fall**2))
    beyond = questions * fall - 1 - _z(1 - ALPHA) * math.sqrt(questions * changed)
    return NormalDist().cdf(beyond / spread)


def questions_needed(*, changed: float, fall: float) -> int:
    """Return the smallest number of questions that shows such a fall with probability `POWER`."""
    few, many = 1, 2
    while power(many, changed=changed, fall=fall) < POWER:
        few, many = many, many * 2
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if power(middle, changed=changed, fall=fall) >= POWER else (middle, many)
    return many


def _share(part: int, total: int) -> float:
    return part / total if total else 0.0


def _z(share: float) -> float:
    return NormalDist().inv_cdf(share)
