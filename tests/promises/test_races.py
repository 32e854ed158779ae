"""Many at once for one lock and one state: one holder at a time, and not a write lost or made twice."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path
from threading import Barrier
from typing import Any

import pytest
from adapters.state.places import PLACES, Place
from adapters.state.samples import EMPTY
from other_process import race
from promises.trial import DEFAULTS, PROFILE, trial

from tpudeploy import Profile
from tpudeploy.domain import errors, events
from tpudeploy.domain.lock import Lease
from tpudeploy.domain.patience import Patience
from tpudeploy.emulator import VirtualClock
from tpudeploy.engine.session import open_session
from tpudeploy.ports import StateBackend, World
from tpudeploy.wiring import Adapters
from tpudeploy.workspace import Workspace

SIXTEEN = 16
# What becomes of requests while two machines work: carried out without a reply, or not at all.
DROPS: tuple[Mapping[str, Any], ...] = (
    {"fault": "lost-reply", "method": "storage.objects.*", "chance": 0.08},
    {"fault": "unavailable", "method": "storage.objects.*", "chance": 0.05},
    {"fault": "lost-reply", "method": "nodes.patch", "chance": 0.1},
    {"fault": "lost-reply", "method": "queuedResources.get", "chance": 0.03},
)
BUCKET = "gs://states/team"


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with PLACES[request.param](tmp_path) as place:
        yield place


def at_once(deed: Callable[[StateBackend], Any], place: Place) -> list[Any]:
    """What each of sixteen came to, which begin at the same moment with a view of their own."""
    gate = Barrier(SIXTEEN)
    views = [place.reopen() for _ in range(SIXTEEN)]

    def run(backend: StateBackend) -> Any:
        gate.wait(30)
        try:
            return deed(backend)
        except errors.StateLocked as locked:
            return locked

    with ThreadPoolExecutor(SIXTEEN) as pool:
        return list(pool.map(run, views))


def test_of_sixteen_who_race_for_a_lock_one_has_it_and_the_rest_are_told_exit_10(place: Place) -> None:
    came_to = at_once(lambda backend: backend.lock("gemma", "apply"), place)
    assert sum(isinstance(each, Lease) for each in came_to) == 1
    others = [each for each in came_to if isinstance(each, errors.StateLocked)]
    assert [each.exit_code for each in others] == [10] * (SIXTEEN - 1)
    assert all("The state of gemma is locked" in each.message for each in others)


def test_sixteen_who_wait_for_the_lock_all_have_it_in_their_turn_and_no_write_is_lost(place: Place) -> None:
    clock = VirtualClock()

    def write(backend: StateBackend) -> int:
        with open_session(world(backend, clock), "gemma", "apply") as session:
            session.save(session.state)
            return session.state.serial

    assert sorted(at_once(write, place)) == list(range(1, SIXTEEN + 1))
    state = place.reopen().read("gemma").state
    assert state is not None
    assert state.serial == SIXTEEN


def world(backend: StateBackend, clock: VirtualClock) -> World:
    """As much of one as a session needs; virtual time passes at once, so that its patience is as good as endless."""
    none: Any = None
    return World(
        cloud=none,
        state=backend,
        probe=none,
        routers=none,
        clock=clock,
        emit=heard,
        patience=Patience(lock=1e9, grace=1e12),
        creates=none,
        who="me@here",
        mint=lambda: EMPTY.lineage,
    )


def heard(event: events.Event) -> None:
    assert isinstance(event, events.LockHeld | events.LockWaiting)


def test_of_sixteen_processes_one_has_the_lock_of_a_folder(tmp_path: Path) -> None:
    came_to = race(tmp_path, "gemma", runners=SIXTEEN)
    assert sorted(came_to) == ["10"] * (SIXTEEN - 1) + ["won"]


class Counting:
    """A backend whose successful writes are counted."""

    def __init__(self, backend: StateBackend, serials: list[int]) -> None:
        self._backend, self._serials = backend, serials

    def __getattr__(self, name: str) -> Any:
        return getattr(self._backend, name)

    def write(self, name: str, state: Any, *, over: str) -> str:
        version = self._backend.write(name, state, over=over)
        self._serials.append(state.serial)
        return version


class CountingAdapters(Adapters):
    serials: list[int]

    def world(self, on_event: Callable[[events.Event], None] | None = None) -> World:
        world = super().world(on_event)
        return replace(world, state=Counting(world.state, self.serials))


class Machine(Workspace):
    adapters_class = CountingAdapters
    adapters: CountingAdapters


@contextmanager
def machine(folder: Path, backend: str | None, clock: Any, serials: list[int]) -> Iterator[Machine]:
    opened = Machine(folder, backend=backend, clock=clock, patience=Patience(lock=1e6))
    opened.adapters.serials = serials
    with opened:
        yield opened


@pytest.mark.exhaustive
@pytest.mark.parametrize("backend", [None, BUCKET], ids=["in a folder", "in a bucket"])
def test_after_many_applies_of_two_machines_with_dropped_replies_the_serial_is_the_number_of_writes(
    backend: str | None, tmp_path: Path, *, whole: bool
) -> None:
    applies = 50 if whole else 5
    serials: list[int] = []
    with trial(DROPS, backend=backend, versioned_buckets=["states"]) as at:

        def work(who: str) -> None:
            """Apply after apply, each with a label of its own; told that the other was at it, again."""
            folder = at.folder if backend is None else tmp_path / who
            folder.mkdir(exist_ok=True)
            for number in range(applies):
                path = folder / f"{who}.yaml"
                path.write_text(PROFILE.format(**{**DEFAULTS, "team": f"{who}-{number}"}), encoding="utf-8")
                with machine(folder, backend, at.watch, serials) as workspace:
                    assert any(applied(workspace, path) for _ in range(60)), (who, number)

        with ThreadPoolExecutor(2) as pool:
            for future in [pool.submit(work, who) for who in ("ada", "bob")]:
                future.result()
        assert at.state is not None
        assert serials == sorted(set(serials))
        assert (at.state.serial, len(serials)) == (serials[-1], serials[-1])
        if backend is not None:
            versions = at.emulator._cloud.objects.under("states", "team/state/gemma.json", versions=True)
            assert len(list(versions)) == at.state.serial
        assert list(at.emulator.live().values()) != []
        assert sum(len(zone) for zone in at.emulator.live().values()) == 1
        assert not at.is_locked


def applied(workspace: Workspace, path: Path) -> bool:
    try:
        return workspace.apply(workspace.plan([Profile.load(path)])).error is None
    except (errors.StateError, errors.StalePlan, errors.Fault):
        return False
