"""What a chip holds, as a bar and the numbers beside it; a sweep, as a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import TYPE_CHECKING

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

if TYPE_CHECKING:  # it costs a start, and a sweep is rarely asked for
    from tpudeploy.core.sizing.sweep import Failure, Option, Sweep

_BAR = 64
_GIB = 1024**3
_SHADES = {"weights": "█", "KV cache": "▓", "programs": "▒", "free": "·"}
_MOST_FAILURES = 12


def size(name: str, of: HbmBudget | Unsized, paint: Paint) -> str:
    """One deployment. Every chip holds the same, so that one bar stands for all.

    A budget that is a lower bound is shown alike, and each figure says which way it may be off.
    """
    if isinstance(of, HbmBudget):
        return "\n".join(_budget(name, of, _verdict(of, paint), paint, is_bound=False))
    because = paint.yellow(unsized(of))
    if of.at_least is None:
        verdict = paint.red(f"  {_would_not_start(of.fatal)}") if of.fatal else ""
        return f"{paint.bold(name)}  {because}{verdict}"
    return "\n".join([*_budget(name, of.at_least, _bound_verdict(of, paint), paint, is_bound=True), "", f"  {because}"])


def _budget(name: str, of: HbmBudget, verdict: str, paint: Paint, *, is_bound: bool) -> Iterator[str]:
    yield _head(name, of, verdict, paint)
    yield ""
    yield from _chip(of, paint, is_bound=is_bound)
    yield ""
    yield from _facts(of, paint, is_bound=is_bound)
    yield from _estimates(of, paint)


def summary(name: str, of: HbmBudget | Unsized) -> str:
    """The one line that a plan shows."""
    if isinstance(of, Unsized):
        bound = of.at_least
        if bound is None or not bound.holds_a_request:
            return f"{name}: {unsized(of)}"
        return (
            f"{name}: a chip holds at least {_gib(bound.weights_bytes_per_chip)} of weights and at most "
            f"{bound.kv_cache_tokens:,} tokens of KV cache. {unsized(of)}"
        )
    if not of.holds_a_request:
        return f"{name}: {_misfit(of)}"
    return (
        f"{name}: a chip holds {_gib(of.weights_bytes_per_chip)} of weights and {_gib(of.kv_bytes_per_chip)} of KV "
        f"cache: {of.kv_cache_tokens:,} tokens, {of.max_concurrency:.1f} requests of {of.engine.max_model_len:,} at "
        f"once. Cold start about {words.minutes(of.start.cold_seconds)}."
    )


def unsized(of: Unsized) -> str:
    return f"Cannot size this, because {of.because}."


def sweep(of: Sweep, paint: Paint) -> str:
    """The options that nothing beats, at the lowest list price of the profile's zones, and why the others fail."""
    rows: list[tuple[str, ...]] = [
        ("slice", "TP x DP", "KV", "util", "length", "KV tokens", "at once", "from", "cold start")
    ]
    rows += [_option(o) for o in of.best]
    widths = [max(len(row[i]) for row in rows) for i in range(len(rows[0]))]
    table = [_row(row, widths) for row in rows]
    head = f"{len(of.best)} of {of.tried} settings that nothing else beats in tokens, length, price and start:"
    return "\n".join([head, "", paint.bold(table[0]), *table[1:], *_failures(of.failures, paint)])


def _head(name: str, of: HbmBudget, verdict: str, paint: Paint) -> str:
    engine = of.engine
    chips = engine.tensor_parallel * engine.data_parallel
    split = f"TP {engine.tensor_parallel}" + (f" x DP {engine.data_parallel}" if engine.data_parallel > 1 else "")
    where = f"{of.accelerator.name}, {chips} chip{'s' if chips > 1 else ''}, {split}"
    return f"{paint.bold(name)}  {of.model.name} on {where}  {verdict}"


def _verdict(of: HbmBudget, paint: Paint) -> str:
    if not of.holds_a_request:
        return paint.red(_misfit(of))
    return paint.red(_would_not_start(of.fatal)) if of.fatal else paint.green("fits")


def _bound_verdict(of: Unsized, paint: Paint) -> str:
    bound = of.at_least
    if bound is not None and not bound.holds_a_request:
        return paint.red(_misfit(bound))
    return paint.red(_would_not_start(of.fatal)) if of.fatal else paint.yellow("may fit: these figures are bounds")


def _would_not_start(codes: Sequence[str]) -> str:
    return f"would not start: {', '.join(codes)}"


def _misfit(of: HbmBudget) -> str:
    if of.num_blocks == 0:
        return f"does not fit: {_gib(of.weights_bytes_per_chip)} of weights a chip"
    return f"does not fit: not one request of {of.engine.max_model_len:,} tokens"


def _chip(of: HbmBudget, paint: Paint, *, is_bound: bool) -> Iterator[str]:
    parts = {
        "weights": of.weights_bytes_per_chip,
        "KV cache": of.kv_bytes_per_chip,
        "programs": of.program_bytes_per_chip,
        "free": of.free_bytes_per_chip,
    }
    colours = {"weights": paint.bold, "KV cache": paint.green, "programs": paint.yellow, "free": paint.dim}
    bar = "".join(colours[part](_SHADES[part] * width) for part, width in _widths(parts, of.hbm_bytes_per_chip).items())
    each = "the chip" if of.accelerator.chips == 1 else f"each of {of.accelerator.chips} chips"
    yield f"  {each}: {_gib(of.hbm_bytes_per_chip)}, {of.engine.utilization:g} of it for weights and KV cache"
    yield f"  {bar}"
    notes = {
        "weights": of.engine.dtype,
        "KV cache": f"{of.engine.cache_dtype}, {of.kv_bytes_per_token_per_chip:,} bytes a token{_windows(of)}",
        "programs": f"for {of.engine.max_num_seqs} requests; nothing reserves it",
        "free": "" if of.free_bytes_per_chip >= 0 else _short(of),
    }
    bounds = {"weights": "at least ", "KV cache": "at most ", "free": "at most "} if is_bound else {}
    width = max((len(words) for words in bounds.values()), default=0)
    for part, taken in parts.items():
        bound = bounds.get(part, "").rjust(width)
        line = f"  {_SHADES[part]} {part.ljust(8)}  {bound}{_gib(taken).rjust(9)}  {notes[part]}".rstrip()
        yield paint.red(line) if taken < 0 else line


def _windows(of: HbmBudget) -> str:
    """What a model with sliding windows is praised for elsewhere, and does not have on TPU."""
    has_window = any(kind.window is not None for kind in of.model.attention)
    is_whole = of.blocks_per_request == -(-of.engine.max_model_len // of.block_size)
    return "; windows save nothing on TPU" if has_window and is_whole else ""


def _short(of: HbmBudget) -> str:
    return "short: compiling would run out of memory" if of.holds_a_request else "short"


def _widths(parts: dict[str, int], whole: int) -> dict[str, int]:
    """Columns of each part. What overflows a chip is cut at its end; rounding goes to the last part."""
    widths: dict[str, int] = {}
    for part, taken in parts.items():
        left = _BAR - sum(widths.values())
        widths[part] = min(max(round(taken / whole * _BAR), 0), left)
    last = next(reversed(widths))
    widths[last] += max(_BAR - sum(widths.values()), 0)
    return widths


def _facts(of: HbmBudget, paint: Paint, *, is_bound: bool) -> Iterator[str]:
    most = "at most " if is_bound else ""
    engine, plan = of.engine, of.compilation
    ranks = f" on each of {engine.data_parallel} ranks" if engine.data_parallel > 1 else ""
    facts = {
        "KV cache": (f"{most}{of.kv_cache_tokens:,} tokens", f"{of.num_blocks:,} blocks of {of.block_size}{ranks}"),
        "requests": (
            f"{most}{of.max_concurrency:.1f} at once",
            f"of {engine.max_model_len:,} tokens; shorter ones up to {engine.max_num_seqs * engine.data_parallel}",
        ),
        "compiles": (
            f"{'at least ' if is_bound else ''}{plan.total} graphs",
            f"token buckets to {plan.token_buckets[-1]:,}, request buckets to {plan.request_buckets[-1]}",
        ),
        "starts": (
            f"in {'at least' if is_bound else 'about'} {words.minutes(of.start.cold_seconds)}",
            f"about {words.minutes(of.start.warm_seconds)} with a warm compile cache",
        ),
    }
    width = max(len(value) for value, _ in facts.values())
    for name, (value, note) in facts.items():
        yield f"  {name.ljust(8)}  {paint.bold(value.ljust(width))}  {note}"


def _estimates(of: HbmBudget, paint: Paint) -> Iterator[str]:
    if of.estimates:
        yield ""
        yield from (paint.dim(f"  ~ {text}") for text in of.estimates)


def _option(of: Option) -> tuple[str, ...]:
    found, engine = of.budget, of.budget.engine
    return (
        found.accelerator.name,
        f"{engine.tensor_parallel} x {engine.data_parallel}",
        engine.kv_dtype,
        f"{engine.utilization:g}",
        f"{engine.max_model_len:,}",
        f"{found.kv_cache_tokens:,}",
        f"{found.max_concurrency:.1f}",
        "" if of.usd_per_hour is None else words.hourly(of.usd_per_hour),
        words.minutes(found.start.cold_seconds),
    )


def _row(cells: Sequence[str], widths: Sequence[int]) -> str:
    """Words to the left, numbers to the right."""
    aligned = [c.ljust(w) if i < 3 else c.rjust(w) for i, (c, w) in enumerate(zip(cells, widths, strict=True))]  # noqa: PLR2004 - the first three columns are words
    return "  " + "  ".join(aligned)


def _failures(of: Iterable[Failure], paint: Paint) -> Iterator[str]:
    failures = list(of)
    if failures:
        yield ""
        yield "What fails, and why:"
    for each in failures[:_MOST_FAILURES]:
        yield f"  {each.accelerator_type.ljust(8)}  {each.settings}: {each.because}"
    if len(failures) > _MOST_FAILURES:
        yield paint.dim(f"  … and {len(failures) - _MOST_FAILURES} more; --json has them all")


def _gib(taken: int) -> str:
    return f"{taken / _GIB:.2f} GiB"
