"""Where to run what was measured, and what would serve a workload: the figures, and what they rest on."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.domain.recommendation import Choice, OperatingPoint, Recommendation, Workload
from tpudeploy.views import words
from tpudeploy.views.bench import EMULATED, EMULATOR, marked_id, number, seconds
from tpudeploy.views.paint import Paint

_MOST_OTHERS = 5


def operating(run: Run, found: Mapping[tuple[int, int], Sequence[OperatingPoint]], paint: Paint) -> str:
    """A block a load."""
    if not found:
        return f"No cell of run {run.id} can be believed, so it has no operating point."
    head = paint.bold(f"Operating points of run {marked_id(run)}")
    if run.subject.is_emulated:
        head += f"\n{paint.yellow(EMULATED)}"
    blocks = ["\n".join(_load(context, output, points, paint)) for (context, output), points in found.items()]
    return "\n\n".join([head, *blocks])


def _load(context: int, output: int, points: Sequence[OperatingPoint], paint: Paint) -> Iterator[str]:
    yield f"{context:,} tokens in, {f'{output:,} out' if output else 'answers of a length that is not told'}"
    for each in points:
        yield f"  {each.aim:<10}  {each.cell.point.concurrency:>5,} streams  {_figures(each.cell)}"
        yield paint.dim(f"              {each.rule}")


def _figures(cell: Cell) -> str:
    of = cell.figures
    if of is None:
        return ""
    first = "" if of.ttft_seconds is None else f", first token {seconds(of.ttft_seconds.mean)} on average"
    tokens = "" if of.output_tokens_per_second is None else f", {number(of.output_tokens_per_second)} tokens/s"
    return f"{number(of.requests_per_second)} requests/s{tokens}{first}"


def recommendation(of: Recommendation, paint: Paint) -> str:
    """What is best, what else would do, what will not; the profile is printed after it."""
    return "\n".join(_told(of, paint))


def _told(of: Recommendation, paint: Paint) -> Iterator[str]:
    yield f"For {_load_of(of.workload)}:"
    for n, choice in enumerate(of.choices[: _MOST_OTHERS + 1]):
        line = f"  {_choice(choice)}"
        yield paint.bold(line) if n == 0 else line
        yield paint.dim(f"      {words.plain(choice.why)}")
    if not of.choices:
        yield "  nothing will do."
    elif not of.choices[0].is_measured:
        yield paint.yellow("From the size model, which knows memory, not speed: measure it with `tpudeploy bench`.")
    elif any(choice.is_emulated for choice in of.choices):
        yield paint.yellow(EMULATED)
    for line in of.refused[:_MOST_OTHERS]:
        yield paint.dim(f"  not {words.plain(line)}")
    if len(of.refused) > _MOST_OTHERS:
        yield paint.dim(f"  and {len(of.refused) - _MOST_OTHERS} more (--json has them)")


def _load_of(of: Workload) -> str:
    parts = [f"{of.users:,} users", f"{of.context_tokens:,} tokens in", f"{of.output_tokens:,} out"]
    parts += [] if of.ttft_seconds is None else [f"the first token within {of.ttft_seconds:g} s"]
    parts += [] if of.usd_per_month is None else [f"at most ${of.usd_per_month:,.0f} a month"]
    return ", ".join(parts)


def _choice(of: Choice) -> str:
    at = {path.rpartition(".")[2]: value for path, value in of.settings.items()}
    split = f"tensor parallel {at['tensor_parallel_size']}" if "tensor_parallel_size" in at else ""
    ranks = at.get("data_parallel_size", 1)
    split += f" x data parallel {ranks}" if split and ranks != 1 else ""
    how = at.get("provisioning")
    models = ", ".join(map(str, how)) if isinstance(how, list) else ""
    price = "at an unknown price" if of.usd_per_month is None else f"about ${of.usd_per_month:,.0f} a month"
    rests = f"run {of.run}{f', {EMULATOR}' if of.is_emulated else ''}" if of.is_measured else "not measured"
    return ", ".join(filter(None, (of.accelerator_type, split, models, price))) + f"  ({rests})"
