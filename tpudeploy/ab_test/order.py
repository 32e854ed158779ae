"""The order of an A/B: A B A B … A. Every repeat has a start of the server to itself, and the last is of the first arm.

Refused: A B B A, where neighbours share one start. What is luck of that start would count twice, as if it were two
repeats; where starts differ and nothing else does, an interval that is to miss one time in twenty then misses one in
eight (three pairs) or one in six (five). Turns that begin and end alike lie symmetrically in time, so that a drift
takes no side (D. R. Cox, Some systematic experimental designs, Biometrika 38, 1951); and the arm that usually serves
is the one it ends with.
"""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise

from tpudeploy.domain.side import Side

FEWEST = 2  # repeats: with one, three figures would have to tell the difference, the drift and the noise


def order(repeats: int) -> tuple[Side, ...]:
    """Of so many repeats of B, and one more of A."""
    return (Side.A, *(Side.B, Side.A) * repeats)


def restarts(now: Side | None, turns: Sequence[Side], then: Side | None) -> int:
    """How often the server is started anew: it is `now` as one arm or as neither, and is to be so `then`."""
    way = (now, *turns, then)
    return sum(before is not after or before is None for before, after in pairwise(way))
