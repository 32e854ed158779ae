"""What an A/B may claim: no more false alarms than it says, intervals that hold what is true, drift is no effect."""

from __future__ import annotations

from collections.abc import Iterator
from math import exp, log
from random import Random

import pytest

from tpudeploy.features.ab_test.effect import MARGIN, RepeatFigure, chance, effect, finding, holm
from tpudeploy.features.ab_test.experiment import AbFinding, MeasuredEffect
from tpudeploy.features.ab_test.turns import order, restarts
from tpudeploy.features.benchmark.run import Side
from tpudeploy.features.benchmark.student import quantile

TRIALS = 1500
# scipy.stats.t.ppf of scipy 1.17
PPF = {
    (0.975, 1): 12.706204736174694,
    (0.975, 2): 4.302652729749462,
    (0.975, 3): 3.1824463052837078,
    (0.975, 4): 2.7764451051977934,
    (0.975, 8): 2.306004135204166,
    (0.975, 17): 2.1098155778333156,
    (0.8, 2): 1.0606601717798214,
    (0.8, 4): 0.9409645772351816,
    (0.995, 5): 4.032142983555228,
}


def worlds(true: float, *, repeats: int = 3, drift: float = 0.0, start: float = 0.01) -> Iterator[MeasuredEffect]:
    """A/Bs of a machine that scatters by 1 %, has luck of `start` at each start, and drifts so much from turn to turn."""
    random = Random(20261122)
    for _ in range(TRIALS):
        observations = [
            RepeatFigure(
                side=side,
                place=place,
                value=100 * exp((side is Side.B) * log(true) + drift * place + random.gauss(0, start) + noise),
            )
            for place, side in enumerate(order(repeats))
            for noise in [random.gauss(0, 0.01)]
        ]
        estimate = effect(observations)
        assert estimate is not None
        yield estimate


@pytest.mark.parametrize(("at", "value"), PPF.items())
def test_quantiles_of_t_are_those_of_others(at: tuple[float, int], value: float) -> None:
    assert quantile(*at) == pytest.approx(value, rel=1e-9)
    assert chance(value, at[1]) == pytest.approx(2 * (1 - at[0]), rel=1e-9)


@pytest.mark.parametrize("repeats", [2, 3])
@pytest.mark.parametrize("drift", [0.0, 0.02])
@pytest.mark.parametrize("true", [1.0, 0.9])
def test_nineteen_of_twenty_intervals_hold_what_is_true_whatever_drifts(
    true: float, drift: float, repeats: int
) -> None:
    effects = list(worlds(true, repeats=repeats, drift=drift))
    coverage = sum(each.low <= true - 1 <= each.high for each in effects) / TRIALS
    assert coverage == pytest.approx(0.95, abs=0.018)


@pytest.mark.parametrize("start", [0.0, 0.01, 0.03])
def test_where_nothing_differs_a_difference_is_said_one_time_in_twenty_at_most(start: float) -> None:
    output = [finding(each) for each in worlds(1.0, start=start)]
    alarms = sum(each in {AbFinding.BETTER, AbFinding.WORSE} for each in output) / TRIALS
    assert alarms <= 0.05 + 0.015


def test_the_smallest_difference_that_is_told_is_found_four_times_in_five() -> None:
    smallest = sorted(each.smallest for each in worlds(1.0))[TRIALS // 2]
    effects = list(worlds(1 + smallest))
    assert sum(finding(each) is AbFinding.BETTER for each in effects) / TRIALS == pytest.approx(0.8, abs=0.1)


def test_two_repeats_of_one_start_would_be_taken_for_two() -> None:
    """Why the order is not A B B A: the start's luck counts twice, and nothing shows it."""
    random = Random(7)
    alarms = 0
    for _ in range(TRIALS):
        a1, b, a2, b3 = (random.gauss(0, 0.01) for _ in range(4))
        pairs = [b - a1, b - a2, b3 - a2]  # A | B B | A A | B, of servers that differ from start to start alone
        mean = sum(pairs) / 3
        error = (sum((pair - mean) ** 2 for pair in pairs) / 2 / 3) ** 0.5
        alarms += abs(mean) > quantile(0.975, 2) * error
    assert alarms / TRIALS > 0.08


def test_what_is_the_same_is_said_to_be_and_what_cannot_be_told_is_not() -> None:
    def effect_between(low: float, high: float) -> MeasuredEffect:
        middle, by_chance = (low + high) / 2, 0.001 if low * high > 0 else 0.5
        return MeasuredEffect(a=1, b=1, change=middle, low=low, high=high, chance=by_chance, smallest=0.1, repeats=7)

    assert finding(effect_between(-0.01, 0.015)) is AbFinding.SAME
    assert finding(effect_between(0.001, MARGIN)) is AbFinding.SAME
    assert finding(effect_between(-0.01, 0.03)) is AbFinding.NONE
    assert finding(effect_between(0.01, 0.05)) is AbFinding.BETTER
    assert finding(effect_between(0.01, 0.05), is_better_low=True) is AbFinding.WORSE
    assert finding(effect_between(-0.05, -0.01), is_better_low=True) is AbFinding.BETTER
    assert finding(effect_between(0.01, 0.05), by_chance=0.2) is AbFinding.NONE


@pytest.mark.parametrize("sides", ["A", "AB", "ABA", "AAAA"])
def test_what_cannot_be_told_from_noise_or_from_drift_is_no_effect(sides: str) -> None:
    observations = [
        RepeatFigure(side=Side(side), place=place, value=10.0 + place % 2) for place, side in enumerate(sides)
    ]
    assert effect(observations) is None


def test_a_missing_turn_is_no_drift() -> None:
    drifting = [(0, "A", 100.0), (1, "B", 121.0), (2, "A", 121.0), (4, "A", 146.41), (5, "B", 177.1561)]
    drift_free = effect([RepeatFigure(side=Side(side), place=place, value=value) for place, side, value in drifting])
    assert drift_free is not None
    assert drift_free.change == pytest.approx(0.1)
    assert drift_free.low == pytest.approx(drift_free.high)


def test_of_many_figures_one_that_stands_out_by_chance_does_not_count() -> None:
    assert holm({"a": 0.01, "b": 0.04, "c": 0.03, "d": 0.5}) == pytest.approx(
        {"a": 0.04, "c": 0.09, "b": 0.09, "d": 0.5}
    )
    assert holm({"one": 0.04}) == {"one": 0.04}
    assert not holm({})


def test_every_repeat_has_a_start_of_its_own_and_the_last_is_of_the_first_arm() -> None:
    turns = order(3)
    assert "".join(turns) == "ABABABA"
    assert restarts(Side.A, turns, Side.A) == 6
    assert restarts(Side.B, turns, Side.B) == 8
    assert restarts(None, turns, None) == 8
    assert restarts(Side.A, turns[3:], Side.A) == 4
