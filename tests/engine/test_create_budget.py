"""The creates a minute that all runs of a process share: whoever waits for one has a turn, and finds it then."""

from __future__ import annotations

from tpudeploy.emulator import VirtualClock
from tpudeploy.engine.budget import CreateBudget


def emptied(every: float = 1.0) -> tuple[VirtualClock, CreateBudget]:
    clock = VirtualClock()
    budget = CreateBudget(clock, every=every)
    while budget.available():
        budget.spend()
    return clock, budget


def test_each_that_waits_has_a_turn_of_its_own() -> None:
    _, budget = emptied()
    assert [round(budget.seconds_to_turn(), 3) for _ in range(4)] == [1.0, 2.0, 3.0, 4.0]


def test_whoever_comes_at_its_turn_finds_a_create_left_and_nobody_else_does() -> None:
    clock, budget = emptied(every=0.3)
    turns = [clock.now() + budget.seconds_to_turn() for _ in range(50)]
    for turn in turns:
        clock.sleep(turn - clock.now())
        assert budget.available() == 1
        budget.spend()
        assert budget.available() == 0


def test_turns_that_nobody_took_are_not_waited_for() -> None:
    clock, budget = emptied()
    for _ in range(10):
        budget.seconds_to_turn()
    clock.sleep(3600)
    assert budget.available() == 20
    while budget.available():
        budget.spend()
    assert round(budget.seconds_to_turn(), 3) == 1.0


def test_a_pause_moves_the_turns_behind_it() -> None:
    _, budget = emptied()
    budget.pause(60.0)
    assert round(budget.seconds_to_turn(), 3) >= 60.0
