"""What arm B is to arm A in one figure: a ratio with its 95 % interval, over repeats.

A repeat is the unit, not a request: requests of one run share its server, its minute and its luck. The logarithm of the
figure is fitted by least squares to the arm and to the place in the order, so that a linear drift is no effect; the
interval is Student's, with as many degrees of freedom as repeats are left over (Draper and Smith, Applied Regression
Analysis, ch. 1 and 14). In whole A/Bs the fitted effect is the plain difference of the arms' means.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import exp, expm1, log, sqrt
from typing import TypeVar

from tpudeploy.ab_test.student import chance, quantile
from tpudeploy.domain.experiment import Effect, Finding
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.side import Side

ALPHA = 0.05
POWER = 0.8  # how often a difference that is there is to be found
MARGIN = 0.02  # a difference below it is none that anybody acts on
_FITTED = 3  # the level, the arm, the drift
_APART = 1e-9  # what the arms differ in beside the drift; less is what arithmetic leaves of nothing

K = TypeVar("K")


@frozen
class Seen:
    """One figure of one repeat, above zero; `place` is its place in the order."""

    side: Side
    place: int
    value: float


def effect(seen: Sequence[Seen]) -> Effect | None:
    """None where so few tell nothing of their own scatter, or one arm has none."""
    df, x = len(seen) - _FITTED, [float(each.side is Side.B) for each in seen]
    if df < 1:
        return None
    places = _about_mean([float(each.place) for each in seen])
    arm = _freed(_about_mean(x), places)
    weight = _dot(arm, arm)
    if weight < _APART:
        return None  # one arm alone: nothing is compared
    logs = _freed(_about_mean([log(each.value) for each in seen]), places)
    b = _dot(arm, logs) / weight
    rest = [y - b * a for y, a in zip(logs, arm, strict=True)]
    error = sqrt(_dot(rest, rest) / df / weight)
    reach = quantile(1 - ALPHA / 2, df)
    return Effect(
        a=_mean_of(seen, Side.A),
        b=_mean_of(seen, Side.B),
        change=expm1(b),
        low=expm1(b - reach * error),
        high=expm1(b + reach * error),
        chance=chance(b / error, df) if error > 0 else float(b == 0.0),
        smallest=expm1((reach + quantile(POWER, df)) * error),
        repeats=len(seen),
    )


def finding(of: Effect, *, is_better_low: bool = False, by_chance: float | None = None) -> Finding:
    """What the interval says: the same within the margin, none, or which way.

    `by_chance` is how likely such an effect is by chance where it is one of many; its own unless given.
    """
    if of.low >= -MARGIN and of.high <= MARGIN:
        return Finding.SAME
    if (of.chance if by_chance is None else by_chance) > ALPHA or of.low <= 0 <= of.high:
        return Finding.NONE
    return Finding.BETTER if (of.change > 0) is not is_better_low else Finding.WORSE


def holm(chances: Mapping[K, float]) -> Mapping[K, float]:
    """Of many figures, each one's chance as if all were asked at once (S. Holm, Scand. J. Statist. 6, 1979)."""
    found: dict[K, float] = {}
    most = 0.0
    for before, (key, own) in enumerate(sorted(chances.items(), key=lambda pair: pair[1])):
        most = max(most, min(1.0, own * (len(chances) - before)))
        found[key] = most
    return found


def _mean_of(seen: Sequence[Seen], side: Side) -> float:
    """The geometric one: what is fitted is logarithms."""
    logs = [log(each.value) for each in seen if each.side is side]
    return exp(sum(logs) / len(logs))


def _freed(of: Sequence[float], by: Sequence[float]) -> list[float]:
    """What is left of it once all that goes along with `by` is taken out; both about their means."""
    slope = _dot(of, by) / _dot(by, by)
    return [one - slope * other for one, other in zip(of, by, strict=True)]


def _about_mean(of: Sequence[float]) -> list[float]:
    mean = sum(of) / len(of)
    return [one - mean for one in of]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
