"""Format the operating points of a run, and a recommendation with the evidence for it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tpudeploy.catalog.engines import figures_of
from tpudeploy.domain.engine import Engine
from tpudeploy.features.benchmark.recommendation import Basis, Choice, OperatingPoint, Recommendation, Workload
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.benchmark.view import EMULATOR, Place, load_text, marked_id
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import EMULATED, count, latency, number

_MOST_OTHERS = 5


def operating(run: Run, points_by_load: Mapping[Place, Sequence[OperatingPoint]], paint: Paint) -> str:
    """Return a block for each load."""
    if not points_by_load:
        return f"No cell of run {run.id} can be trusted, so it has no operating point."
    blocks = [paint.bold(f"Operating points of run {marked_id(run)}")]
    if run.subject.is_emulated:
        blocks[0] += f"\n{paint.yellow(EMULATED)}"
    for load, points in points_by_load.items():
        lines = [load_text(*load)]
        for point in points:
            streams = count(point.cell.point.concurrency)
            lines.append(f"  {point.aim:<10}  {streams:>5} streams  {_figures(point.cell)}")
            lines.append(paint.dim(f"              {point.rule}"))
        blocks.append("\n".join(lines))
    return "\n\n".join(blocks)


def _figures(cell: Cell) -> str:
    figures = cell.figures
    if figures is None:
        return ""
    tokens = figures.output_tokens_per_second
    parts = [f"{number(figures.requests_per_second)} requests/s"]
    parts += [] if tokens is None else [f"{number(tokens)} tokens/s"]
    parts += [] if cell.ttft_seconds is None else [f"first token {latency(cell.ttft_seconds.mean)} on average"]
    return ", ".join(parts)


def recommendation(recommendation: Recommendation, engine: Engine, paint: Paint) -> str:
    """Return the best choice, the others, and what was refused. The caller prints the profile after it."""
    return "\n".join(_lines(recommendation, engine, paint))


def _lines(recommendation: Recommendation, engine: Engine, paint: Paint) -> Iterator[str]:
    choices, refused = recommendation.choices, recommendation.refused
    yield f"For {workload_text(recommendation.workload)}:"
    for position, choice in enumerate(_first_of_each_slice(choices)[: _MOST_OTHERS + 1]):
        line = f"  {_choice(choice)}"
        yield line if position else paint.bold(line)
        yield paint.dim(f"      {words.plain(choice.why)}")
    if not choices:
        yield "  no slice serves it." if recommendation.is_sized else "  no slice is known to serve it."
    elif not choices[0].is_measured:
        yield paint.yellow("From the size model, which knows memory, not speed: measure it with `tpudeploy bench`.")
        yield paint.dim(f"{figures_of(engine)}.")
    elif any(choice.is_emulated for choice in choices):
        yield paint.yellow(EMULATED)
    yield from _unknown(recommendation, paint)
    for line in refused[:_MOST_OTHERS]:
        yield paint.dim(f"  not {words.plain(line)}")
    if len(refused) > _MOST_OTHERS:
        yield paint.dim(f"  and {len(refused) - _MOST_OTHERS} more (--json has them)")


def _unknown(recommendation: Recommendation, paint: Paint) -> Iterator[str]:
    """Yield what is unknown of the best choice, and where the figures of others are from."""
    if not recommendation.choices:
        return
    best, limit = recommendation.choices[0], recommendation.workload.ttft_seconds
    if best.basis is Basis.BY_OTHERS:
        yield paint.yellow(f"Measured by others, with flags that aren't stated: {words.plain(best.source)}.")
    if limit is not None and not best.is_checked:
        yield paint.yellow(f"Whether the first token comes within {limit:g} s is unknown: measure it.")
    if best.unknown:
        yield paint.dim(f"Unknown: {', '.join(best.unknown)}.")


def _first_of_each_slice(choices: Sequence[Choice]) -> list[Choice]:
    """Return the best split of each slice, and every run."""
    firsts = {(choice.run, choice.accelerator_type): choice for choice in reversed(choices)}
    return [choice for choice in choices if firsts[choice.run, choice.accelerator_type] is choice]


def workload_text(workload: Workload) -> str:
    """Return a workload and its limits."""
    parts = [f"{workload.users:,} users", load_text(workload.context_tokens, workload.output_tokens)]
    if workload.ttft_seconds is not None:
        parts.append(f"the first token within {workload.ttft_seconds:g} s")
    if workload.usd_per_month is not None:
        parts.append(f"at most ${workload.usd_per_month:,.0f} a month")
    return ", ".join(parts)


def _choice(choice: Choice) -> str:
    emulated = f", {EMULATOR}" if choice.is_emulated else ""
    others = f", {Basis.BY_OTHERS}" if choice.basis is Basis.BY_OTHERS else ""
    evidence = f"run {choice.run}{emulated}{others}" if choice.is_measured else "not measured"
    return f"{setup_text(choice)}, {price_text(choice)}  ({evidence})"


def setup_text(choice: Choice) -> str:
    """Return the slices of a choice, how the model is split over them, and who grants them."""
    settings = {path.rpartition(".")[2]: value for path, value in choice.settings.items()}
    split = f"tensor parallel {settings['tensor_parallel_size']}" if "tensor_parallel_size" in settings else ""
    ranks = settings.get("data_parallel_size", 1)
    if split and ranks != 1:
        split += f" x data parallel {ranks}"
    if settings.get("pipeline_parallel_size"):
        split += f" x pipeline parallel {settings['pipeline_parallel_size']}"
    provisioning = settings.get("provisioning")
    models = ", ".join(map(str, provisioning)) if isinstance(provisioning, list) else ""
    replicas = settings.get("replicas", 1)
    slices = choice.accelerator_type if replicas == 1 else f"{replicas} replicas of {choice.accelerator_type}"
    return ", ".join(filter(None, (slices, split, models)))


def price_text(choice: Choice) -> str:
    """Return the price of a month, and how sure it is."""
    month = choice.usd_per_month
    if month is None:
        return "at an unknown price"
    bound = "at least" if choice.unknown_prices else "at most"
    price = f"{'about' if choice.is_measured else bound} ${month:,.0f} a month"
    if choice.unknown_prices:
        has = "has" if choice.unknown_prices == 1 else "have"
        price += f" ({choice.unknown_prices} of its places {has} no known price)"
    return price
