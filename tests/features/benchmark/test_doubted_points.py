"""What a user reads of operating points where figures are doubted: by the status of each cell, the sentence."""

from __future__ import annotations

import pytest

from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.operating import operating_points
from tpudeploy.features.benchmark.operating_view import operating
from tpudeploy.features.benchmark.run import Cell, CellStatus, Driver, Ended, Figures, Run, Spread, Subject, Sweep
from tpudeploy.text.paint import Paint

TRUSTED = {CellStatus.OK, CellStatus.OVERSUBSCRIBED}
DOUBTED = [status for status in CellStatus if status not in TRUSTED]
STREAMS = (1, 8, 64)
NO_POINT = "No cell of run r-1 can be trusted, so it has no operating point."
ONLY = "the only trusted cell of this load, so nothing was chosen: measure other numbers of streams"
RULES = ("at most 1.5 times the least", "the most requests/s per second", "the fewest streams that bring 98%")


def words(*statuses: CellStatus) -> str:
    """Return the block of a run whose cells of 1, 8 and 64 streams have these statuses."""
    points = tuple(Point(concurrency=streams, context_tokens=128, output_tokens=64) for streams in STREAMS)
    cells = tuple(Cell(point=p, status=s, figures=_figures(p)) for p, s in zip(points, statuses, strict=True))
    run = Run(
        id="r-1",
        began_at=0,
        version="1",
        driver=Driver.TPUDEPLOY,
        subject=Subject(model="m"),
        sweep=Sweep(points=points),
        cells=cells,
        ended=Ended.COMPLETE,
    )
    return operating(run, operating_points(run), Paint())


def _figures(point: Point) -> Figures:
    streams = point.sizes[0]
    late, whole = 0.1 + 0.001 * streams, 1.0 + 0.01 * streams
    ttft, e2e = (Spread(count=90, mean=s, deviation=0.01, p50=s, p90=s, p95=s, p99=s, most=s) for s in (late, whole))
    return Figures(
        requests=90,
        requests_failed=0,
        requests_per_second=streams / whole,
        output_tokens_per_second=64 * streams / whole,
        ttft_seconds=ttft,
        tpot_seconds=None,
        e2e_seconds=e2e,
    )


@pytest.mark.parametrize("status", DOUBTED)
def test_where_every_cell_is_doubted_no_point_is_drawn_and_that_is_said(status: CellStatus) -> None:
    assert words(status, status, status) == NO_POINT


@pytest.mark.parametrize("status", DOUBTED)
def test_where_one_cell_is_trusted_each_point_says_that_nothing_was_chosen(status: CellStatus) -> None:
    text = words(status, CellStatus.OK, status)
    lines = text.splitlines()
    assert [line.split()[1] for line in lines if " streams  " in line] == ["8", "8", "8"]
    assert text.count(ONLY) == 3
    assert not [rule for rule in RULES if rule in text]


@pytest.mark.parametrize("status", DOUBTED)
def test_a_doubted_cell_among_trusted_ones_is_no_point(status: CellStatus) -> None:
    text = words(CellStatus.OK, CellStatus.OK, status)
    assert "64 streams" not in text
    assert ONLY not in text
    assert all(rule in text for rule in RULES)


@pytest.mark.parametrize("status", sorted(TRUSTED))
def test_a_queue_makes_no_cell_doubtful(status: CellStatus) -> None:
    text = words(CellStatus.OK, CellStatus.OK, status)
    assert "64 streams" in text
    assert all(rule in text for rule in RULES)
