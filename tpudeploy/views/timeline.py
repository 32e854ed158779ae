"""How a machine came to serve: a bar a part on one scale, those that nobody could wait less for in full."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.timeline import Timeline
from tpudeploy.views import words
from tpudeploy.views.logs import bars, named
from tpudeploy.views.paint import Paint


def timeline(of: Timeline, paint: Paint) -> str:
    return "\n".join(_lines(of, paint))


def _lines(of: Timeline, paint: Paint) -> Iterator[str]:
    reading = of.reading
    took = words.duration(reading.seconds)
    end = f"{took} until it served" if reading.is_serving else f"{took} so far"
    yield f"{paint.bold(of.address)}  {end}"
    yield from bars(reading, paint, of.critical)
    if of.critical:
        yield f"  longest way  {' → '.join(named(reading, phase) for phase in of.critical)}"
    if of.cache:
        yield f"  compile cache  {words.plain(of.cache)}"
    if not of.is_whole:
        yield paint.yellow("  Its log cannot be read, so what the server did in its container is one part.")
