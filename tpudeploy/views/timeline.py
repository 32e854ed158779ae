"""Format how a machine started to serve: one bar per phase on one scale, with the critical path in solid bars."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.timeline import Timeline
from tpudeploy.views import words
from tpudeploy.views.logs import bars, phase_name
from tpudeploy.views.paint import Paint


def timeline(timeline: Timeline, paint: Paint) -> str:
    return "\n".join(_lines(timeline, paint))


def _lines(timeline: Timeline, paint: Paint) -> Iterator[str]:
    reading = timeline.reading
    duration = words.duration(reading.seconds)
    end = f"{duration} until it served" if reading.is_serving else f"{duration} so far"
    yield f"{paint.bold(timeline.address)}  {end}"
    yield from bars(reading, paint, timeline.critical)
    if timeline.critical:
        yield f"  critical path  {' → '.join(phase_name(reading, phase) for phase in timeline.critical)}"
    if timeline.cache:
        yield f"  compile cache  {words.plain(timeline.cache)}"
    if not timeline.is_whole:
        yield paint.yellow("  Its log cannot be read, so the time in the container is shown as one phase.")
