"""Whatever a run asked for can be found again: killed anywhere, its state lost, gc leaves nothing, killed or not."""

from __future__ import annotations

import shutil
from collections.abc import Iterable, Mapping
from random import Random
from typing import Any

import pytest
from promises.mortal import Fuse, Killed, MortalWorkspace, Stop
from promises.trial import Trial, trial

from tpudeploy import Workspace
from tpudeploy.adapters.project import STATES
from tpudeploy.adapters.state.bucket_locks import LEASE_SECONDS
from tpudeploy.domain.errors import TpudeployError

GRACE = 200.0  # a request that was hidden shows by then
SAMPLES = 4
BACKEND = "gs://states/team"
TROUBLES: Mapping[str, tuple[Mapping[str, Any], ...]] = {
    "none": (),
    "the first zone full": ({"fault": "stockout", "zone": "us-east5-a"},),
    "replies lost": ({"fault": "lost-reply", "times": 2},),
    "late to be seen": ({"fault": "hidden", "seconds": 70},),
    "preempted at once": ({"fault": "preempt", "after": 30, "times": 1},),
    "deletes refused": ({"fault": "delete-refused", "times": 2},),
}


@pytest.mark.exhaustive
@pytest.mark.parametrize("name", TROUBLES)
def test_killed_before_any_effect_and_the_state_lost_gc_leaves_nothing(name: str, whole: bool) -> None:
    trouble = TROUBLES[name]
    instants = range(_effects(trouble))
    for instant in instants if whole else sorted(Random(name).sample(instants, min(SAMPLES, len(instants)))):
        with trial(trouble) as at:
            at.wanted.update(replicas=2)
            at.apply(Fuse(instant))
            at.clock.sleep(GRACE)
            _lose_the_state(at)
            _collected(at, [Fuse()])
            _must_be_clean(at)


@pytest.mark.parametrize("effect", range(4))
def test_killed_itself_a_second_gc_goes_on(effect: int) -> None:
    with trial() as at:
        at.wanted.update(replicas=3)
        at.until_done(at.apply)
        _lose_the_state(at)
        _collected(at, [Fuse(effect), Fuse()])
        _must_be_clean(at)


def test_stopped_for_longer_than_its_lease_gc_deletes_nothing_that_was_adopted_meanwhile() -> None:
    with trial(backend=BACKEND) as at:
        at.until_done(at.apply)
        with Workspace(at.folder, backend=BACKEND, clock=at.watch) as workspace:
            workspace.adapters.states.delete("gemma", over=workspace.adapters.states.read("gemma").version)

        adoptions: list[TpudeployError | None] = []

        def adopt() -> None:
            at.clock.sleep(LEASE_SECONDS + 1)  # the bucket says what time it is in whole seconds
            with Workspace(at.folder, backend=BACKEND, clock=at.watch) as other:
                adoptions.append(other.apply(other.plan([at.profile()], adopt=True)).error)

        stop = Stop(1, meanwhile=adopt)
        with _workspace(at, stop, backend=BACKEND) as zombie:
            report = zombie.collect(zombie.gc(foreign=True))
        assert stop.passed[:2] == ["lock", "release"]
        assert adoptions == [None]
        assert report.error is None
        at.must_serve()


def _effects(trouble: Iterable[Mapping[str, Any]]) -> int:
    fuse = Fuse()
    with trial(trouble) as at:
        at.wanted.update(replicas=2)
        at.apply(fuse)
    return len(fuse.passed)


def _lose_the_state(at: Trial) -> None:
    shutil.rmtree(at.folder / STATES, ignore_errors=True)


def _collected(at: Trial, fuses: Iterable[Fuse]) -> None:
    """The last is to end well."""
    for fuse in fuses:
        try:
            with _workspace(at, fuse) as workspace:
                report = workspace.collect(workspace.gc(foreign=True))
        except Killed:
            continue
        assert report.error is None, at.history


def _workspace(at: Trial, fuse: Fuse, backend: str | None = None) -> MortalWorkspace:
    workspace = MortalWorkspace(at.folder, backend=backend, clock=at.watch)
    adapters = workspace.adapters
    adapters.fuse, adapters.before, adapters.after = fuse, lambda *_: None, lambda: None
    return workspace


def _must_be_clean(at: Trial) -> None:
    assert at.emulator.live() == {}, at.history
    assert at.emulator.billed() == (), at.history
