"""The effect of arm B relative to arm A on one figure: a ratio with its 95 % interval, over repeats.

A repeat is the unit, not a request: requests of one run share its server, its minute and its luck. The logarithm of the
figure is fitted by least squares to the arm and to the place in the order, so that a linear drift is not an effect; the
interval is Student's, with as many degrees of freedom as repeats remain (Draper and Smith, Applied Regression Analysis,
ch. 1 and 14). In complete A/Bs the fitted effect is the plain difference of the arms' means.

Why: decision 47 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import exp, expm1, log, sqrt
from typing import TypeVar

from tpudeploy.features.ab_test.experiment import AbFinding, MeasuredEffect
from tpudeploy.features.benchmark.run import Side
from tpudeploy.features.benchmark.student import quantile, within

ALPHA = 0.05
POWER = 0.8  # the wanted probability of detecting a real difference
MARGIN = 0.02  # nobody acts on a smaller difference
_FITTED = 3  # the level, the arm, the drift
_APART = 1e-9  # the difference of the arms beside the drift; less is a rounding error

K = TypeVar("K")


@dataclass(frozen=True, slots=True, kw_only=True)
class RepeatFigure:
    """One figure of one repeat, above zero; `place` is its place in the order."""

    side: Side
    place: int
    value: float


def effect(observed: Sequence[RepeatFigure]) -> MeasuredEffect | None:
    """Return the effect, or None where too few repeats show no scatter, or one arm has none."""
    df = len(observed) - _FITTED
    if df < 1:
        return None
    places = _about_mean([float(each.place) for each in observed])
    arm = _residual(_about_mean([float(each.side is Side.B) for each in observed]), places)
    weight = _dot(arm, arm)
    if weight < _APART:
        # All repeats are of one arm, so nothing is compared.
        return None
    logs = _residual(_about_mean([log(each.value) for each in observed]), places)
    slope = _dot(arm, logs) / weight
    rest = [y - slope * x for y, x in zip(logs, arm, strict=True)]
    error = sqrt(_dot(rest, rest) / df / weight)
    reach = quantile(1 - ALPHA / 2, df)
    a, b = geometric_mean(observed, Side.A), geometric_mean(observed, Side.B)
    assert a is not None
    assert b is not None
    return MeasuredEffect(
        a=a,
        b=b,
        change=expm1(slope),
        low=expm1(slope - reach * error),
        high=expm1(slope + reach * error),
        chance=chance(slope / error, df) if error > 0 else float(slope == 0.0),
        smallest=expm1((reach + quantile(POWER, df)) * error),
        repeats=len(observed),
    )


def finding(effect: MeasuredEffect, *, is_better_low: bool = False, by_chance: float | None = None) -> AbFinding:
    """Return what the interval shows: no difference beyond the margin, no significant one, or its direction.

    `by_chance` is the probability of such an effect by chance if it is one of many; by default its own.
    """
    if effect.low >= -MARGIN and effect.high <= MARGIN:
        return AbFinding.SAME
    probability = effect.chance if by_chance is None else by_chance
    if probability > ALPHA or effect.low <= 0 <= effect.high:
        return AbFinding.NONE
    return AbFinding.BETTER if (effect.change > 0) is not is_better_low else AbFinding.WORSE


def holm(chances: Mapping[K, float]) -> Mapping[K, float]:
    """Return each figure's chance, adjusted because all are asked at once (S. Holm, Scand. J. Statist. 6, 1979)."""
    adjusted: dict[K, float] = {}
    most = 0.0
    for rank, (key, own) in enumerate(sorted(chances.items(), key=lambda pair: pair[1])):
        most = max(most, min(1.0, own * (len(chances) - rank)))
        adjusted[key] = most
    return adjusted


def geometric_mean(observed: Sequence[RepeatFigure], side: Side) -> float | None:
    """Return the mean of an arm that belongs to the fit of logarithms, or None without repeats."""
    logs = [log(each.value) for each in observed if each.side is side]
    return exp(sum(logs) / len(logs)) if logs else None


def chance(t: float, df: int) -> float:
    """Return the two-sided p-value of Student's t: the probability that |T| is at least |`t`|."""
    return 1 - within(abs(t), df)


def _residual(values: Sequence[float], by: Sequence[float]) -> list[float]:
    """Return the values without the part that is linear in `by`; both are about their means."""
    slope = _dot(values, by) / _dot(by, by)
    return [value - slope * other for value, other in zip(values, by, strict=True)]


def _about_mean(values: Sequence[float]) -> list[float]:
    mean = sum(values) / len(values)
    return [value - mean for value in values]


def _dot(one: Sequence[float], other: Sequence[float]) -> float:
    return sum(a * b for a, b in zip(one, other, strict=True))
