"""Published figures as runs, each cell with what speaks against it: found here, by the same rules as for our own.

A table cannot be believed where another subject's has the same figure to the last digit: one of them was copied.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace

from tpudeploy import catalog
from tpudeploy.benchmark.judge import judge
from tpudeploy.benchmark.roofline import Roofline
from tpudeploy.benchmark.subject import roofline
from tpudeploy.catalog.baselines import BASELINES
from tpudeploy.domain.baseline import Baseline, Claim
from tpudeploy.domain.benchmark import Cell, CellStatus, Driver, Ended, Evidence, Figures, Run, Spread, Subject, Sweep
from tpudeploy.domain.load import Point
from tpudeploy.version import VERSION

# Fewer digits meet by chance.
_TELLING_DIGITS = 3


def published() -> Mapping[str, Run]:
    """Every baseline as a run, by its id."""
    return {each.id: _run(each, BASELINES) for each in BASELINES}


def _run(of: Baseline, all_of_them: Iterable[Baseline]) -> Run:
    others = tuple(each for each in all_of_them if each.id != of.id)
    subject = _subject(of)
    line = roofline(subject, None)
    cells = tuple(_cell(claim, line, others) for claim in of.claims)
    return Run(
        id=of.id,
        began_at=0.0,
        version=VERSION,
        driver=Driver.PUBLISHED,
        subject=subject,
        sweep=Sweep(points=tuple(cell.point for cell in cells)),
        cells=cells,
        ended=Ended.COMPLETE,
        source="; ".join((of.source, *of.caveats)),
    )


def _subject(of: Baseline) -> Subject:
    """Without a price: no author tells what was paid."""
    kind = catalog.accelerator_type(of.accelerator_type) if of.accelerator_type else None
    return Subject(
        model=of.model,
        model_id=of.model,
        accelerator_type=of.accelerator_type,
        chips=None if kind is None else kind.chips,
    )


def _cell(claim: Claim, line: Roofline | None, others: Iterable[Baseline]) -> Cell:
    figures = Figures(
        requests=None,
        requests_failed=0,
        requests_per_second=claim.requests_per_second,
        input_tokens_per_second=claim.input_tokens_per_second,
        output_tokens_mean=claim.output_tokens,
        ttft_seconds=_mean(claim.ttft_mean_seconds),
        tpot_seconds=_mean(claim.tpot_mean_seconds),
    )
    evidence = Evidence(peak_share=None if line is None else line.peak_share(figures))
    point = Point(concurrency=claim.users, context_tokens=claim.context_tokens, output_tokens=claim.output_tokens)
    status, reasons = judge(point, figures, evidence, None)
    cell = Cell(point=point, status=status, reasons=reasons, figures=figures, evidence=evidence)
    twins = [each.id for each in others for other in each.claims if _is_copy(claim, other)]
    if not twins:
        return cell
    said = f"{claim.requests_per_second} requests/s stands in {', '.join(dict.fromkeys(twins))} too"
    return replace(cell, status=CellStatus.COPY_SUSPECT, reasons=(*reasons, said))


def _is_copy(one: Claim, other: Claim) -> bool:
    rate = one.requests_per_second
    return (
        rate is not None
        and rate == other.requests_per_second
        and len(f"{rate:.2f}".replace(".", "").strip("0")) >= _TELLING_DIGITS
    )


def _mean(of: float | None) -> Spread | None:
    if of is None:
        return None
    return Spread(count=None, mean=of, deviation=None, p50=None, p90=None, p95=None, p99=None, most=None)
