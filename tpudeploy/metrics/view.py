"""Format the figures of running engines as a table: name, value and meaning, with the remedy below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.domain.metrics import Grade, Metered, Metrics, Reading
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

# The usual names of figures.
_NAMES = {"kv_cache_used": "KV cache used", "ttft": "TTFT", "itl": "ITL"}
_STYLES = {Grade.OK: "green", Grade.WARN: "yellow", Grade.PLAIN: "dim", Grade.COARSE: "dim"}
_COARSE = "TTFT and ITL are buckets since the server started, not figures to compare by: measure those from a client."


def metrics(metrics: Metrics, paint: Paint, *, width: int | None) -> str:
    blocks = ["\n".join(_replica(each, paint, width)) for each in metrics.replicas]
    blocks += ["\n".join(_total(each, paint, width)) for each in metrics.totals]
    warned = sum(reading.grade is Grade.WARN for each in metrics.replicas for reading in each.readings)
    if warned:
        blocks.append(paint.yellow(f"{warned} figure{'s are' if warned > 1 else ' is'} beyond what it should be."))
    elif not any(each.silent for each in metrics.replicas):
        blocks.append(paint.green("All metrics are within limits."))
    return "\n\n".join(blocks)


def _replica(engine: Metered, paint: Paint, width: int | None) -> Iterator[str]:
    yield f"{paint.bold(engine.address)}  {engine.url}".rstrip()
    yield from table(engine.readings, paint, width)
    if any(reading.grade is Grade.COARSE for reading in engine.readings):
        yield from (paint.dim(line) for line in words.advice(_COARSE, width, indent="  "))
    if engine.silent:
        text = f"{engine.silent}." if engine.readings else f"Nothing is reported: {words.plain(engine.silent)}."
        yield paint.yellow(f"  {text}")
    if not engine.observed:
        yield paint.yellow("  It was not observed. `tpudeploy status PROFILE` shows whether it serves and why not.")


def _total(total: Metered, paint: Paint, width: int | None) -> Iterator[str]:
    yield paint.bold(f"{total.address}, all replicas")
    yield from table(total.readings, paint, width)
    if total.silent:
        yield paint.yellow(f"  {total.silent}")


def table(readings: Sequence[Reading], paint: Paint, width: int | None) -> Iterator[str]:
    """Yield a line for each figure, with its remedy below. A remedy of several figures is given once."""
    name_width = max((len(_name(r)) for r in readings), default=0)
    value_width = max((words.width(r.shown) for r in readings if r.grade is not Grade.COARSE), default=0)
    longest = max((name_width + value_width + words.width(r.says) + 6 for r in readings), default=0)
    if width is not None and longest > width:
        value_width = 0
    hints: set[str] = set()
    for reading in readings:
        line = f"  {_name(reading).ljust(name_width)}  {reading.shown.ljust(value_width)}"
        text = f"{line}  {paint.styled(_STYLES[reading.grade], reading.says)}".rstrip()
        yield from words.wrapped(text, width, indent=" " * (name_width + 4))
        if reading.hint and reading.hint not in hints:
            yield from words.advice(reading.hint, width, indent=" " * (name_width + 4))
        hints.add(reading.hint)


def _name(reading: Reading) -> str:
    return _NAMES.get(reading.name, reading.name.replace("_", " "))
