"""What every state backend promises: compare-and-swap, one holder of a lock, whole states or none."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from pathlib import Path

import pytest
from other_process import holding, kill_a_writer, record_much

from tpudeploy.adapters.state.local import LocalState
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.history import Ending, Tried
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Scope
from tpudeploy.domain.state import Attempt, Goal, Record, Refused, State
from tpudeploy.emulator import VirtualClock
from tpudeploy.ports import StateBackend

# A new backend is one row: how to open it again and again on the same place.
BACKENDS: Mapping[str, Callable[[Path], StateBackend]] = {
    "local": lambda folder: LocalState(folder, VirtualClock(), who="me@here"),
}

EMPTY = State(deployment="gemma", lineage="a" * 32)
FULL = replace(
    EMPTY,
    serial=7,
    next_attempt=3,
    goal=Goal(fingerprint="f" * 16, since=1.5, who="me@here"),
    records=(
        Record(
            index=0,
            attempts=(
                Attempt(
                    name="gemma-aaaaaaaa-0-2",
                    project="p",
                    zone=Zone("us-east5-a"),
                    provisioning=Provisioning.FLEX_START,
                    spec={"serving.args.speculative_config": {"method": "ngram"}, "model.id": "Ünïcode/模型"},
                    asked_at=1.0,
                    booted="b" * 16,
                    operation="projects/p/locations/us-east5-a/operations/o",
                    granted_at=2.0,
                ),
            ),
            refusals=(
                Refused(
                    zone=Zone("us-east5-b"),
                    provisioning=Provisioning.SPOT,
                    kind="stockout",
                    scope=Scope.PAIR,
                    message="no more capacity",
                    at=1.0,
                    until=301.0,
                ),
            ),
        ),
    ),
)


@pytest.fixture(params=BACKENDS)
def reopen(request: pytest.FixtureRequest, tmp_path: Path) -> Callable[[], StateBackend]:
    """Each call is another process's view of the same place."""
    return lambda: BACKENDS[request.param](tmp_path / ".tpudeploy")


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
    found = reopen().read("gemma")
    assert (found.state, found.version) == (state, version)
    assert reopen().names() == ("gemma",)


def test_a_write_over_a_version_that_is_no_longer_there_changes_nothing(reopen: Callable[[], StateBackend]) -> None:
    first = reopen().write("gemma", EMPTY, over="")
    second = replace(EMPTY, serial=1)
    assert reopen().write("gemma", second, over=first) != first
    for stale in ("", first):
        with pytest.raises(errors.StateConflict, match="gemma changed while we worked on it"):
            reopen().write("gemma", replace(EMPTY, serial=2), over=stale)
    assert reopen().read("gemma").state == second


def test_a_lock_has_one_holder_and_names_it(reopen: Callable[[], StateBackend]) -> None:
    with locked(reopen(), "gemma", "destroy"):
        with pytest.raises(errors.StateLocked, match="me@here") as caught:
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


def test_a_lock_of_another_process_ends_with_that_process_whatever_ends_it(tmp_path: Path) -> None:
    backend = BACKENDS["local"](tmp_path)
    with holding(tmp_path, "gemma", who="alice@laptop") as process:
        with pytest.raises(errors.StateLocked, match=f"alice@laptop .process {process.pid}"):
            backend.lock("gemma", "apply")
        held = backend.holder("gemma")
        assert held is not None
        assert (held.who, held.pid, held.operation) == ("alice@laptop", process.pid, "apply")
        process.kill()
        process.wait()
        assert backend.holder("gemma") is None
        with locked(backend, "gemma"):
            pass


GRANTED = Tried(
    at=10.5,
    zone=Zone("us-east5-a"),
    provisioning=Provisioning.SPOT,
    type="v6e-1",
    chips=1,
    outcome=Ending.GRANTED,
    waited=31.25,
)
REFUSED = replace(
    GRANTED,
    at=20.0,
    provisioning=Provisioning.FLEX_START,
    outcome=Ending.REFUSED,
    kind="stockout",
    text='There is no more "capacity"\nin 模 \u2028 here',
)


def test_what_was_tried_is_told_oldest_first_by_whichever_run(reopen: Callable[[], StateBackend]) -> None:
    assert reopen().history() == ()
    for tried in (REFUSED, GRANTED):
        reopen().record(tried)
    assert reopen().history() == (GRANTED, REFUSED)
    assert reopen().names() == ()


def test_a_history_that_was_cut_off_or_written_by_others_keeps_its_other_lines(tmp_path: Path) -> None:
    backend = BACKENDS["local"](tmp_path)
    backend.record(GRANTED)
    path = tmp_path / "zones.jsonl"
    whole = path.read_bytes()
    odd = [b"[]", b"7", b"\xff", b"{}", b"[" * 99999, whole.strip().replace(b"10.5", b"NaN"), whole.strip()[:-9]]
    path.write_bytes(whole + b"\n".join(odd))
    assert backend.history() == (GRANTED,)
    backend.record(REFUSED)
    assert backend.history() == (GRANTED, REFUSED)


def test_two_who_record_at_the_same_time_lose_nothing(tmp_path: Path) -> None:
    record_much(tmp_path, writers=2, lines=200)
    found = BACKENDS["local"](tmp_path).history()
    assert sorted((t.kind, t.at) for t in found) == [(f"writer {w}", float(n)) for w in range(2) for n in range(200)]


def test_a_history_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "zones.jsonl").mkdir()
    with pytest.raises(errors.StateUnreadable, match=r"zones\.jsonl cannot be read"):
        BACKENDS["local"](tmp_path).history()
    with pytest.raises(errors.StateError, match=r"zones\.jsonl cannot be written"):
        BACKENDS["local"](tmp_path).record(GRANTED)


@pytest.mark.parametrize("after", [1, 17, 60])
def test_a_writer_that_is_killed_leaves_the_last_whole_state_or_the_one_before(tmp_path: Path, after: int) -> None:
    told = kill_a_writer(tmp_path, after=after)
    backend = BACKENDS["local"](tmp_path)
    found = backend.read("gemma")
    assert found.state is not None
    assert found.state.serial in {told, told + 1}
    assert backend.names() == ("gemma",)
    backend.write("gemma", replace(found.state, serial=found.state.serial + 1), over=found.version)


def test_an_endpoint_is_published_replaced_and_withdrawn(tmp_path: Path) -> None:
    backend = BACKENDS["local"](tmp_path / ".tpudeploy")
    path = tmp_path / "endpoints" / "gemma.json"
    for url in ("http://one", "http://two"):
        backend.publish("gemma", {"url": url})
        assert json.loads(path.read_text(encoding="utf-8")) == {"url": url}
    for _ in range(2):
        backend.publish("gemma", None)
        assert not path.exists()


@pytest.mark.parametrize(
    ("content", "error", "words"),
    [
        (b"", errors.StateUnreadable, "not a state that we can read"),
        (b"{", errors.StateUnreadable, "not a state that we can read"),
        (b"[]", errors.StateUnreadable, "not a state that we can read"),
        (b'{"some": "other program"}', errors.StateUnreadable, "not a state that we can read"),
        (b'{"format": "tpudeploy.state/1"}', errors.StateUnreadable, "not a state that we can read"),
        (b"\xff\xfe", errors.StateUnreadable, "cannot be read"),
        (b'{"format": "tpudeploy.state/2"}', errors.StateTooNew, "tpudeploy.state/2"),
    ],
    ids=["empty", "cut off", "a list", "foreign", "hollow", "not text", "too new"],
)
def test_what_is_no_state_of_ours_is_refused_and_left_alone(
    tmp_path: Path, content: bytes, error: type[errors.StateError], words: str
) -> None:
    path = tmp_path / "state" / "gemma.json"
    path.parent.mkdir()
    path.write_bytes(content)
    backend = BACKENDS["local"](tmp_path)
    for _ in range(2):
        with pytest.raises(error, match=words):
            backend.read("gemma")
        with pytest.raises(error, match=words):
            backend.write("gemma", EMPTY, over="")
    assert path.read_bytes() == content


def test_a_state_under_another_deployments_name_is_not_taken_for_its_own(tmp_path: Path) -> None:
    backend = BACKENDS["local"](tmp_path)
    backend.write("gemma", FULL, over="")
    (tmp_path / "state" / "other.json").write_bytes((tmp_path / "state" / "gemma.json").read_bytes())
    with pytest.raises(errors.StateUnreadable, match="is the state of gemma, not of other"):
        backend.read("other")
