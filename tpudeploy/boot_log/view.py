"""Format what a boot log says: the cause of a failure and its remedy, or the phases of a start; and a model's draft."""

from __future__ import annotations

from collections.abc import Collection, Iterator

from tpudeploy.boot_log.reading import Cause, Draft, Load, ParsedLog, StartPhase, Timeline
from tpudeploy.metrics.view import table
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

# The text of each phase whose own name is too short.
_PHASES = {
    "boot": "machine boots",
    "docker": "docker",
    "image": "image",
    "secrets": "secrets",
    "mirror": "weights fetched",
    "cache": "compile cache",
    "container": "container starts",
    "imports": "imports, flags",
    "engine": "engine starts",
    "weights": "weights",
    "compile": "graphs compiled",
    "warm-up": "warm-up",
}
_BAR = 40
_DURATION = 10  # cells of the longest text: "unfinished"
_SHORTEST_BAR = 10


def explanation(reading: ParsedLog, paint: Paint, *, width: int | None) -> str:
    """Return the explanation of a log. `width` is the terminal's, in columns; None if it has none."""
    blocks = []
    if reading.cause is not None:
        blocks.append("\n".join(_cause(reading.cause, paint, width)))
    if reading.phases and (reading.cause is None or len(reading.phases) > 1):
        blocks.append("\n".join(_timeline(reading, paint, width)))
    if reading.load is not None:
        blocks.append("\n".join(_load(reading.load, paint, width)))
    if reading.notes:
        blocks.append("\n".join(_notes(reading, paint, width)))
    return "\n\n".join(blocks) or "This log holds no phase of a boot and no known cause of a failure."


def _cause(cause: Cause, paint: Paint, width: int | None) -> Iterator[str]:
    yield from words.wrapped(f"{paint.red(cause.what)} ({cause.signature})", width, indent="")
    who = f"{cause.line.process}: " if cause.line.process else ""
    yield from words.wrapped(
        f"  line {cause.line.number}  {who}{words.plain(cause.line.text.strip())}", width, indent="    "
    )
    yield ""
    yield from words.wrapped(f"What to do: {cause.remedy}", width, indent="  ")


def _load(load: Load, paint: Paint, width: int | None) -> Iterator[str]:
    lines = "the last line" if load.lines == 1 else f"the last {load.lines} lines"
    yield (
        f"{paint.bold('How it serves')}, by {lines} of statistics in the log: "
        f"{load.prompt_tokens_per_second:,.0f} prompt and {load.generation_tokens_per_second:,.0f} generated tokens/s"
    )
    yield from table(load.readings, paint, width)


def _timeline(reading: ParsedLog, paint: Paint, width: int | None) -> Iterator[str]:
    """Return one bar per phase, all on one time scale."""
    end = "it serves" if reading.is_serving else "the end of the log"
    yield f"{paint.bold(words.duration(reading.seconds))} until {end}"
    yield from bars(reading, paint, reading.phases, width=width)
    if not reading.is_serving and reading.cause is None:
        yield paint.yellow("The log ends there: it did not serve, and the log does not say why.")


def bars(reading: ParsedLog, paint: Paint, highlighted: Collection[StartPhase], *, width: int | None) -> Iterator[str]:
    """Return one line per phase. Highlighted phases have solid bars, the others light ones."""
    longest = max(len(phase_name(reading, phase)) for phase in reading.phases)
    text_width = 2 + longest + 2 + _DURATION + 2
    # One cell is left over, because the begin and the length of a bar are rounded, both up at times.
    cells = _BAR if width is None else min(_BAR, max(width - text_width - 1, _SHORTEST_BAR))
    for phase in reading.phases:
        took = "unfinished" if phase.seconds is None else words.duration(phase.seconds)
        bar = _bar(reading, phase, "█" if phase in highlighted or phase.seconds is None else "░", cells)
        yield f"  {phase_name(reading, phase).ljust(longest)}  {took.rjust(_DURATION)}  {paint.dim(bar)}".rstrip()


def phase_name(reading: ParsedLog, phase: StartPhase) -> str:
    name = _PHASES.get(phase.name, phase.name)
    if phase.name != "compile":
        return name
    return f"{reading.graphs} {name}" if reading.graphs else "KV cache, no graphs"  # with enforce_eager, or on a CPU


def _bar(reading: ParsedLog, phase: StartPhase, block: str, cells: int) -> str:
    whole = reading.seconds or 1.0
    offset = round(cells * phase.began / whole)
    seconds = phase.seconds if phase.seconds is not None else reading.seconds - phase.began
    return " " * offset + block * max(1, round(cells * seconds / whole))


def _notes(reading: ParsedLog, paint: Paint, width: int | None) -> Iterator[str]:
    yield paint.dim("These lines look like errors, but are harmless:")
    for line, why in reading.notes:
        text = words.plain(line.text.strip())
        yield from words.wrapped(f"  line {line.number}  {text[:100]}: {why}.", width, indent="    ")


def timeline(timeline: Timeline, paint: Paint, *, width: int | None = None) -> str:
    return "\n".join(_timeline_lines(timeline, paint, width))


def _timeline_lines(timeline: Timeline, paint: Paint, width: int | None) -> Iterator[str]:
    reading = timeline.reading
    duration = words.duration(reading.seconds)
    end = f"{duration} until it served" if reading.is_serving else f"{duration} so far"
    yield f"{paint.bold(timeline.address)}  {end}"
    yield from bars(reading, paint, timeline.critical, width=width)
    if timeline.critical:
        yield f"  critical path  {' → '.join(phase_name(reading, phase) for phase in timeline.critical)}"
    if timeline.cache:
        yield f"  compile cache  {words.plain(timeline.cache)}"
    if not timeline.is_whole:
        yield paint.yellow("  Its log cannot be read, so the time in the container is shown as one phase.")


_MARGIN = "│ "


def draft(draft: Draft, paint: Paint, *, width: int | None) -> str:
    """Return the draft behind a bar on each line. `width` is the terminal's, in columns; None if it has none."""
    head = f"A draft by {words.plain(draft.model)}, asked at {draft.by}. A model wrote it, and it has not been checked:"
    room = None if width is None else width - 2 - len(_MARGIN)
    lines = [part for line in draft.text.splitlines() for part in words.wrapped(words.plain(line), room, indent="")]
    return "\n".join([paint.yellow(head), *(f"  {paint.dim(f'{_MARGIN}{line}'.rstrip())}" for line in lines)])
