"""Bars: the best of several runs, what a chip holds, how long each part of a start took."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from tpudeploy.domain.comparison import Comparison, Measure
from tpudeploy.domain.details import Details
from tpudeploy.domain.timeline import Timeline
from tpudeploy.views import words
from tpudeploy.views.bench import MARKS, marked_id, number
from tpudeploy.views.report.html import note, tag, text

_GIB = 1024**3


def bests(of: Comparison) -> str:
    """The most requests a second of each run, and what more chips bring."""
    rows = [
        (marked_id(run), Measure.REQUESTS.value_in(cell, run.subject) or 0.0, MARKS[cell.status])
        for run, cell in zip(of.runs, of.bests, strict=True)
        if cell is not None
    ]
    most = max((rate for _, rate, _ in rows), default=0.0)
    if not most:
        return ""
    drawn = "".join(_bar(name, rate / most, f"{number(rate)}{mark} requests/s") for name, rate, mark in rows)
    told = [
        f"{s.chips:g} times the chips, {s.ratio:.2f} times the requests: {s.per_doubling:.2f} a doubling "
        f"({s.fewer} to {s.more}{'; doubted' if s.is_doubted else ''})"
        for s in of.scalings
    ]
    return drawn + "".join(map(note, (*told, *of.notes)))


def memory(of: Iterable[Details]) -> str:
    """Of one chip of each replica: planned above measured."""
    return "".join(_memory(each) for each in of if any(s.planned or s.measured for s in each.memory))


def _memory(of: Details) -> str:
    most = max(max(s.planned or 0, s.measured or 0) for s in of.memory)
    bars = [
        _pair(share.name, share.planned, share.measured, most)
        for share in of.memory
        if share.planned is not None or share.measured is not None
    ]
    legend = note("One chip; planned above, measured below; not told is not drawn.")
    return tag("h3", text(of.address)) + "".join(bars) + legend


def _pair(name: str, planned: int | None, measured: int | None, most: int) -> str:
    drawn = [
        tag("i", class_=kind, style=f"width: {100 * (value or 0) / most:.1f}%")
        for value, kind in ((planned, "is-first"), (measured, "is-second"))
        if value is not None
    ]
    told = " / ".join("not told" if v is None else f"{v / _GIB:.2f} GiB" for v in (planned, measured))
    return tag("div", tag("span", text(name), tag("br"), text(told)), tag("span", *drawn), class_="bar")


def starts(of: Sequence[Timeline]) -> str:
    """When each part of a start ran."""
    return "".join(_start(each) for each in of)


def _start(of: Timeline) -> str:
    phases = [phase for phase in of.reading.phases if phase.seconds is not None]
    end = max((p.began + (p.seconds or 0.0) for p in phases), default=0.0)
    if not end:
        return ""
    critical = {phase.name for phase in of.critical}
    rows = []
    for phase in phases:
        left, width = 100 * phase.began / end, 100 * (phase.seconds or 0.0) / end
        kind = "is-second" if phase.name in critical else "is-first"
        bar = tag("i", class_=kind, style=f"margin-left: {left:.1f}%; width: {min(width, 100 - left):.1f}%")
        said = f"{phase.name}, {words.duration(phase.seconds or 0.0)}"
        rows.append(tag("div", tag("span", text(said)), tag("span", bar), class_="bar"))
    cache = f" Compile cache: {of.cache}." if of.cache else ""
    told = note(f"{words.duration(end)} in all; in the second colour what made it take so long.{cache}")
    return tag("h3", text(of.address)) + "".join(rows) + told


def _bar(name: str, share: float, told: str) -> str:
    bar = tag("i", style=f"width: {100 * share:.1f}%")
    return tag("div", tag("span", text(name)), tag("span", bar, text(told)), class_="bar")
