"""What every state backend promises: compare-and-swap, one holder of a lock, whole states or none."""

from __future__ import annotations

import socket
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from adapters.state.places import PLACES, Place
from adapters.state.samples import EMPTY, FULL, GRANTED, REFUSED

from tpudeploy.adapters.state import holder
from tpudeploy.domain import errors
from tpudeploy.domain.state import State
from tpudeploy.ports import StateBackend


@pytest.fixture(params=PLACES)
def place(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[Place]:
    with PLACES[request.param](tmp_path) as place:
        yield place


@pytest.fixture
def reopen(place: Place) -> Callable[[], StateBackend]:
    """Each call is another process's view of the same place."""
    return place.reopen


@contextmanager
def locked(backend: StateBackend, name: str, operation: str = "apply") -> Iterator[None]:
    lease = backend.lock(name, operation)
    try:
        yield
    finally:
        backend.unlock(lease)


def test_a_state_that_was_never_written_is_empty(reopen: Callable[[], StateBackend]) -> None:
    assert reopen().read("gemma").state is None
    assert reopen().names() == ()


@pytest.mark.parametrize("state", [EMPTY, FULL], ids=["empty", "full"])
def test_what_was_written_is_what_is_read(reopen: Callable[[], StateBackend], state: State) -> None:
    version = reopen().write("gemma", state, over="")
    stored = reopen().read("gemma")
    assert (stored.state, stored.version) == (state, version)
    assert reopen().names() == ("gemma",)


def test_a_write_over_a_version_that_is_no_longer_there_changes_nothing(reopen: Callable[[], StateBackend]) -> None:
    first = reopen().write("gemma", EMPTY, over="")
    second = replace(EMPTY, serial=1)
    assert reopen().write("gemma", second, over=first) != first
    for stale in ("", first):
        with pytest.raises(errors.StateConflict, match="gemma changed while this run worked on it"):
            reopen().write("gemma", replace(EMPTY, serial=2), over=stale)
    assert reopen().read("gemma").state == second


def test_a_lock_has_one_holder_and_names_it(reopen: Callable[[], StateBackend]) -> None:
    with locked(reopen(), "gemma", "destroy"):
        with pytest.raises(errors.StateLocked, match="me@") as caught:
            reopen().lock("gemma", "apply")
        assert caught.value.holder is not None
        assert caught.value.holder.operation == "destroy"
        assert reopen().holder("gemma") == caught.value.holder
        assert reopen().holder("neighbour") is None
        with locked(reopen(), "neighbour"):
            pass
    assert reopen().holder("gemma") is None
    with locked(reopen(), "gemma"):
        pass


def test_what_was_tried_is_told_oldest_first_by_whichever_run(reopen: Callable[[], StateBackend]) -> None:
    assert reopen().history() == ()
    for tried in (REFUSED, GRANTED):
        reopen().record(tried)
    assert reopen().history() == (GRANTED, REFUSED)
    assert reopen().names() == ()


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"", errors.StateUnreadable, "cannot be read as a state"),
        (b"{", errors.StateUnreadable, "cannot be read as a state"),
        (b"[]", errors.StateUnreadable, "cannot be read as a state"),
        (b'{"some": "other program"}', errors.StateUnreadable, "cannot be read as a state"),
        (b'{"format": "tpudeploy.state/1"}', errors.StateUnreadable, "cannot be read as a state: its format"),
        (b'{"format": "tpudeploy.state/2"}', errors.StateUnreadable, "cannot be read as a state"),
        (b"\xff\xfe", errors.StateUnreadable, "cannot be read"),
        (b'{"format": "tpudeploy.state/3"}', errors.StateTooNew, "tpudeploy.state/3"),
    ],
    ids=["empty", "cut off", "a list", "foreign", "format 1", "hollow", "not text", "too new"],
)
def test_what_is_no_state_of_ours_is_refused_and_left_alone(
    place: Place, content: bytes, error: type[errors.StateError], words: str
) -> None:
    place.put("state/gemma.json", content)
    backend = place.reopen()
    for _ in range(2):
        with pytest.raises(error, match=words):
            backend.read("gemma")
        with pytest.raises(error, match=words):
            backend.write("gemma", EMPTY, over="")
    assert place.get("state/gemma.json") == content


def test_a_state_under_another_deployments_name_is_not_taken_for_its_own(place: Place) -> None:
    place.reopen().write("gemma", FULL, over="")
    whole = place.get("state/gemma.json")
    assert whole is not None
    place.put("state/other.json", whole)
    with pytest.raises(errors.StateUnreadable, match="is the state of gemma, not of other"):
        place.reopen().read("other")


def test_an_endpoint_is_published_replaced_and_withdrawn(place: Place) -> None:
    assert place.reopen().published("gemma") is None
    for url in ("http://one", "http://two"):
        place.reopen().publish("gemma", {"url": url})
        assert place.get("endpoints/gemma.json") == f'{{\n  "url": "{url}"\n}}\n'.encode()
        assert place.reopen().published("gemma") == {"url": url}
    for _ in range(2):
        place.reopen().publish("gemma", None)
        assert place.get("endpoints/gemma.json") is None


@pytest.mark.parametrize("content", [b"", b"[]", b"{}", b'{"url": 5}', b"\xff", b"[" * 99999])
def test_what_is_no_endpoint_is_said_to_be_none(place: Place, content: bytes) -> None:
    place.put("endpoints/gemma.json", content)
    with pytest.raises(errors.StateUnreadable, match="endpoints/gemma"):
        place.reopen().published("gemma")


def test_a_lock_that_is_not_there_cannot_be_taken_away(reopen: Callable[[], StateBackend]) -> None:
    with locked(reopen(), "gemma"):
        pass
    with pytest.raises(errors.StateError, match="There is no lock with the id 5f3a"):
        reopen().force_unlock("5f3a")


@pytest.mark.parametrize(
    ("variables", "url"),
    [
        ({}, ""),
        (
            {"GITHUB_SERVER_URL": "https://github.com", "GITHUB_REPOSITORY": "o/r", "GITHUB_RUN_ID": "7"},
            "https://github.com/o/r/actions/runs/7",
        ),
        ({"GITHUB_SERVER_URL": "https://github.com"}, ""),
        ({"CI_JOB_URL": "https://gitlab.com/o/r/-/jobs/7"}, "https://gitlab.com/o/r/-/jobs/7"),
        ({"BUILDKITE_BUILD_URL": "https://buildkite.com/o/7"}, "https://buildkite.com/o/7"),
        ({"CIRCLE_BUILD_URL": "https://circleci.com/7"}, "https://circleci.com/7"),
        ({"CI_JOB_URL": "https://gitlab.com", "TPUDEPLOY_RUN_URL": "https://mine"}, "https://mine"),
    ],
)
def test_a_lock_names_the_page_of_the_pipeline_that_holds_it(
    reopen: Callable[[], StateBackend], monkeypatch: pytest.MonkeyPatch, variables: dict[str, str], url: str
) -> None:
    for name in (*holder._GITHUB, *holder._RUN_URLS):
        monkeypatch.delenv(name, raising=False)
    for name, value in variables.items():
        monkeypatch.setenv(name, value)
    with locked(reopen(), "gemma"):
        current_holder = reopen().holder("gemma")
        assert current_holder is not None
        assert (current_holder.run_url, current_holder.host) == (url, socket.gethostname())
        with pytest.raises(errors.StateLocked, match=url or "apply"):
            reopen().lock("gemma", "destroy")


def test_a_state_is_deleted_only_over_the_version_that_was_seen(reopen: Callable[[], StateBackend]) -> None:
    first = reopen().write("gemma", EMPTY, over="")
    second = reopen().write("gemma", replace(EMPTY, serial=1), over=first)
    with pytest.raises(errors.StateConflict, match="gemma changed while this run worked on it"):
        reopen().delete("gemma", over=first)
    assert reopen().names() == ("gemma",)
    reopen().delete("gemma", over=second)
    assert reopen().names() == ()
    assert reopen().read("gemma").version == ""


def test_earlier_states_are_told_newest_first_and_outlive_their_deployment(reopen: Callable[[], StateBackend]) -> None:
    assert reopen().earlier("gemma") == ()
    states = [EMPTY, replace(FULL, serial=1), replace(EMPTY, lineage="b" * 32), replace(EMPTY, serial=3)]
    version = ""
    for state in states:
        version = reopen().write("gemma", state, over=version)
    assert reopen().earlier("gemma") == tuple(reversed(states[:-1]))
    reopen().delete("gemma", over=version)
    assert reopen().earlier("gemma") == tuple(reversed(states))
    assert reopen().earlier("neighbour") == ()


def test_the_last_states_are_kept_and_no_more_than_can_be_used(reopen: Callable[[], StateBackend]) -> None:
    version = ""
    for serial in range(30):
        version = reopen().write("gemma", replace(EMPTY, serial=serial), over=version)
    serials = [state.serial for state in reopen().earlier("gemma")]
    assert serials == list(range(28, 28 - len(serials), -1))
    assert 10 <= len(serials) <= 20
