"""Every promise with the state in a bucket: whatever becomes of any request to it, and whenever the run is killed."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import AbstractContextManager, suppress
from dataclasses import replace
from functools import cache
from itertools import product
from random import Random
from typing import Any

import pytest
from adapters.state.places import LOST_CALLS
from promises.mortal import Fuse, Stop
from promises.trial import Trial, trial

from tpudeploy.adapters.state.bucket_locks import LEASE_SECONDS
from tpudeploy.domain.errors import StateError
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.report import RunReport
from tpudeploy.workspace import Workspace

HOUR = 3600.0
BACKEND = "gs://states/team"
FULL = {"fault": "stockout", "zone": "us-east5-a"}
CALM = Patience(poll_first=60.0, poll_most=60.0)  # quiet looks are all alike
# What may become of one request to the bucket. A run goes on after each of them.
SINGLE: Mapping[str, Mapping[str, Any]] = {
    **LOST_CALLS,
    "late": {"fault": "slow", "seconds": 100},
}
# Longer than one call is sent again for. The run may have to be run again.
OUTAGES: Mapping[str, Mapping[str, Any]] = {
    "503 for a while": {"fault": "unavailable", "times": 9},
    "503 for a while, all carried out": {"fault": "failed-reply", "times": 9},
    "no reply for a while": {"fault": "lost-reply", "times": 9},
}
Call = tuple[str, int]


def storage_calls(at: Trial) -> Iterator[Call]:
    """Each request to the bucket as (method, its number among those of that method)."""
    counts: Counter[str] = Counter()
    for request in at.emulator.requests:
        if "/storage/v1/b/" not in request.path:
            continue
        listed = request.resource.endswith("/o")
        kinds = {"POST": "insert", "DELETE": "delete", "GET": "list" if listed else "get"}
        method = f"storage.objects.{kinds[request.method]}"
        counts[method] += 1
        yield method, counts[method]


@cache
def calls_of_one_life() -> tuple[Call, ...]:
    with begun() as at:
        list(live(at))
        return tuple(storage_calls(at))


def begun(*trouble: Mapping[str, Any]) -> AbstractContextManager[Trial]:
    return trial([FULL, *trouble], backend=BACKEND, patience=CALM)


def live(at: Trial) -> Iterator[RunReport | None]:
    """Created, restarted, destroyed; the first report of each."""
    yield at.apply()
    at.until_done(at.apply)
    at.must_serve()
    at.wanted["max_model_len"] = 8192
    yield at.apply()
    at.until_done(at.apply)
    at.must_serve()
    yield at.destroy()
    at.until_done(at.destroy)
    at.must_be_gone()


def chosen(name: str, *, whole: bool) -> Sequence[Call]:
    return calls_of_one_life() if whole else Random(name).sample(calls_of_one_life(), 1)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", SINGLE)
def test_whatever_becomes_of_any_one_request_the_run_continues(name: str, whole: bool) -> None:
    for method, number in chosen(name, whole=whole):
        with begun({**SINGLE[name], "method": method, "call": number}) as at:
            for report in live(at):
                assert report is not None, (name, method, number, at.history)
                assert report.error is None, (name, method, number, at.history)
            assert not at.is_locked, (name, method, number)


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", OUTAGES)
def test_after_any_outage_the_run_or_the_next_one_converges(name: str, whole: bool) -> None:
    for method, number in chosen(name, whole=whole):
        with begun({**OUTAGES[name], "method": method, "call": f"{number}-"}) as at:
            at.until_done(at.apply)
            at.wanted["max_model_len"] = 8192
            at.until_done(at.apply)
            assert [s for zone in at.emulator.live().values() for s in zone.values()] == ["ACTIVE"], at.history
            at.until_done(at.destroy)
            at.must_be_gone()


@pytest.mark.exhaustive
def test_killed_before_any_effect_a_rerun_converges_though_nobody_frees_the_lock(whole: bool) -> None:
    change = {"type": "v6e-4"}
    fuses = [Fuse() for _ in range(3)]
    with begun() as at:
        play(at, change, dict(enumerate(fuses)), 0.0)
    instants = [(act, effect) for act, fuse in enumerate(fuses) for effect in range(len(fuse.passed))]
    every = list(product(instants, (0.0, HOUR)))
    for (act, effect), later in every if whole else Random(0).sample(every, 3):
        with begun() as at:
            play(at, change, {act: Fuse(effect)}, later)


def play(at: Trial, change: Mapping[str, Any], fuses: Mapping[int, Fuse], later: float) -> None:
    """Created, replaced, destroyed; each act once with its fuse, where it has one, then until it is done."""
    for number, act in enumerate((at.apply, at.apply, at.destroy)):
        if number == 1:
            at.wanted.update(change)
        if number in fuses:
            act(fuses[number])
            assert at.is_locked == (fuses[number].is_blown and _is_locked(fuses[number])), at.history
            at.clock.sleep(later)
        at.until_done(act)
        if number < 2:
            at.must_serve()
    at.must_be_gone()
    if at.is_locked:  # killed before it freed it, with nothing left to do: the next who writes takes it over
        assert _is_locked(fuses[2])
        at.until_done(at.apply)
        at.until_done(at.destroy)
        at.must_be_gone()
    assert not at.is_locked


@pytest.mark.exhaustive
def test_stopped_before_any_effect_for_longer_than_its_lease_it_doubles_nothing_when_it_goes_on(whole: bool) -> None:
    """The other one comes, takes the lock over, and makes it serve; or removes all of it."""
    fuse = Fuse()
    with begun() as at:
        at.apply(fuse)
    every = list(product(range(len(fuse.passed)), ("apply", "destroy")))
    requests = fuse.passed.index("request")  # between the intent, which is saved, and the request
    for effect, verb in every if whole else [(requests, "apply"), (requests, "destroy"), *Random(1).sample(every, 2)]:
        with begun() as at:
            act = at.apply if verb == "apply" else at.destroy

            def stand_still(at: Trial = at, act: Callable[[], RunReport | None] = act) -> None:
                at.clock.sleep(LEASE_SECONDS + 1)  # the bucket says what time it is in whole seconds
                at.meanwhile(act)

            with suppress(StateError):  # what it is told when it wakes up: its lock is gone, or the state has moved
                at.apply(Stop(effect, meanwhile=stand_still))
            at.until_done(at.apply)
            at.must_serve()
            assert not at.is_locked, (effect, verb, at.history)
            at.until_done(at.destroy)
            at.must_be_gone()


@pytest.mark.parametrize("writes", [1, 3])
def test_a_write_of_the_run_before_that_comes_after_its_lock_was_taken_over_is_read_and_not_a_conflict(
    writes: int,
) -> None:
    fuse = Fuse()
    with begun() as at:
        at.apply(fuse)
    with begun() as at:
        at.apply(Fuse(fuse.passed.index("request")))  # killed with its intent saved, and its lock held
        at.clock.sleep(LEASE_SECONDS + 1)  # the bucket says what time it is in whole seconds
        stop = Late(at, writes)
        report = at.apply(stop)
        assert stop.left == 0
        assert report is not None, at.history
        assert report.error is None
        at.must_serve()
        assert not at.is_locked


class Late(Fuse):
    """Before each of this run's first writes, one of the dead run's arrives, which was on its way for long."""

    def __init__(self, at: Trial, writes: int) -> None:
        super().__init__()
        self.trial, self.left = at, writes

    def burn(self, where: str) -> bool:
        if where == "write" and self.left:
            self.left -= 1
            with Workspace(self.trial.folder, backend=BACKEND, clock=self.trial.watch) as dead:
                stored = dead.adapters.states.read("gemma")
                assert stored.state is not None
                dead.adapters.states.write(
                    "gemma", replace(stored.state, serial=stored.state.serial + 1), over=stored.version
                )
        return super().burn(where)


def _is_locked(fuse: Fuse) -> bool:
    """Whether the lock was held when the fuse blew: before what passed last, it was taken more often than freed."""
    before = Counter(fuse.passed[: fuse.at])
    return before["lock"] > before["unlock"]


@pytest.mark.parametrize("seconds", [9, 40, 200])
@pytest.mark.parametrize("number", [3, 4])
def test_a_state_that_takes_long_to_be_saved_costs_no_second_slice(number: int, seconds: float) -> None:
    slow = {"fault": "slow", "method": "storage.objects.insert", "call": number, "seconds": seconds}
    hidden = {"fault": "hidden", "seconds": 110, "attempt": 1}
    with trial([slow, hidden], backend=BACKEND, patience=CALM) as at:
        at.until_done(at.apply)
        at.must_serve()
        at.until_done(at.destroy)
        at.must_be_gone()
