"""Two runs at once: one lock, no second slice, both come to the same end; a clock that goes back changes nothing."""

from __future__ import annotations

from concurrent.futures import ThreadPoolExecutor

import pytest
from command_line import Open
from promises.mortal import Fuse
from promises.trial import TRIES, trial
from real_time import DEADLINE

from tpudeploy.adapters.project import STATES
from tpudeploy.adapters.state.local import LocalState
from tpudeploy.domain.errors import StalePlan, StateError
from tpudeploy.workspace import Workspace


@pytest.mark.parametrize("backend", [None, "gs://states/team"])
def test_two_runs_side_by_side_end_with_one_slice(backend: str | None) -> None:
    with trial(backend=backend) as at:
        profile = at.profile()

        def run() -> int:
            """As a person would: told that somebody else is at it, again."""
            for tries in range(TRIES):
                with Workspace(at.folder, backend=backend, clock=at.watch) as workspace:
                    try:
                        report = workspace.apply(workspace.plan([profile]))
                    except (StateError, StalePlan):
                        continue
                    if report.error is None:
                        return tries
            raise AssertionError("never done")

        with ThreadPoolExecutor(max_workers=2) as pool:
            both = [pool.submit(run) for _ in range(2)]
            assert all(one.result(timeout=DEADLINE) < TRIES for one in both)
        at.must_serve()
        creates = [r for r in at.emulator.requests if r.method == "POST" and "queuedResourceId" in r.path]
        assert len(creates) == 1
        at.until_done(at.destroy)
        at.must_be_gone()
        assert not at.is_locked


def test_who_finds_the_lock_is_told_who_holds_it_and_nothing_happens(cli: Open) -> None:
    at = cli()
    at.write()
    state = LocalState(at.folder / STATES, at.clock, who="ada@analytical-engine")
    lease = state.lock("gemma", "apply")
    result = at.run("apply", "-auto-approve", "gemma.yaml")
    assert result.code == 10
    assert "The state of gemma is locked by ada@analytical-engine" in result.words
    assert not at.requested_zones()
    state.unlock(lease)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0


@pytest.mark.parametrize("back", [3600.0, 30 * 86400.0])
@pytest.mark.parametrize("effect", range(6))
def test_a_clock_that_goes_back_costs_no_second_slice_and_no_long_wait(effect: int, back: float) -> None:
    with trial([{"fault": "hidden", "seconds": 70, "times": 1}]) as at:
        at.watch.ahead = back
        at.apply(Fuse(effect))
        at.watch.ahead = 0.0
        began = at.clock.now()
        at.until_done(at.apply)
        assert at.clock.now() - began < 1800
        at.must_serve()
        at.until_done(at.destroy)
        at.must_be_gone()
