"""A rename that is killed anywhere: the slices are never forgotten, and the same command goes on to its end."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import replace
from pathlib import Path

import pytest
from adapters.state.places import PLACES, Place
from adapters.state.samples import FULL
from promises.mortal import Fuse, Killed, Mortal

from tpudeploy.domain.events import Event
from tpudeploy.domain.names import Address
from tpudeploy.domain.patience import Patience
from tpudeploy.emulator import VirtualClock
from tpudeploy.engine.state_ops import move
from tpudeploy.ports import StateBackend, World

GEMMA, CHAT = Address(deployment="gemma"), Address(deployment="chat")
RESTING = replace(FULL, goal=None)
EFFECTS = 4  # written, published, withdrawn, deleted
URL = {"url": "http://one"}


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with PLACES[request.param](tmp_path) as place:
        yield place


def rename(backend: StateBackend, fuse: Fuse) -> None:
    effects = frozenset({"write", "publish", "delete"})
    mortal = Mortal(backend, fuse, effects=effects, before=lambda *_: None, after=lambda: None)
    nothing: Callable[[Event], None] = lambda _: None  # noqa: E731 - nobody listens
    world = World(
        cloud=None,  # type: ignore[arg-type]  # a move speaks to nobody but the state
        state=mortal,
        probe=None,  # type: ignore[arg-type]  # as the cloud
        routers=None,  # type: ignore[arg-type]  # as the cloud
        clock=VirtualClock(),
        emit=nothing,
        patience=Patience(),
        creates=None,  # type: ignore[arg-type]  # as the cloud
        who="me@here",
        mint=lambda: "f" * 32,
    )
    move(world, GEMMA, CHAT)


@pytest.mark.parametrize("at", [*range(EFFECTS), None])
def test_killed_before_any_effect_the_same_command_ends_it(place: Place, at: int | None) -> None:
    backend = place.reopen()
    backend.write("gemma", RESTING, over="")
    backend.publish("gemma", URL)
    fuse = Fuse(at)
    if at is None:
        rename(backend, fuse)
        assert fuse.passed == ["write", "publish", "publish", "delete"]
    else:
        with pytest.raises(Killed):
            rename(backend, fuse)
        states = [backend.read(name).state for name in backend.names()]
        assert all(state is not None and state.records == RESTING.records for state in states)
        assert states
        rename(place.reopen(), Fuse())
    backend = place.reopen()
    assert backend.names() == ("chat",)
    moved = backend.read("chat").state
    assert moved is not None
    assert (moved.records, moved.lineage) == (RESTING.records, RESTING.lineage)
    assert (backend.published("chat"), backend.published("gemma")) == (URL, None)


def test_what_became_known_between_two_tries_is_kept(place: Place) -> None:
    """Killed half-way, then applied under the new name: the older state does not come back over it."""
    backend = place.reopen()
    backend.write("gemma", RESTING, over="")
    with pytest.raises(Killed):
        rename(backend, Fuse(1))
    stored = backend.read("chat")
    assert stored.state is not None
    later = replace(stored.state, serial=stored.state.serial + 1, next_attempt=9)
    backend.write("chat", later, over=stored.version)
    rename(place.reopen(), Fuse())
    assert place.reopen().read("chat").state == later
    assert place.reopen().names() == ("chat",)
