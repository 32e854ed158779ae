"""Figures of running engines as a small table: what it is, how much, what that means; what to do below."""

from __future__ import annotations

from collections.abc import Iterator, Sequence

from tpudeploy.domain.metrics import Grade, Metered, Metrics, Reading
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

# Where a figure has a shorter name among people.
_NAMES = {"kv_cache_used": "KV cache used", "ttft": "TTFT", "itl": "ITL"}
_COARSE = "TTFT and ITL are buckets since the server started, no figures to compare by: measure those from a client."


def metrics(of: Metrics, paint: Paint, *, width: int | None) -> str:
    blocks = ["\n".join(_replica(each, paint, width)) for each in of.replicas]
    warned = sum(reading.grade is Grade.WARN for each in of.replicas for reading in each.readings)
    silent = any(each.silent for each in of.replicas)
    if warned:
        blocks.append(paint.yellow(f"{warned} figure{'s are' if warned > 1 else ' is'} beyond what it should be."))
    elif not silent:
        blocks.append(paint.green("Nothing is beyond what it should be."))
    return "\n\n".join(blocks)


def _replica(of: Metered, paint: Paint, width: int | None) -> Iterator[str]:
    yield f"{paint.bold(of.address)}  {of.url}".rstrip()
    yield from table(of.readings, paint, width)
    if any(reading.grade is Grade.COARSE for reading in of.readings):
        yield from (paint.dim(line) for line in words.advice(_COARSE, width, indent="  "))
    if of.silent:
        yield paint.yellow(f"  Nothing is told: {words.plain(of.silent)}." if not of.readings else f"  {of.silent}.")


def table(readings: Sequence[Reading], paint: Paint, width: int | None) -> Iterator[str]:
    """Yield a line for each figure, and below it what to do, once where several figures say the same."""
    name = max((len(_name(r)) for r in readings), default=0)
    shown = max((words.width(r.shown) for r in readings if r.grade is not Grade.COARSE), default=0)
    told: set[str] = set()
    for reading in readings:
        line = f"  {_name(reading).ljust(name)}  {reading.shown.ljust(shown)}"
        yield f"{line}  {_coloured(reading, paint)}".rstrip()
        if reading.hint and reading.hint not in told:
            yield from words.advice(reading.hint, width, indent=" " * (name + 4))
        told.add(reading.hint)


def _name(of: Reading) -> str:
    return _NAMES.get(of.name, of.name.replace("_", " "))


def _coloured(of: Reading, paint: Paint) -> str:
    match of.grade:
        case Grade.OK:
            return paint.green(of.says)
        case Grade.WARN:
            return paint.yellow(of.says)
        case Grade.PLAIN | Grade.COARSE:
            return paint.dim(of.says)
