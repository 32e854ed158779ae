"""Format recommendations across models: a row for each, the sources of its figures, and why others serve nothing."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy import catalog
from tpudeploy.features.benchmark.operating_view import setup_text, workload_text
from tpudeploy.features.benchmark.recommend import TTFT
from tpudeploy.features.benchmark.recommendation import Basis, Choice, ModelRecommendation, Workload
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import EMULATED, latency, some

_HEAD = ("model", "serves it best on", "USD/month", "USD/M output tokens", "TTFT p95", "basis")
_NUMBERS = (2, 3, 4)
_UNKNOWN = "unknown"
_MOST_REASONS = 3
_MOST_SOURCES = 4


def model_table(
    workload: Workload, models: Sequence[ModelRecommendation], paint: Paint, *, width: int | None = None
) -> str:
    """Return the table, best first. In a narrow terminal, the cells of a row are wrapped beside its model."""
    return "\n".join(_lines(workload, models, paint, width))


def _lines(workload: Workload, models: Sequence[ModelRecommendation], paint: Paint, width: int | None) -> Iterator[str]:
    served = [each for each in models if each.best is not None]
    yield words.fitted(f"For {workload_text(workload)}:", width)
    if served:
        head = tuple(map(paint.bold, _HEAD))
        rows = [head, *(_row(each, each.best) for each in served if each.best is not None)]
        yield from words.aligned(rows, numbers=_NUMBERS, room=width)
        choices = [each.best for each in served if each.best is not None]
        yield from (words.fitted(note, width) for note in _notes(workload, served, choices, paint))
    else:
        yield "No model is served within these limits."
    for each in models:
        if each.best is None:
            yield words.fitted(_refusal(each), width)


def label(each: ModelRecommendation) -> str:
    """Return the model, and the file of its profile."""
    return words.plain(", ".join(filter(None, (each.model, each.file))))


def _row(each: ModelRecommendation, best: Choice) -> tuple[str, ...]:
    per_million = best.usd_per_million_output_tokens
    ttft = None if best.cell is None else best.cell.ttft_seconds
    first = _UNKNOWN if ttft is None else latency(ttft.tail)
    return (
        label(each),
        setup_text(best),
        _month(best),
        _UNKNOWN if per_million is None else f"{per_million:.3g}",
        f"{first} on average" if ttft is not None and ttft.p95 is None else first,
        best.basis,
    )


def _month(best: Choice) -> str:
    if best.usd_per_month is None:
        return _UNKNOWN
    return f"{best.usd_per_month:,.0f}{' or more' if best.unknown_prices else ''}"


def _notes(
    workload: Workload, served: Sequence[ModelRecommendation], choices: Sequence[Choice], paint: Paint
) -> Iterator[str]:
    unchecked = [each for each in served if each.best is not None and not each.best.is_checked]
    if unchecked and workload.ttft_seconds is not None:
        whose = "these models" if len(unchecked) == len(served) else some(map(label, unchecked))
        yield paint.yellow(f"Whether {TTFT} keeps to {workload.ttft_seconds:g} s is unknown for {whose}: measure it.")
    if any(choice.is_emulated for choice in choices):
        yield paint.yellow(EMULATED)
    yield from (paint.dim(line) for line in _sources(choices))
    if any(choice.basis is Basis.MODELED for choice in choices):
        yield paint.dim("The size model knows memory, not speed: `tpudeploy bench` measures it.")
    bound = ' "Or more": some places have no known price.' if any(choice.unknown_prices for choice in choices) else ""
    yield paint.dim(f"List prices: {', '.join(dict.fromkeys(_price_dates(choices)))}.{bound}")


def _sources(choices: Sequence[Choice]) -> Iterator[str]:
    """Yield where the figures are from, measured ones first."""
    for basis in Basis:
        sources = list(dict.fromkeys(choice.source for choice in choices if choice.basis is basis))
        for source in sources[:_MOST_SOURCES]:
            yield f"{str(basis).capitalize()}: {words.plain(source)}."
        if len(sources) > _MOST_SOURCES:
            yield f"{str(basis).capitalize()}: {len(sources) - _MOST_SOURCES} more sources (-json has them)."


def _price_dates(choices: Sequence[Choice]) -> Iterator[str]:
    """Yield the date of the price table of each generation."""
    for choice in choices:
        kind = catalog.accelerator_type(choice.accelerator_type)
        if kind is not None:
            yield f"{kind.generation} {catalog.generation(kind.generation).prices_as_of}"


def _refusal(each: ModelRecommendation) -> str:
    """Return why nothing serves a model: each reason once, with the slices for which it holds."""
    slices: dict[str, list[str]] = {}
    for line in each.refused:
        subject, _, reason = line.partition(": ")
        is_of_slice = catalog.accelerator_type(subject) is not None
        whole = line.removeprefix("the size model: ")
        slices.setdefault(reason if is_of_slice else whole, []).extend([subject] if is_of_slice else [])
    reasons = [f"{reason} ({some(names)})" if names else reason for reason, names in slices.items()]
    verb = "Not served" if each.is_sized else "Not known to be served"
    more = f"; and {len(reasons) - _MOST_REASONS} more reasons (-json has them)" if len(reasons) > _MOST_REASONS else ""
    return f"{verb}: {label(each)}: {words.plain('; '.join(reasons[:_MOST_REASONS]))}{more}."
