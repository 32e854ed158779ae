"""Format what a chip holds as a bar with numbers beside it, and the options of a sweep as a table."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from enum import Enum, auto

from tpudeploy.catalog.engines import figures_of, has_own_figures
from tpudeploy.catalog.support import ModelSupport, deployment_support
from tpudeploy.domain.boots import BootRecord
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.engine import Engine, EngineOrigin
from tpudeploy.domain.task import TASKS, Task, TaskOrigin
from tpudeploy.sizing.sweep import Failure, Option, SizeSweep
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

_BAR = 56  # fits into 60 columns
_GIB = 1024**3
_SHADES = {"weights": "█", "KV cache": "▓", "programs": "▒", "free": "·"}


class _Bound(Enum):
    """In which direction the figures may be off: not at all, the rest of the HBM, or the weights in it too."""

    NONE = auto()
    REST = auto()
    USED_AND_REST = auto()

    @property
    def words(self) -> Mapping[str, str]:
        """The words before the figure of each part."""
        rest = {} if self is _Bound.NONE else {"KV cache": "at most ", "free": "at most "}
        return {**rest, "weights": "at least "} if self is _Bound.USED_AND_REST else rest


_ORIGINS = {
    EngineOrigin.NONE: "",
    EngineOrigin.TAG: ", by the tag",
    EngineOrigin.LABELS: ", by the labels of the image",
    EngineOrigin.LOCK_FILE: ", by the lock file",
    EngineOrigin.BOOT: ", as it reported at its last boot",
}
_CALIBRATED = ("num_blocks", "kv_cache_tokens", "graphs", "weights_bytes", "program_room_bytes")
# The parts of a start, in words. A compile cache makes the third one shorter than predicted.
_START_PARTS = {
    "process_seconds": "to the first weight",
    "weights_seconds": "weights",
    "compile_seconds": "compile",
    "ready_seconds": "to the first answer",
}
_DOUBT = "may run out of memory while it compiles"
_MOST_FAILURES = 12
_COLUMNS = ("slice", "TP x DP", "KV", "util", "length", "KV tokens", "at once", "from", "cold start")
_NUMBER_COLUMNS = range(3, len(_COLUMNS))
_OPTIONAL_COLUMNS = (8, 6, 1)  # the first that a narrow terminal has no room for


def engine(image: Engine) -> str:
    """Return the line about the engine that the figures are for."""
    figures = "" if has_own_figures(image) else f". {figures_of(image)}"
    return f"\n  engine: {image.title}{_ORIGINS[image.origin]}{figures}"


def boots(records: Sequence[BootRecord]) -> str:
    """Return the line about verified boots of this kind: how many, and how far off the last prediction was."""
    if not records:
        return ""
    deviations = {name: records[-1].deviation(name) for name in _CALIBRATED}
    texts = [f"{name} {value:+.2%}" for name, value in deviations.items() if value is not None]
    last = f"; of the last one, measured against predicted: {', '.join(texts)}" if texts else ""
    line = f"\n  boots: {words.plural(len(records), 'verified boot')} of this engine, model and slice{last}"
    return f"{line}{_start_of(records[-1])}"


def _start_of(boot: BootRecord) -> str:
    """Return the line about the parts of the start of a boot, "" for one whose log was not read."""
    both = [name for name in _START_PARTS if name in boot.predicted and name in boot.measured]
    parts = [f"{_START_PARTS[name]} {boot.measured[name]:.0f} s ({boot.predicted[name]:.0f} s)" for name in both]
    return f"\n  start: the last one took {', '.join(parts)}; in brackets as predicted without a cache" if parts else ""


def support(verdict: ModelSupport) -> str:
    """Return the line about a model that upstream has not tested, or that does not pass; "" for one that passes."""
    return f"\n  tests: {verdict.sentence}" if verdict.sentence else ""


def size(name: str, budget: HbmBudget | Unsized, paint: Paint) -> str:
    """Return the block of one deployment. All devices hold the same, so one bar describes each of them.

    A budget that is a lower bound has the same form, and each figure says in which direction it may be off.
    """
    if isinstance(budget, HbmBudget):
        return "\n".join(_budget(name, budget, _verdict(budget, paint), paint, _Bound.NONE))
    reason = paint.yellow(unsized(budget))
    if budget.at_least is None:
        verdict = paint.red(f"  {_would_not_start(budget.fatal)}") if budget.fatal else ""
        least = reason if budget.least is None else f"{reason} {_least(budget)}"
        return f"{paint.bold(name)}  {least}{verdict}"
    verdict = _bound_verdict(budget.at_least, budget.fatal, paint)
    bound = _Bound.REST if budget.lacks_limit_alone else _Bound.USED_AND_REST
    return "\n".join([*_budget(name, budget.at_least, verdict, paint, bound), "", f"  {reason}"])


def task(origin: TaskOrigin) -> str:
    """Return the line about a server that completes no prompts, or of which that is not known; "" for one that does."""
    if origin.task is Task.GENERATE:
        return ""
    if origin.task is Task.UNKNOWN:
        return f"\n  serves: unknown, because {origin.because}"
    return f"\n  serves: {TASKS[origin.task].serves}, by {origin.because}"


def _budget(name: str, budget: HbmBudget, verdict: str, paint: Paint, bound: _Bound) -> Iterator[str]:
    engine = budget.engine
    ranks = engine.tensor_parallel * engine.pipeline_parallel * engine.data_parallel
    devices = words.plural(ranks, budget.accelerator.device_noun)
    if budget.accelerator.hosts > 1:
        devices += f" on {budget.accelerator.hosts} hosts"
    split = f"TP {engine.tensor_parallel}"
    if engine.pipeline_parallel > 1:
        split += f" x PP {engine.pipeline_parallel}"
    if engine.data_parallel > 1:
        split += f" x DP {engine.data_parallel}"
    yield f"{paint.bold(name)}  {budget.model.name} on {budget.accelerator.name}, {devices}, {split}  {verdict}"
    yield ""
    yield from _chip(budget, paint, bound)
    yield ""
    yield from _facts(budget, paint, bound)
    if budget.estimates:
        yield ""
        yield from (paint.dim(f"  ~ {text}") for text in budget.estimates)


def summary(deployment: Deployment) -> str:
    """Return the line that a plan shows."""
    budget, image = deployment.budget, deployment.engine
    line = _summary(deployment.name, budget)
    sentence = deployment_support(deployment).sentence
    line += f" {sentence}." if sentence else ""
    if isinstance(budget, Unsized) and budget.at_least is None:
        return line
    return f"{line} {figures_of(image)}."


def _summary(name: str, budget: HbmBudget | Unsized) -> str:
    if isinstance(budget, Unsized):
        bound = budget.at_least
        if bound is None or not bound.holds_a_request:
            return f"{name}: {unsized(budget)}"
        least = "" if budget.lacks_limit_alone else "at least "
        return (
            f"{name}: a {bound.accelerator.device_noun} holds {least}{_gib(bound.weights_bytes_per_chip)} of weights "
            f"and at most {bound.kv_cache_tokens:,} tokens of KV cache. {unsized(budget)}"
        )
    if budget.fits is False:
        return f"{name}: {_refusal(budget)}"
    doubt = f" It {_DOUBT}." if budget.fits is None else ""
    return (
        f"{name}: a {budget.accelerator.device_noun} holds {_gib(budget.weights_bytes_per_chip)} of weights and "
        f"{_gib(budget.kv_bytes_per_chip)} of KV cache: {budget.kv_cache_tokens:,} tokens, "
        f"{budget.max_concurrency:.1f} requests of {budget.engine.max_model_len:,} at once. "
        f"Cold start about {words.minutes(budget.start.cold_seconds)}.{doubt}"
    )


def _least(budget: Unsized) -> str:
    """Return what the weights take at least, of what the chips have for them."""
    assert budget.least is not None
    share = f" of the {_gib(budget.most)} that its chips have for them and the KV cache" if budget.most else ""
    return f"Its weights take at least {_gib(budget.least.size)}{share} ({budget.least.source})."


def unsized(reason: Unsized) -> str:
    return f"Cannot size this, because {reason.because}."


def sweep(options: SizeSweep, paint: Paint, *, width: int | None = None) -> str:
    """Return the options that no other one beats, at the profile's lowest list price, and why the others fail.

    A terminal of `width` columns that is too narrow gets fewer columns.
    """
    room = None if width is None else width - 2
    rows = [_COLUMNS, *map(_option, options.best)]
    title, *lines = words.aligned(rows, numbers=_NUMBER_COLUMNS, room=room, optional=_OPTIONAL_COLUMNS)
    head = (
        f"{len(options.best)} of {options.tried} settings that no other one beats in tokens, length, price and start:"
    )
    table = (f"  {line}" for line in lines)
    return "\n".join([head, "", paint.bold(f"  {title}"), *table, *_failures(options.failures, paint)])


def _verdict(budget: HbmBudget, paint: Paint) -> str:
    if budget.fits is None:
        return paint.yellow(_DOUBT)
    return paint.green("fits") if budget.fits else paint.red(_refusal(budget))


def _bound_verdict(bound: HbmBudget, fatal: Sequence[str], paint: Paint) -> str:
    if not bound.holds_a_request:
        return paint.red(_refusal(bound))
    return paint.red(_would_not_start(fatal)) if fatal else paint.yellow("may fit: these figures are bounds")


def _refusal(budget: HbmBudget) -> str:
    """Return why a server with this budget does not start."""
    return _would_not_start(budget.fatal) if budget.holds_a_request else _misfit(budget)


def _would_not_start(codes: Sequence[str]) -> str:
    return f"would not start: {', '.join(codes)}"


def _misfit(budget: HbmBudget) -> str:
    if budget.num_blocks == 0:
        return f"does not fit: {_gib(budget.weights_bytes_per_chip)} of weights a {budget.accelerator.device_noun}"
    return f"does not fit: not one request of {budget.engine.max_model_len:,} tokens"


def _chip(budget: HbmBudget, paint: Paint, bound: _Bound) -> Iterator[str]:
    sizes = {
        "weights": budget.weights_bytes_per_chip,
        "KV cache": budget.kv_bytes_per_chip,
        "programs": budget.program_bytes_per_chip,
        "free": budget.free_bytes_per_chip,
    }
    colours = {"weights": paint.bold, "KV cache": paint.green, "programs": paint.yellow, "free": paint.dim}
    columns = _bar_columns(sizes, budget.hbm_bytes_per_chip)
    accelerator, utilization = budget.accelerator, budget.engine.utilization
    noun = accelerator.device_noun
    device = f"the {noun}" if accelerator.devices == 1 else f"each of {accelerator.devices} {noun}s"
    yield f"  {device}: {_gib(budget.hbm_bytes_per_chip)}, {utilization:g} of it for weights and KV cache"
    yield "  " + "".join(colours[part](_SHADES[part] * count) for part, count in columns.items())
    notes = {
        "weights": budget.model.linear_dtype or budget.engine.dtype,
        "KV cache": f"{budget.engine.cache_dtype}, {budget.kv_bytes_per_token_per_chip:,} bytes a token"
        f"{_window_note(budget)}",
        "programs": f"for {budget.engine.max_num_seqs} requests; nothing reserves it",
        "free": _shortage_note(budget),
    }
    width = max(map(len, bound.words.values()), default=0)
    for part, part_bytes in sizes.items():
        limit = bound.words.get(part, "").rjust(width)
        line = f"  {_SHADES[part]} {part.ljust(8)}  {limit}{_gib(part_bytes).rjust(9)}  {notes[part]}".rstrip()
        yield paint.red(line) if part_bytes < 0 else line


def _window_note(budget: HbmBudget) -> str:
    """Return a note on sliding windows: they save cache on other hardware, but not on TPU."""
    has_window = any(kind.window is not None for kind in budget.model.attention)
    is_whole = budget.blocks_per_request == -(-budget.engine.max_model_len // budget.block_size)
    return "; windows save nothing on TPU" if has_window and is_whole else ""


def _shortage_note(budget: HbmBudget) -> str:
    if budget.free_bytes_per_chip >= 0:
        return ""
    if not budget.holds_a_request:
        return "short"
    return f"short: compiling {'may' if budget.fits is None else 'would'} run out of memory"


def _bar_columns(sizes: dict[str, int], chip_bytes: int) -> dict[str, int]:
    """Return the bar's columns of each part. An overflow is cut at the end, and rounding goes to the last part."""
    columns: dict[str, int] = {}
    for part, part_bytes in sizes.items():
        remaining = _BAR - sum(columns.values())
        columns[part] = min(max(round(part_bytes / chip_bytes * _BAR), 0), remaining)
    last = next(reversed(columns))
    columns[last] += max(_BAR - sum(columns.values()), 0)
    return columns


def _facts(budget: HbmBudget, paint: Paint, bound: _Bound) -> Iterator[str]:
    most = "" if bound is _Bound.NONE else "at most "
    least, about = ("at least ", "at least") if bound is _Bound.USED_AND_REST else ("", "about")
    engine, compilation, start = budget.engine, budget.compilation, budget.start
    ranks = f" on each of {engine.data_parallel} ranks" if engine.data_parallel > 1 else ""
    sequences = engine.max_num_seqs * engine.data_parallel
    buckets = compilation.token_buckets[-1], compilation.request_buckets[-1]
    rows = (
        (
            "KV cache",
            f"{most}{budget.kv_cache_tokens:,} tokens",
            f"{most}{budget.num_blocks:,} blocks of {budget.block_size}{ranks}",
        ),
        (
            "requests",
            f"{most}{budget.max_concurrency:.1f} at once",
            f"of {engine.max_model_len:,} tokens; shorter ones up to {sequences}",
        ),
        (
            "compiles",
            f"{least}{compilation.total} graphs",
            f"token buckets to {buckets[0]:,}, request buckets to {buckets[1]}",
        ),
        (
            "starts",
            f"in {about} {words.minutes(start.cold_seconds)}",
            f"about {words.minutes(start.warm_seconds)} with a warm compile cache",
        ),
    )
    yield from (f"  {line}" for line in words.aligned([(name, paint.bold(value), note) for name, value, note in rows]))


def _option(option: Option) -> tuple[str, ...]:
    budget, engine = option.budget, option.budget.engine
    return (
        budget.accelerator.name,
        f"{engine.tensor_parallel} x {engine.data_parallel}",
        engine.kv_dtype,
        f"{engine.utilization:g}",
        f"{engine.max_model_len:,}",
        f"{budget.kv_cache_tokens:,}",
        f"{budget.max_concurrency:.1f}",
        "" if option.usd_per_hour is None else words.hourly(option.usd_per_hour),
        words.minutes(budget.start.cold_seconds),
    )


def _failures(failures: Sequence[Failure], paint: Paint) -> Iterator[str]:
    if failures:
        yield ""
        yield "What fails, and why:"
    for failure in failures[:_MOST_FAILURES]:
        yield f"  {failure.accelerator_type.ljust(8)}  {failure.settings}: {failure.because}"
    if len(failures) > _MOST_FAILURES:
        yield paint.dim(f"  … and {len(failures) - _MOST_FAILURES} more; --json has them all")


def _gib(byte_count: int) -> str:
    return f"{byte_count / _GIB:.2f} GiB"
