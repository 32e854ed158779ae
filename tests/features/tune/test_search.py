"""What a tuning finds in worlds whose truth is known: the best settings for a fraction of a grid, and no false winner."""

from __future__ import annotations

from pathlib import Path

import pytest
from features.tune.worlds import AXES, BUDGET, COLD, USD_PER_SECOND, WINDOW, every, tune, world

from tpudeploy.features.tune.search import (
    Axis,
    ClaimFinding,
    SearchBudget,
    Settings,
    StopReason,
    Trial,
    TuneStep,
    TuneVerdict,
    decide,
    spent,
)
from tpudeploy.features.tune.store import FORMAT
from tpudeploy.features.tune.tuning import Tuning
from tpudeploy.serialization import sealed

TWO = (Axis(name="x", choices=((), (("x", "1"),), (("x", "2"),))), Axis(name="y", choices=((), (("y", "1"),))))


def search(values: dict[Settings, float | None], budget: SearchBudget = BUDGET) -> tuple[TuneVerdict, list[Trial]]:
    """A tuning of two axes without noise; settings that are not in `values` have 100."""
    trials: list[Trial] = []
    while isinstance(step := decide(TWO, trials, budget), TuneStep):
        value = values.get(step.settings, 100.0)
        value = None if value is None else value * (1 + 1e-6 * (len(trials) % 3))
        trials.append(
            Trial(
                place=len(trials),
                stage=step.stage,
                settings=step.settings,
                number=step.number,
                value=value,
                usd=budget.warm,
            )
        )
    return step, trials


def test_the_winner_is_that_of_a_full_grid_for_less_than_a_third_of_its_cost() -> None:
    grid = tuple(every(AXES))
    grid_usd = len(grid) * (COLD + WINDOW) * USD_PER_SECOND
    same, claims = 0, 0
    for seed in range(100):
        at = world(seed, noise=0.003)
        verdict, _ = tune(at)
        same += verdict.winner == max(grid, key=at.truth)
        claims += verdict.finding is ClaimFinding.BETTER
        assert at.usd < grid_usd / 3
    assert same >= 95
    assert claims >= 95


@pytest.mark.parametrize(
    ("effect", "noise", "drift"), [(0.0, 0.02, 0.05), (0.03, 0.02, 0.05)], ids=["no effects at all", "small effects"]
)
def test_noise_and_drift_make_no_false_winner_more_than_once_in_twenty(
    effect: float, noise: float, drift: float
) -> None:
    false = 0
    for seed in range(100):
        at = world(seed + 1000, effect=effect, pair=effect / 5, noise=noise, drift=drift)
        verdict, _ = tune(at)
        is_better = at.truth(verdict.winner) > at.truth(()) * (1 + 1e-9)
        false += verdict.finding is ClaimFinding.BETTER and not is_better
    assert false <= 5


def test_a_race_ends_when_no_alternative_can_win() -> None:
    verdict, trials = search({(("x", "1"),): 80.0, (("x", "2"),): 85.0, (("y", "1"),): 90.0})
    assert (verdict.finding, verdict.winner, verdict.stop) == (ClaimFinding.NONE, (), StopReason.DECIDED)
    assert len(trials) == 5, "each alternative once, and the profile before each axis"


def test_both_axes_count_and_the_claim_has_measurements_of_its_own() -> None:
    both = (("x", "1"), ("y", "1"))
    verdict, trials = search({(("x", "1"),): 120.0, (("y", "1"),): 110.0, both: 132.0})
    assert (verdict.finding, verdict.winner) == (ClaimFinding.BETTER, both)
    assert verdict.effect is not None
    assert verdict.effect.low < 0.32 < verdict.effect.high
    own = [trial for trial in trials if trial.stage.startswith("confirm")]
    assert [trial.settings for trial in own] == [(), both] * 4 + [()]


def test_settings_that_break_a_limit_win_nothing_and_are_not_measured_again() -> None:
    verdict, trials = search({(("x", "1"),): None, (("x", "2"),): 120.0})
    assert verdict.winner == (("x", "2"),)
    assert sum(trial.settings == (("x", "1"),) for trial in trials) == 1


def test_where_the_profile_itself_breaks_a_limit_settings_that_keep_it_are_the_result() -> None:
    y, both = (("y", "1"),), (("x", "1"), ("y", "1"))
    verdict, _ = search({(): None, (("x", "1"),): 50.0, (("x", "2"),): None, y: None, both: None})
    assert (verdict.finding, verdict.winner) == (ClaimFinding.MEETS, (("x", "1"),))
    assert [each.change for each in verdict.evidence] == [None], "there is no figure to compare with"


def test_the_gain_of_a_race_is_what_was_measured_however_large() -> None:
    verdict, _ = search({(("x", "1"),): 500.0, (("x", "1"), ("y", "1")): 500.0})
    assert [each.change for each in verdict.evidence] == [pytest.approx(4.0, rel=1e-3)]


@pytest.mark.parametrize(("limit", "finding"), [(2.2, ClaimFinding.BETTER), (1.6, ClaimFinding.NONE)])
def test_the_money_is_never_exceeded_and_the_claim_is_paid_first(limit: float, finding: ClaimFinding) -> None:
    budget = SearchBudget(limit=limit, cold=0.4, warm=0.2)
    verdict, trials = search({(("x", "1"),): 120.0, (("y", "1"),): 110.0}, budget)
    assert spent(trials) <= limit + 1e-9
    assert (verdict.finding, verdict.stop) == (finding, StopReason.MONEY)


def test_more_money_continues_where_the_search_stopped() -> None:
    values: dict[Settings, float | None] = {(("x", "1"),): 120.0, (("y", "1"),): 110.0, (("x", "1"), ("y", "1")): 132.0}
    _, trials = search(values, SearchBudget(limit=2.0, cold=0.4, warm=0.2))
    step = decide(TWO, trials, BUDGET)
    assert isinstance(step, TuneStep)
    assert (step.stage, step.settings, step.number) not in {(t.stage, t.settings, t.number) for t in trials}


def test_a_tuning_of_an_earlier_version_is_read_and_written_again_without_a_change() -> None:
    text = (Path(__file__).parent / "data" / "tuning.json").read_text(encoding="utf-8")
    assert sealed.dumps(sealed.loads(Tuning, text, FORMAT), FORMAT) == text
