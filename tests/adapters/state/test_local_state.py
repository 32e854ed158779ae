"""What a folder promises beyond the contract: a lock ends with its process, and files are written whole."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from adapters.state.samples import EMPTY, GRANTED, REFUSED
from other_process import append_until_killed, holding, kill_a_writer, record_much

from tpudeploy.adapters.state.local import LocalState
from tpudeploy.domain import errors
from tpudeploy.emulator import VirtualClock
from tpudeploy.serialization.capacity_history import format_entry


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
    def refuse(*_: object, **__: object) -> None:
        raise PermissionError(1, "Operation not permitted")

    monkeypatch.setattr("os.link", refuse)
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


@pytest.mark.parametrize("file", ["zones.jsonl", "ledger.jsonl"])
def test_a_run_that_cannot_record_what_it_buys_is_refused_before_it_begins(tmp_path: Path, file: str) -> None:
    (tmp_path / file).mkdir()
    with pytest.raises(errors.StateError, match=rf"{file} cannot be written"):
        opened(tmp_path).lock("gemma", "apply")


def test_a_history_of_100_000_lines_costs_no_more_than_its_latest_ones_and_is_cut_back_by_the_next_entry(
    tmp_path: Path,
) -> None:
    path = tmp_path / "zones.jsonl"
    path.write_text("".join(format_entry(replace(REFUSED, at=float(n))) for n in range(100_000)), encoding="utf-8")
    began = _bytes_read()
    entries = opened(tmp_path).history()
    assert _bytes_read() - began < 2**20
    assert len(entries) > 1000
    assert [entry.at for entry in entries] == list(range(100_000 - len(entries), 100_000))
    latest = replace(GRANTED, at=100_000.0)
    opened(tmp_path).record(latest)
    assert path.stat().st_size < 2**20
    assert opened(tmp_path).history()[-1001:] == (*entries[-1000:], latest)
    assert [file.name for file in tmp_path.iterdir() if file != path] == [".gitignore"]


def _bytes_read() -> int:
    """Return what this process has read from files until now."""
    return int(Path("/proc/self/io").read_text(encoding="utf-8").splitlines()[0].split()[1])


def test_runs_that_append_while_the_file_is_cut_back_lose_nothing_and_a_killed_one_leaves_whole_lines(
    tmp_path: Path,
) -> None:
    path, keep = tmp_path / "lines", 2000
    append_until_killed(path, writers=4, keep=keep, size=4 * keep)
    *lines, last = path.read_text(encoding="utf-8").split("\n")
    numbers: dict[str, list[int]] = {}
    for line in lines:
        writer, number = line.split()
        numbers.setdefault(writer, []).append(int(number))
    assert not last  # a line is one write
    assert len(lines) > 100
    for each in numbers.values():
        assert each == list(range(each[0], each[0] + len(each)))


@pytest.mark.parametrize("after", [1, 17, 60])
def test_a_writer_that_is_killed_leaves_the_last_whole_state_or_the_one_before(tmp_path: Path, after: int) -> None:
    answer = kill_a_writer(tmp_path, after=after)
    backend = opened(tmp_path)
    stored = backend.read("gemma")
    assert stored.state is not None
    assert stored.state.serial in {answer, answer + 1}
    assert backend.names() == ("gemma",)
    backend.write("gemma", replace(stored.state, serial=stored.state.serial + 1), over=stored.version)
