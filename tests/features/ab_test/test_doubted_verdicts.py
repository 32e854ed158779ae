"""What a user reads of an A/B whose figures are doubted: by the cells that are, and by what B does, the sentences."""

from __future__ import annotations

from random import Random

import pytest
from features.ab_test.ab_repeats import OF, POINTS, World, nothing, page_of, runs

from tpudeploy.features.ab_test.result import KeepReason, result
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import CellStatus, Side

DOUBTED = [status for status in CellStatus if status not in {CellStatus.OK, CellStatus.OVERSUBSCRIBED}]
STREAMS = [point.sizes[0] for point in POINTS]
RESTS_ON = "No cell is trusted in all repeats: the verdict rests on doubted figures."
ALL_COUNT = "No cell is trusted in all repeats, so all cells count."
LEFT_OUT = "a figure is not trusted, and its cell does not count in the verdict"
MARKED = "?  a figure is not trusted"


def faster(side: Side, _point: Point) -> tuple[float, float]:
    return 1.2 if side is Side.B else 1.0, 1.0


def slower(side: Side, _point: Point) -> tuple[float, float]:
    return 0.8 if side is Side.B else 1.0, 1.0


VERDICTS: tuple[tuple[World, set[KeepReason], str], ...] = (
    (faster, {KeepReason.BETTER}, "B is better: requests/s over all cells +"),
    (slower, {KeepReason.WORSE}, "B is worse: requests/s over all cells -"),
    (nothing, {KeepReason.SAME, KeepReason.NO_DIFFERENCE}, ": requests/s over all cells "),
)


@pytest.mark.parametrize(("world", "reasons", "sentence"), VERDICTS)
@pytest.mark.parametrize("status", DOUBTED)
def test_a_verdict_from_doubted_cells_alone_says_so_beside_it(
    world: World, reasons: set[KeepReason], sentence: str, status: CellStatus
) -> None:
    verdict = result(OF, runs(world, Random(1), doubted=dict.fromkeys(STREAMS, status)), None)
    text = page_of(verdict)
    assert verdict.reason in reasons
    assert sentence in text
    assert text.index(RESTS_ON) > text.index(sentence), "after the verdict, where it is read with it"
    assert ALL_COUNT in text
    assert MARKED in text
    assert LEFT_OUT not in text


@pytest.mark.parametrize("status", DOUBTED)
def test_a_verdict_with_one_trusted_cell_leaves_the_others_out_and_says_so(status: CellStatus) -> None:
    verdict = result(OF, runs(faster, Random(1), doubted=dict.fromkeys(STREAMS[1:], status)), None)
    text = page_of(verdict)
    assert verdict.reason is KeepReason.BETTER
    assert LEFT_OUT in text
    assert RESTS_ON not in text
    assert ALL_COUNT not in text


@pytest.mark.parametrize("status", [CellStatus.OK, CellStatus.OVERSUBSCRIBED])
def test_a_verdict_from_trusted_cells_says_nothing_of_doubt(status: CellStatus) -> None:
    text = page_of(result(OF, runs(faster, Random(1), doubted=dict.fromkeys(STREAMS, status)), None))
    assert "trusted" not in text
    assert "doubted" not in text


def test_too_few_repeats_give_no_verdict_that_could_rest_on_anything() -> None:
    few = runs(faster, Random(1), doubted=dict.fromkeys(STREAMS, CellStatus.FAILED))[2:3]
    text = page_of(result(OF, few, None))
    assert "Too few repeats to tell a difference from noise." in text
    assert RESTS_ON not in text
