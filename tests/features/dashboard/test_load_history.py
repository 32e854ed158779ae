"""The load of the last day: what a reading adds, what a chart shows of it, and the file that keeps it."""

from __future__ import annotations

from math import inf
from pathlib import Path

import pytest

from tpudeploy.adapters.state.disk import Folder
from tpudeploy.domain.metrics import EngineFigures, Histogram
from tpudeploy.features.dashboard.load_file import LoadFile
from tpudeploy.features.dashboard.load_history import LoadRow, new_row, percentile, series

BOUNDS = (0.1, 0.5, inf)


def _figures(*counts: float, running: float = 1.0) -> EngineFigures:
    """Return figures whose histogram of TTFT has these cumulative counts; all that were counted are finished."""
    histogram = Histogram(bounds=BOUNDS, counts=counts, sum=1.0)
    return EngineFigures(
        running=running, waiting={"": 2.0}, kv_cache_used=0.5, finished={"stop": counts[-1]}, first_token=histogram
    )


@pytest.mark.parametrize(
    ("before", "finished", "first"),
    [
        pytest.param((1, 2, 2), 8, {0.1: 3, 0.5: 4, inf: 1}, id="a server adds to its counts"),
        pytest.param((40, 90, 90), 10, {0.1: 4, 0.5: 5, inf: 1}, id="one that started again counts from zero"),
    ],
)
def test_a_row_has_what_was_added_since_the_reading_before(
    before: tuple[float, ...], finished: float, first: dict[float, float]
) -> None:
    row = new_row(130.0, 100.0, [(_figures(*before), _figures(4, 9, 10))])
    assert (row.seconds, row.finished, row.first) == (30.0, finished, first)
    assert (row.running, row.waiting, row.kv_cache) == (1.0, 2.0, 0.5)


def test_a_first_reading_counts_no_requests_of_the_time_before() -> None:
    row = new_row(130.0, None, [(None, _figures(4, 9, 10))])
    assert (row.seconds, row.finished, row.first) == (0.0, 0.0, {})


def test_the_counts_of_all_servers_are_added_and_the_cache_is_that_of_the_fullest() -> None:
    fuller = EngineFigures(running=3.0, kv_cache_used=0.9, finished={"stop": 5.0})
    row = new_row(130.0, 100.0, [(None, _figures(1, 1, 1)), (EngineFigures(), fuller)])
    assert (row.running, row.waiting, row.kv_cache, row.finished) == (4.0, 2.0, 0.9, 5.0)


@pytest.mark.parametrize(
    ("buckets", "share", "bound"),
    [({}, 0.5, None), ({0.1: 19, 0.5: 1}, 0.95, 0.1), ({0.1: 18, 0.5: 2}, 0.95, 0.5), ({0.1: 1, inf: 9}, 0.5, None)],
)
def test_a_percentile_is_the_bound_of_its_bucket(
    buckets: dict[float, float], share: float, bound: float | None
) -> None:
    assert percentile(buckets, share) == bound


def test_a_chart_has_a_row_for_each_step_and_a_gap_where_nothing_was_read() -> None:
    rows = [
        LoadRow(at=10.0, running=1.0, seconds=30.0, finished=3.0, first={0.1: 1.0}),
        LoadRow(at=50.0, running=3.0, seconds=30.0, finished=9.0, first={0.5: 9.0}),
        LoadRow(at=170.0, running=5.0),
        LoadRow(at=-4000.0, running=9.0),
    ]
    columns = series(rows, 180.0, span=180.0, step=60.0)
    assert columns["at"] == [0.0, 60.0, 120.0, 180.0]
    assert columns["running"] == [2.0, None, 5.0, None]
    assert columns["rate"] == [0.2, None, None, None]
    assert (columns["ttft_p50"][0], columns["ttft_p95"][0]) == (500.0, 500.0), "in ms, over both rows"


def test_a_file_is_read_again_without_its_torn_or_foreign_lines_and_stays_small(tmp_path: Path) -> None:
    folder = Folder(tmp_path / ".tpudeploy" / "load", root=tmp_path)
    row = LoadRow(at=1000.0, running=1.0, seconds=30.0, finished=2.0, between={0.01: 5.0, inf: 1.0})
    load_file = LoadFile(folder, "gemma")
    load_file.append(row)
    path = folder.path / "gemma.jsonl"
    with path.open("a") as file:
        file.write('null\n{"at": "x"}\n[]\n{"at":1030,"runn')  # a dashboard that was killed while it wrote
    again = LoadFile(folder, "gemma")
    again.append(LoadRow(at=1060.0, running=2.0))
    assert LoadRow.from_line(path.read_bytes().splitlines()[0]) == row
    hour = LoadFile(folder, "gemma").series(1080.0)["hour"]
    assert isinstance(hour, dict)
    assert [value for value in hour["running"] if value is not None] == [1.0, 2.0]
    for n in range(20_000):
        again.append(LoadRow(at=2000.0 + n, running=1.0, seconds=1.0, finished=1.0, first={0.1: 1.0, 0.5: 1.0}))
    assert path.stat().st_size < 1 << 20
    assert len(LoadFile(folder, "gemma")._rows) <= 5760


def test_a_file_that_cannot_be_written_changes_nothing_but_says_so(tmp_path: Path) -> None:
    (tmp_path / ".tpudeploy").mkdir()
    (tmp_path / ".tpudeploy" / "load").symlink_to("/etc")
    load_file = LoadFile(Folder(tmp_path / ".tpudeploy" / "load", root=tmp_path), "gemma")
    load_file.append(LoadRow(at=1000.0, running=1.0))
    assert "is not kept" in load_file.error
    hour = load_file.series(1000.0)["hour"]
    assert isinstance(hour, dict)
    assert 1.0 in hour["running"]
