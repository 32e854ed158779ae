"""The result of an A/B, from its runs alone, and which arm to keep.

The verdict rests on one measure that was chosen before, over all cells together: one question, asked once. The findings
for each cell and measure are adjusted together by Holm's rule, so that one of dozens does not stand out by chance.
Cells that are not trusted do not count as long as any cell is trusted.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from math import exp, log
from typing import Any

from tpudeploy.domain.serialization import to_json
from tpudeploy.features.ab_test.effect import MARGIN, RepeatFigure, effect, finding, holm
from tpudeploy.features.ab_test.experiment import (
    AbFinding,
    Experiment,
    InEffect,
    MeasuredEffect,
    MeasureRow,
    Repeat,
    StartRow,
)
from tpudeploy.features.ab_test.starts import counted, finding_of_starts, repeats_of, start_rows
from tpudeploy.features.ab_test.turns import order
from tpudeploy.features.accuracy.judgement import Judgement, SheetComparison
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Ended, Run, Side

MEASURES = (Measure.REQUESTS, Measure.OUTPUT, Measure.TTFT, Measure.TTFT_P99, Measure.TPOT, Measure.TOKENS_PER_USD)
# At one price it is the same question as the tokens themselves, and is not asked twice.
_SAME_QUESTION = {Measure.TOKENS_PER_USD: Measure.OUTPUT}


class KeepReason(StrEnum):
    """Why to keep this arm, the most important reason first."""

    NOT_IN_EFFECT = "not in effect"
    TOO_FEW = "too few repeats"
    FELL = "quality fell"
    CANNOT_TELL = "quality cannot be told"
    BETTER = "better"
    WORSE = "worse"
    SAME = "same"
    NO_DIFFERENCE = "no difference"


_BY_FINDING: Mapping[AbFinding, KeepReason] = {
    AbFinding.BETTER: KeepReason.BETTER,
    AbFinding.WORSE: KeepReason.WORSE,
    AbFinding.SAME: KeepReason.SAME,
    AbFinding.NONE: KeepReason.NO_DIFFERENCE,
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ExperimentResult:
    """`overall` is the effect on the measure `decided_by` over all counting cells, or starts; None: too few repeats.

    `decided_by` is `experiment.by`, except where starts cannot be compared, or a server became slower.

    `runs` are the complete repeats in their order, `repeats` the same with their starts, and `starts` the differences
    between these. `keep` is None where nothing can be concluded yet, and where the profile declares neither value and
    no difference was found. `is_doubted`: no cell is trusted in all repeats, so all count.
    """

    experiment: Experiment
    runs: tuple[str, ...]
    overall: MeasuredEffect | None
    finding: AbFinding | None
    rows: tuple[MeasureRow, ...]
    quality: SheetComparison | None
    reason: KeepReason
    keep: Side | None
    is_doubted: bool = False
    is_emulated: bool = False
    slices: int = 1
    repeats: tuple[Repeat, ...] = ()
    starts: tuple[StartRow, ...] = ()
    decided_by: Measure = Measure.REQUESTS

    @property
    def left(self) -> int:
        """The number of missing repeats."""
        return len(order(self.experiment.repeats)) - len(self.runs)

    @property
    def worse(self) -> tuple[MeasureRow, ...]:
        return tuple(row for row in self.rows if row.finding is AbFinding.WORSE)

    @property
    def is_refused(self) -> bool:
        """Whether a check refuses B: the engine does not do what it declares, or quality fell."""
        return self.reason in {KeepReason.NOT_IN_EFFECT, KeepReason.FELL}

    def to_dict(self) -> dict[str, Any]:
        """Return the document of `tpudeploy compare --ab --json` without its format."""
        quality = None if self.quality is None else self.quality.to_dict()
        return {**to_json(self), "left": self.left, "margin": MARGIN, "quality": quality}


def result(experiment: Experiment, runs: Sequence[Run], quality: SheetComparison | None) -> ExperimentResult:
    """Return the result. Of `runs`, the complete ones of this experiment count."""
    complete = repeats(experiment, runs)
    points, is_doubted = _counting_points(complete)
    starts = repeats_of(complete)
    by, overall = _overall_effect(experiment, complete, starts, points)
    overall_finding = None if overall is None else _finding(overall, by)
    reason = _reason(experiment, overall_finding, quality)
    return ExperimentResult(
        experiment=experiment,
        runs=tuple(run.id for run in complete),
        overall=overall,
        finding=overall_finding,
        rows=tuple(_rows(complete)),
        quality=quality,
        reason=reason,
        keep=_arm_to_keep(experiment, reason),
        is_doubted=is_doubted,
        is_emulated=any(run.subject.is_emulated for run in complete),
        slices=len({run.subject.url for run in complete}),
        repeats=starts,
        starts=start_rows(starts),
        decided_by=by,
    )


def repeats(experiment: Experiment, runs: Sequence[Run]) -> list[Run]:
    """Return the complete runs of this experiment in their order."""
    by_place = {run.turn.place: run for run in runs if run.turn is not None and run.turn.experiment == experiment.id}
    return [by_place[place] for place in sorted(by_place) if by_place[place].ended is Ended.COMPLETE]


def _overall_effect(
    experiment: Experiment, runs: Sequence[Run], starts: Sequence[Repeat], points: set[Point]
) -> tuple[Measure, MeasuredEffect | None]:
    """Return the measure that decides, and its effect.

    A value that should only change starts is still refused where it makes the server slower and its starts no better,
    and judged by its requests where the starts cannot be compared.
    """
    by = experiment.by
    if not by.is_of_start:
        return by, effect(list(_over_cells(runs, points, by)))
    of_starts = effect(counted(starts, by))
    of_requests = effect(list(_over_cells(runs, points, Measure.REQUESTS)))
    if of_requests is None:
        return by, of_starts
    is_slower = _finding(of_requests, Measure.REQUESTS) is AbFinding.WORSE
    if of_starts is None or (is_slower and _finding(of_starts, by) is not AbFinding.BETTER):
        return Measure.REQUESTS, of_requests
    return by, of_starts


def _finding(effect: MeasuredEffect, by: Measure) -> AbFinding:
    return finding_of_starts(effect) if by.is_of_start else finding(effect, is_better_low=by.is_better_low)


def _arm_to_keep(experiment: Experiment, reason: KeepReason) -> Side | None:
    """Return the arm to keep: the one in the profile where no difference shows, because a change would gain nothing.

    None where the profile declares neither, or where nothing can be concluded yet. Where B could not be judged, the
    profile stays as well, and A is the reference of a profile that declares neither.
    """
    match reason:
        case KeepReason.BETTER:
            return Side.B
        case KeepReason.WORSE | KeepReason.FELL:
            return Side.A
        case KeepReason.TOO_FEW:
            return None
        case KeepReason.SAME | KeepReason.NO_DIFFERENCE:
            return experiment.written
        case KeepReason.NOT_IN_EFFECT | KeepReason.CANNOT_TELL:
            return experiment.written or Side.A


def _reason(experiment: Experiment, overall: AbFinding | None, quality: SheetComparison | None) -> KeepReason:
    if InEffect.NO in {experiment.a.in_effect, experiment.b.in_effect}:
        return KeepReason.NOT_IN_EFFECT
    if quality is not None and quality.judgement is Judgement.FELL:
        return KeepReason.FELL
    if overall is None:
        return KeepReason.TOO_FEW
    is_undecided = quality is None or quality.judgement is Judgement.CANNOT_TELL
    if experiment.questions and is_undecided and overall is not AbFinding.WORSE:
        return KeepReason.CANNOT_TELL
    return _BY_FINDING[overall]


def _counting_points(runs: Sequence[Run]) -> tuple[set[Point], bool]:
    """Return the cells that every repeat has and trusts; if there are none, all that every repeat has, and True."""
    cells_by_run = [{cell.point: cell for cell in run.cells if cell.figures is not None} for run in runs]
    shared = set.intersection(*map(set, cells_by_run)) if cells_by_run else set()
    trusted = {point for point in shared if all(cells[point].is_trusted for cells in cells_by_run)}
    return trusted or shared, bool(shared) and not trusted


def _over_cells(runs: Sequence[Run], points: set[Point], by: Measure) -> Iterator[RepeatFigure]:
    """Yield the geometric mean over the cells of each repeat: each cell has the same weight, however fast it is."""
    for run in runs:
        values = [by.value_in(cell, run.subject) for cell in run.cells if cell.point in points]
        logs = [log(value) for value in values if value]
        if run.turn is not None and logs and len(logs) == len(points):
            yield RepeatFigure(side=run.turn.side, place=run.turn.place, value=exp(sum(logs) / len(logs)))


def _rows(runs: Sequence[Run]) -> Iterator[MeasureRow]:
    points = dict.fromkeys(cell.point for run in runs for cell in run.cells)
    keys = [(point, measure) for point in points for measure in MEASURES]
    effects = {key: effect(list(_in_cell(runs, *key))) for key in keys}
    chances = holm({key: e.chance for key, e in effects.items() if e is not None and key[1] not in _SAME_QUESTION})
    for (point, measure), of_cell in effects.items():
        if of_cell is None:
            continue
        by_chance = chances.get((point, _SAME_QUESTION.get(measure, measure)))
        cells = [cell for run in runs for cell in run.cells if cell.point == point]
        yield MeasureRow(
            point=point,
            measure=measure,
            effect=of_cell,
            finding=finding(of_cell, is_better_low=measure.is_better_low, by_chance=by_chance),
            is_doubted=not all(cell.is_trusted for cell in cells),
        )


def _in_cell(runs: Sequence[Run], point: Point, measure: Measure) -> Iterator[RepeatFigure]:
    for run in runs:
        for cell in run.cells:
            value = measure.value_in(cell, run.subject) if cell.point == point else None
            if value and run.turn is not None:
                yield RepeatFigure(side=run.turn.side, place=run.turn.place, value=value)
