"""What would serve a workload: what was measured to do so, cheapest first; else what has the memory for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace

from tpudeploy import catalog
from tpudeploy.benchmark.compare import is_believed
from tpudeploy.benchmark.operating import tail
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.domain.budget import Engine, HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.recommendation import HOURS_PER_MONTH, Choice, Recommendation, Workload
from tpudeploy.sizing.budget import compute_budget
from tpudeploy.sizing.serve import Service, can_serve
from tpudeploy.sizing.sweep import fault

_LENGTH_STEP = 1_024
_EMULATED = "it was measured on the emulator, where no model runs (--emulated accepts it)"


def recommend(
    of: Deployment, workload: Workload, runs: Iterable[Run], *, takes_emulated: bool = False
) -> Recommendation:
    """For the model of `of`, whose settings are kept where nothing speaks against them.

    Runs on the emulator are no evidence, for no TPU ran there, unless `takes_emulated`.
    Published tables are no runs: prose decides nothing. Where a run serves the workload, the size model is not asked.
    """
    mine = [run for run in runs if run.subject.model_id == of.model_id and run.subject.chips]
    measured, refused = [], []
    for run in mine:
        if run.subject.is_emulated and not takes_emulated:
            refused.append(f"run {run.id} on {run.subject.accelerator_type}: {_EMULATED}")
            continue
        found = _measured(run, workload)
        if isinstance(found, str):
            refused.append(f"run {run.id} on {run.subject.accelerator_type}: {found}")
        else:
            measured.append(found)
    if measured:
        return Recommendation(workload=workload, choices=tuple(sorted(measured, key=_price)), refused=tuple(refused))
    sized, too_little = _sized(of, workload)
    return Recommendation(workload=workload, choices=tuple(sorted(sized, key=_price)), refused=(*refused, *too_little))


def _price(of: Choice) -> tuple[bool, float]:
    return of.usd_per_month is None, of.usd_per_month or 0.0


def _measured(run: Run, workload: Workload) -> Choice | str:
    """The choice that a run speaks for, or why it does not."""
    cells = [cell for cell in run.cells if _covers(cell, workload)]
    if not cells:
        return "no cell that can be believed has so many streams of such a length"
    cell = min(cells, key=lambda cell: cell.point.sizes)
    first = tail(cell.figures.ttft_seconds) if cell.figures is not None else None
    if workload.ttft_seconds is not None and (first is None or first > workload.ttft_seconds):
        return (
            "it does not tell the time to the first token" if first is None else f"the first token takes {first:.3g} s"
        )
    month = None if run.subject.usd_per_hour is None else run.subject.usd_per_hour * HOURS_PER_MONTH
    if workload.usd_per_month is not None and (month is None or month > workload.usd_per_month):
        return "its price is not known" if month is None else f"it costs ${month:,.0f} a month"
    streams, context, output = cell.point.sizes
    why = f"measured at {streams:,} streams of {context:,} tokens in and {output:,} out"
    return Choice(
        settings=dict(_settings_of(run)),
        accelerator_type=run.subject.accelerator_type,
        usd_per_month=month,
        why=why if first is None else f"{why}: the first token within {first:.3g} s",
        run=run.id,
        cell=cell,
        is_emulated=run.subject.is_emulated,
    )


def _covers(cell: Cell, of: Workload) -> bool:
    """Return whether a trusted cell has at least this load. A cell of unknown size covers none."""
    point = cell.point
    if cell.figures is None or not is_believed(cell):
        return False
    if point.concurrency is None or point.context_tokens is None or point.output_tokens is None:
        return False
    is_enough = point.concurrency >= of.users and point.context_tokens >= of.context_tokens
    return is_enough and point.output_tokens >= of.output_tokens


def _settings_of(run: Run) -> Iterator[tuple[str, Json]]:
    of = run.subject
    yield "tpu.type", of.accelerator_type
    for name in ("tensor_parallel_size", "data_parallel_size", "max_model_len"):
        if of.engine.get(name, "").isdecimal():
            yield f"serving.{name}", int(of.engine[name])
    if of.provisioning:
        yield "placement.provisioning", [of.provisioning]


def _sized(of: Deployment, workload: Workload) -> tuple[list[Choice], list[str]]:
    found = of.budget
    if not isinstance(found, HbmBudget):
        return [], [f"the size model: {found.because}"]
    choices, refused = [], []
    prices = _prices(of)
    for kind, engine in _engines(found, workload):
        what = f"{kind.name}, tensor parallel {engine.tensor_parallel} x data parallel {engine.data_parallel}"
        sized = compute_budget(found.model, kind, engine)
        because = fault(sized)
        if because or not isinstance(sized, HbmBudget):
            refused.append(f"{what}: {because}")
            continue
        verdict = can_serve(sized, users=workload.users, context=workload.context_tokens, output=workload.output_tokens)
        provisioning, usd = min(prices.items(), key=lambda pair: pair[1]) if prices else ("", None)
        month = None if usd is None else usd * kind.chips * HOURS_PER_MONTH
        if verdict.service is not Service.FITS:
            refused.append(f"{what}: {verdict.why}")
        elif workload.usd_per_month is not None and (month is None or month > workload.usd_per_month):
            refused.append(f"{what}: {'no price is known' if month is None else f'${month:,.0f} a month'}")
        else:
            choices.append(_choice(kind, engine, provisioning, month, why=verdict.why))
    return choices, refused


def _choice(kind: AcceleratorType, engine: Engine, provisioning: str, month: float | None, *, why: str) -> Choice:
    settings: dict[str, Json] = {
        "tpu.type": kind.name,
        "serving.tensor_parallel_size": engine.tensor_parallel,
        "serving.data_parallel_size": engine.data_parallel,
        "serving.max_model_len": engine.max_model_len,
        "serving.max_num_seqs": engine.max_num_seqs,
    }
    if provisioning:
        settings["placement.provisioning"] = [provisioning]
    return Choice(settings=settings, accelerator_type=kind.name, usd_per_month=month, why=why)


def _engines(of: HbmBudget, workload: Workload) -> Iterator[tuple[AcceleratorType, Engine]]:
    """Every slice of one host and every split of it, no longer and for no more sequences than it takes."""
    tokens = workload.context_tokens + workload.output_tokens
    length = min(-(-tokens // _LENGTH_STEP) * _LENGTH_STEP, max(of.model.max_position, tokens))
    for kind in catalog.generation(of.accelerator.generation).types:
        for tensor in (n for n in range(1, kind.chips + 1) if kind.hosts == 1 and kind.chips % n == 0):
            data = kind.chips // tensor
            seqs = max(of.engine.max_num_seqs, -(-workload.users // data))
            yield (
                kind,
                replace(
                    of.engine,
                    tensor_parallel=tensor,
                    data_parallel=data,
                    max_model_len=max(length, of.engine.max_model_len),
                    max_num_seqs=seqs,
                ),
            )


def _prices(of: Deployment) -> Mapping[str, float]:
    """The least list price of a chip-hour for each way to have it that the profile allows."""
    known: dict[str, float] = {}
    for each in of.candidates:
        if each.usd_per_chip_hour is not None:
            known[each.provisioning] = min(each.usd_per_chip_hour, known.get(each.provisioning, each.usd_per_chip_hour))
    return known
