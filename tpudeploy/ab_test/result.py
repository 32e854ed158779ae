"""Result: what an A/B came to, from its runs alone, and which arm to keep.

The verdict rests on one measure that was named before, over all cells together: one question, asked once. What is said
of each cell and measure beside it is held together by Holm's rule, so that of dozens none stands out by chance. Cells
that are not believed take no part as long as any is.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import StrEnum
from math import exp, log
from typing import Any

from tpudeploy.ab_test.effect import MARGIN, Seen, effect, finding, holm
from tpudeploy.ab_test.order import order
from tpudeploy.ab_test.starts import counted, finding_of, repeats_of, start_rows
from tpudeploy.accuracy.verdict import Judgement, Verdict
from tpudeploy.benchmark.compare import is_believed
from tpudeploy.domain.benchmark import Ended, Run
from tpudeploy.domain.comparison import Measure
from tpudeploy.domain.experiment import Effect, Experiment, Finding, InEffect, Repeat, Row, StartRow
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.load import Point
from tpudeploy.domain.serialization import to_json
from tpudeploy.domain.side import Side

MEASURES = (Measure.REQUESTS, Measure.OUTPUT, Measure.TTFT, Measure.TTFT_P99, Measure.TPOT, Measure.TOKENS_PER_USD)
# At one price it is the same question as the tokens themselves, and is not asked twice.
_SAME_QUESTION = {Measure.TOKENS_PER_USD: Measure.OUTPUT}


class Reason(StrEnum):
    """Why this arm is to be kept. What comes first counts first."""

    NOT_IN_EFFECT = "not in effect"
    TOO_FEW = "too few repeats"
    FELL = "quality fell"
    CANNOT_TELL = "quality cannot be told"
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    NO_DIFFERENCE = "no difference"


_BY_FINDING: Mapping[Finding, Reason] = {
    Finding.BETTER: Reason.BETTER,
    Finding.WORSE: Reason.WORSE,
    Finding.SAME: Reason.SAME,
    Finding.NONE: Reason.NO_DIFFERENCE,
}


@frozen
class Result:
    """`overall` is the measure `decided_by` over all cells that count, or over the starts; None of too few repeats.
    `decided_by` is `experiment.by`, but for starts that cannot be compared, or a server that became slower.

    `runs` are the repeats that are whole, in their order, `repeats` the same with their starts, and `starts` what
    differs between these. `keep` is None where nothing can be said yet, and where the profile says neither value and
    no difference was found: then it stays as it is. `is_doubted`:
    no cell is believed in all repeats, and all count.
    """

    experiment: Experiment
    runs: tuple[str, ...]
    overall: Effect | None
    finding: Finding | None
    rows: tuple[Row, ...]
    quality: Verdict | None
    reason: Reason
    keep: Side | None
    is_doubted: bool = False
    is_emulated: bool = False
    slices: int = 1
    repeats: tuple[Repeat, ...] = ()
    starts: tuple[StartRow, ...] = ()
    decided_by: Measure = Measure.REQUESTS

    @property
    def left(self) -> int:
        """How many repeats are missing."""
        return len(order(self.experiment.repeats)) - len(self.runs)

    @property
    def worse(self) -> tuple[Row, ...]:
        return tuple(row for row in self.rows if row.finding is Finding.WORSE)

    @property
    def is_refused(self) -> bool:
        """Whether a check says no to B: the engine does not do it, or quality fell."""
        return self.reason in {Reason.NOT_IN_EFFECT, Reason.FELL}

    def to_dict(self) -> dict[str, Any]:
        """What `tpudeploy compare --ab --json` prints, but for its format."""
        told = {**to_json(self), "left": self.left, "margin": MARGIN}
        told["quality"] = None if self.quality is None else self.quality.to_dict()
        return told


def result(of: Experiment, runs: Sequence[Run], quality: Verdict | None) -> Result:
    """`runs` may hold others: counted are those of this experiment that are whole."""
    whole = repeats(of, runs)
    believed, is_doubted = _points(whole)
    each = repeats_of(whole)
    by, overall = _deciding(of, whole, each, believed)
    found = None if overall is None else _finding(overall, by)
    reason = _reason(of, found, quality)
    return Result(
        experiment=of,
        runs=tuple(run.id for run in whole),
        overall=overall,
        finding=found,
        rows=tuple(_rows(whole)),
        quality=quality,
        reason=reason,
        keep=_keep(of, reason),
        is_doubted=is_doubted,
        is_emulated=any(run.subject.is_emulated for run in whole),
        slices=len({run.subject.url for run in whole}),
        repeats=each,
        starts=start_rows(each),
        decided_by=by,
    )


def _deciding(
    of: Experiment, whole: Sequence[Run], each: Sequence[Repeat], believed: set[Point]
) -> tuple[Measure, Effect | None]:
    """Return the measure that decides, and its effect.

    A value that should only change starts is still refused where it makes the server slower and its starts no better,
    and judged by its requests where the starts cannot be compared.
    """
    if not of.by.is_of_start:
        return of.by, effect(list(_overall(whole, believed, of.by)))
    starts = effect(counted(each, of.by))
    served = effect(list(_overall(whole, believed, Measure.REQUESTS)))
    if served is None:
        return of.by, starts
    is_slower = _finding(served, Measure.REQUESTS) is Finding.WORSE
    if starts is None or (is_slower and _finding(starts, of.by) is not Finding.BETTER):
        return Measure.REQUESTS, served
    return of.by, starts


def _finding(of: Effect, by: Measure) -> Finding:
    return finding_of(of) if by.is_of_start else finding(of, is_better_low=by.is_better_low)


def _keep(of: Experiment, reason: Reason) -> Side | None:
    """Return the arm to keep: what the profile says where no difference shows, for a change would be for nothing.

    None where the profile says neither, or where nothing can be said yet. Where B could not be judged, the profile
    stays as well, and A is what a profile that says neither is measured by.
    """
    match reason:
        case Reason.BETTER:
            return Side.B
        case Reason.WORSE | Reason.FELL:
            return Side.A
        case Reason.TOO_FEW:
            return None
        case Reason.SAME | Reason.NO_DIFFERENCE:
            return of.written
        case Reason.NOT_IN_EFFECT | Reason.CANNOT_TELL:
            return of.written or Side.A


def repeats(of: Experiment, runs: Sequence[Run]) -> list[Run]:
    """Those of this experiment that are whole, in their order."""
    mine = {run.turn.place: run for run in runs if run.turn is not None and run.turn.experiment == of.id}
    return [mine[place] for place in sorted(mine) if mine[place].ended is Ended.COMPLETE]


def _reason(of: Experiment, found: Finding | None, quality: Verdict | None) -> Reason:
    if InEffect.NO in {of.a.in_effect, of.b.in_effect}:
        return Reason.NOT_IN_EFFECT
    if quality is not None and quality.judgement is Judgement.FELL:
        return Reason.FELL
    if found is None:
        return Reason.TOO_FEW
    is_untold = bool(of.questions) and (quality is None or quality.judgement is Judgement.CANNOT_TELL)
    return Reason.CANNOT_TELL if is_untold and found is not Finding.WORSE else _BY_FINDING[found]


def _points(runs: Sequence[Run]) -> tuple[set[Point], bool]:
    """The cells that every repeat has, and believes where any such is; and whether none is."""
    each = [{cell.point: cell for cell in run.cells if cell.figures is not None} for run in runs]
    shared = set.intersection(*map(set, each)) if each else set()
    believed = {point for point in shared if all(is_believed(cells[point]) for cells in each)}
    return believed or shared, bool(shared) and not believed


def _overall(runs: Sequence[Run], points: set[Point], by: Measure) -> Iterator[Seen]:
    """Of each repeat the geometric mean over its cells: each weighs the same, however fast it is."""
    for run in runs:
        values = [by.value_in(cell, run.subject) for cell in run.cells if cell.point in points]
        known = [log(value) for value in values if value]
        if run.turn is not None and known and len(known) == len(points):
            yield Seen(side=run.turn.side, place=run.turn.place, value=exp(sum(known) / len(known)))


def _rows(runs: Sequence[Run]) -> Iterator[Row]:
    points = dict.fromkeys(cell.point for run in runs for cell in run.cells)
    found = {(p, m): known for p in points for m in MEASURES if (known := effect(list(_seen(runs, p, m)))) is not None}
    chances = holm({key: each.chance for key, each in found.items() if key[1] not in _SAME_QUESTION})
    for (point, measure), each in found.items():
        asked = chances.get((point, _SAME_QUESTION.get(measure, measure)))
        cells = [cell for run in runs for cell in run.cells if cell.point == point]
        yield Row(
            point=point,
            measure=measure,
            effect=each,
            finding=finding(each, is_better_low=measure.is_better_low, by_chance=asked),
            is_doubted=not all(map(is_believed, cells)),
        )


def _seen(runs: Sequence[Run], point: Point, measure: Measure) -> Iterator[Seen]:
    for run in runs:
        for cell in run.cells:
            value = measure.value_in(cell, run.subject) if cell.point == point else None
            if value and run.turn is not None:
                yield Seen(side=run.turn.side, place=run.turn.place, value=value)
