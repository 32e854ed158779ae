"""What a folder promises beyond the contract: a lock ends with its process, and files are written whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from contracts.samples import EMPTY, GRANTED, REFUSED
from other_process import holding, kill_a_writer, record_much

from tpudeploy.adapters.state.local import LocalState
from tpudeploy.domain import errors
from tpudeploy.emulator import VirtualClock


def opened(folder: Path) -> LocalState:
    return LocalState(folder, VirtualClock(), who="me@here")


def test_a_lock_of_another_process_ends_with_that_process_whatever_ends_it(tmp_path: Path) -> None:
    backend = opened(tmp_path)
    with holding(tmp_path, "gemma", who="alice@laptop") as process:
        with pytest.raises(errors.StateLocked, match=f"alice@laptop .process {process.pid}"):
            backend.lock("gemma", "apply")
        holder = backend.holder("gemma")
        assert holder is not None
        assert (holder.who, holder.pid, holder.operation) == ("alice@laptop", process.pid, "apply")
        with pytest.raises(errors.StateError, match=r"alice@laptop .*which still runs"):
            backend.force_unlock(holder.id)
        process.kill()
        process.wait()
        assert backend.holder("gemma") is None
        assert backend.force_unlock(holder.id) == "gemma"
        backend.unlock(backend.lock("gemma", "apply"))


def test_a_lock_of_another_machine_on_a_shared_disk_says_where_its_process_is(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr("socket.gethostname", lambda: "build-7")
    lease = opened(tmp_path).lock("gemma", "apply")
    monkeypatch.setattr("socket.gethostname", lambda: "laptop")
    with pytest.raises(errors.StateError) as caught:
        opened(tmp_path).force_unlock(lease.info.id)
    assert caught.value.hint == f"End that process, on build-7, and the lock ends with it: kill {lease.info.pid}"


def test_a_disk_without_second_names_keeps_earlier_states_too(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(*_: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr(Path, "hardlink_to", refuse)
    backend, version = opened(tmp_path), ""
    for serial in range(3):
        version = backend.write("gemma", replace(EMPTY, serial=serial), over=version)
    assert [state.serial for state in backend.earlier("gemma")] == [1, 0]


def test_a_history_that_was_cut_off_or_written_by_others_keeps_its_other_lines(tmp_path: Path) -> None:
    backend = opened(tmp_path)
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
    traces = opened(tmp_path).history()
    assert sorted((t.kind, t.at) for t in traces) == [(f"writer {w}", float(n)) for w in range(2) for n in range(200)]


def test_a_history_that_cannot_be_read_is_said_to_be_so(tmp_path: Path) -> None:
    (tmp_path / "zones.jsonl").mkdir()
    with pytest.raises(errors.StateUnreadable, match=r"zones\.jsonl cannot be read"):
        opened(tmp_path).history()
    with pytest.raises(errors.StateError, match=r"zones\.jsonl cannot be written"):
        opened(tmp_path).record(GRANTED)


@pytest.mark.parametrize("after", [1, 17, 60])
def test_a_writer_that_is_killed_leaves_the_last_whole_state_or_the_one_before(tmp_path: Path, after: int) -> None:
    answer = kill_a_writer(tmp_path, after=after)
    backend = opened(tmp_path)
    stored = backend.read("gemma")
    assert stored.state is not None
    assert stored.state.serial in {answer, answer + 1}
    assert backend.names() == ("gemma",)
    backend.write("gemma", replace(stored.state, serial=stored.state.serial + 1), over=stored.version)
