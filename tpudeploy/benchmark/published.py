"""Published tables as runs, each cell with the doubts about it, found by the same rules as for our own runs.

A cell is doubtful if another subject has the same figure to the last digit: one of the two was copied.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace

from tpudeploy import catalog
from tpudeploy.benchmark.cells import judge_cell
from tpudeploy.benchmark.roofline import Roofline, roofline
from tpudeploy.catalog.baselines import BASELINES, Baseline, Claim
from tpudeploy.domain.benchmark import Cell, CellStatus, Driver, Ended, Figures, Run, Spread, Subject, Sweep
from tpudeploy.domain.load import Point
from tpudeploy.version import VERSION

_TELLING_DIGITS = 3  # figures with fewer digits are equal by chance


def published() -> Mapping[str, Run]:
    """Return every published table as a run, by its id."""
    return {baseline.id: _run(baseline) for baseline in BASELINES}


def _run(baseline: Baseline) -> Run:
    """Return a table as a run without a price, because no author says what was paid."""
    kind = catalog.accelerator_type(baseline.accelerator_type) if baseline.accelerator_type else None
    subject = Subject(
        model=baseline.model,
        model_id=baseline.model,
        accelerator_type=baseline.accelerator_type,
        chips=None if kind is None else kind.chips,
    )
    limits = roofline(subject, None)
    cells = tuple(_cell(baseline, claim, limits) for claim in baseline.claims)
    return Run(
        id=baseline.id,
        began_at=0.0,
        version=VERSION,
        driver=Driver.PUBLISHED,
        subject=subject,
        sweep=Sweep(points=tuple(cell.point for cell in cells)),
        cells=cells,
        ended=Ended.COMPLETE,
        source="; ".join((baseline.source, *baseline.caveats)),
    )


def _cell(baseline: Baseline, claim: Claim, limits: Roofline | None) -> Cell:
    figures = Figures(
        requests=None,
        requests_failed=None,
        requests_per_second=claim.requests_per_second,
        input_tokens_per_second=claim.input_tokens_per_second,
        output_tokens_mean=claim.output_tokens,
        ttft_seconds=_mean(claim.ttft_mean_seconds),
        tpot_seconds=_mean(claim.tpot_mean_seconds),
    )
    point = Point(concurrency=claim.users, context_tokens=claim.context_tokens, output_tokens=claim.output_tokens)
    cell = judge_cell(Cell(point=point, status=CellStatus.OK, figures=figures), limits)
    others = (other for other in BASELINES if other.id != baseline.id)
    twins = [other.id for other in others if any(_is_copy(claim, theirs) for theirs in other.claims)]
    if not twins:
        return cell
    reason = f"{', '.join(twins)} has {claim.requests_per_second} requests/s too"
    return replace(cell, status=CellStatus.COPY_SUSPECT, reasons=(*cell.reasons, reason))


def _is_copy(one: Claim, other: Claim) -> bool:
    rate = one.requests_per_second
    if rate is None or rate != other.requests_per_second:
        return False
    return len(f"{rate:.2f}".replace(".", "").strip("0")) >= _TELLING_DIGITS


def _mean(value: float | None) -> Spread | None:
    if value is None:
        return None
    return Spread(count=None, mean=value, deviation=None, p50=None, p90=None, p95=None, p99=None, most=None)
