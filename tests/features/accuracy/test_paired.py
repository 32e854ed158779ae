"""What is claimed of the test is true of it: how often it cries wolf, how often it sees one, how many it needs."""

from __future__ import annotations

import random
from collections.abc import Iterator

import pytest

from tpudeploy.features.accuracy.judgement import Paired
from tpudeploy.features.accuracy.verdict import ALPHA, largest_fall, p_value, power, questions_needed

TRIALS = 2000


def drawn(seed: int, questions: int, *, fall_share: float, gained: float) -> Iterator[Paired]:
    """Comparisons of two servers of which questions are lost and gained with these chances."""
    dice = random.Random(seed)
    for _ in range(TRIALS):
        rolls = [dice.random() for _ in range(questions)]
        fell = sum(roll < fall_share for roll in rolls)
        rose = sum(fall_share <= roll < fall_share + gained for roll in rolls)
        yield Paired(both=questions - fell - rose, lost=fell, gained=rose, neither=0)


@pytest.mark.parametrize(
    ("lost", "gained", "expected"),
    [
        (10, 0, 1 / 1024),
        (0, 0, 1.0),
        (6, 1, 8 / 128),
        (0, 7, 1.0),
        (5, 5, 638 / 1024),
    ],
)
def test_the_chance_is_exact(lost: int, gained: int, expected: float) -> None:
    assert p_value(Paired(both=100, lost=lost, gained=gained, neither=3)) == pytest.approx(expected)


def test_thousands_of_changed_questions_have_a_chance_too() -> None:
    assert p_value(Paired(both=0, lost=2000, gained=2000, neither=0)) == pytest.approx(0.5063, abs=1e-4)
    assert p_value(Paired(both=0, lost=3000, gained=1000, neither=0)) == pytest.approx(0.0, abs=1e-200)


@pytest.mark.parametrize(("questions", "changed"), [(100, 0.1), (400, 0.04), (400, 0.1), (1319, 0.1)])
def test_where_nothing_fell_it_seldom_says_so(questions: int, changed: float) -> None:
    alarms = sum(p_value(paired) <= ALPHA for paired in drawn(1, questions, fall_share=changed / 2, gained=changed / 2))
    assert alarms / TRIALS <= ALPHA + 0.01  # an exact test keeps it; 0.01 is twice the error of so many trials


@pytest.mark.parametrize(
    ("questions", "changed", "fall"),
    [(400, 0.1, 0.03), (690, 0.1, 0.03), (1319, 0.1, 0.02), (1540, 0.1, 0.02), (400, 0.05, 0.05), (800, 0.2, 0.04)],
)
def test_the_power_that_it_claims_it_has(questions: int, changed: float, fall: float) -> None:
    fall_share, gained = (changed + fall) / 2, (changed - fall) / 2
    detections = sum(p_value(paired) <= ALPHA for paired in drawn(2, questions, fall_share=fall_share, gained=gained))
    claimed = power(questions, changed=changed, fall=fall)
    assert claimed - 0.025 <= detections / TRIALS <= claimed + 0.06  # the approximation is on the careful side


@pytest.mark.parametrize(("fall", "textbook"), [(0.02, 1540), (0.03, 690)])
def test_so_many_are_needed_as_textbooks_say_and_a_few_more_because_the_test_is_exact(
    fall: float, textbook: int
) -> None:
    many = questions_needed(changed=0.1, fall=fall)
    assert textbook <= many <= textbook + 2.2 / fall
    assert power(many, changed=0.1, fall=fall) >= 0.8 > power(many - 1, changed=0.1, fall=fall)


def test_two_that_answer_alike_are_still_compared_by_what_would_have_to_change() -> None:
    assert power(400, changed=0.0, fall=0.02) == power(400, changed=0.02, fall=0.02)
    assert questions_needed(changed=0.0, fall=0.02) == 401
    assert largest_fall(Paired(both=400, lost=0, gained=0, neither=0)) == pytest.approx(0.0041, abs=1e-4)


@pytest.mark.parametrize(("fall_share", "gained"), [(0.05, 0.05), (0.07, 0.03), (0.01, 0.01)])
def test_what_cannot_be_excluded_is_seldom_less_than_what_is(fall_share: float, gained: float) -> None:
    true = fall_share - gained
    covered = sum(largest_fall(paired) >= true for paired in drawn(3, 400, fall_share=fall_share, gained=gained))
    assert covered / TRIALS >= 0.93
