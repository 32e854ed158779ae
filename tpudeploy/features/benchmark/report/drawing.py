"""The geometry of a page's pictures: heat maps, and curves of throughput against latency."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import floor, log10

from tpudeploy.domain.frozen import frozen
from tpudeploy.features.benchmark.recommendation import OperatingPoint
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.benchmark.view import MARKS, heat_shares, ordered, output_text
from tpudeploy.text.words import count, number

_STRONGEST = 0.55  # of the colour: text on it stays readable in both schemes
_WIDTH, _HEIGHT, _LEFT, _TOP = 360, 260, 46, 12
_RIGHT, _BOTTOM = _WIDTH - 14, _HEIGHT - 40
# The size of a picture and the ends of its axes, for the template.
FRAME = {"width": _WIDTH, "height": _HEIGHT, "left": _LEFT, "right": _RIGHT, "top": _TOP, "bottom": _BOTTOM}
_LABEL_GAP = 13  # pixels between two labels, so that none lies on another
_LABEL_WIDTH = 30
_STEPS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)
_FEWEST = 2  # dots of a curve


@frozen
class HeatCell:
    """`level` is the strength of its colour, "" without a figure. `is_doubted`: its figure is not trusted."""

    text: str
    level: str
    reasons: str
    is_doubted: bool


@frozen
class HeatMap:
    """The cells of one answer length: streams down, prompt lengths across; None where a cell was not measured."""

    output: str
    contexts: tuple[str, ...]
    rows: tuple[tuple[str, tuple[HeatCell | None, ...]], ...]


def heat_maps(run: Run) -> Iterator[HeatMap]:
    """Yield one map for each answer length of the sweep."""
    for output in dict.fromkeys(point.output_tokens for point in run.sweep.points):
        cells = {(c.point.concurrency, c.point.context_tokens): c for c in run.cells if c.point.output_tokens == output}
        shares = heat_shares({place: cell.requests_per_second for place, cell in cells.items()})
        drawn = {place: _heat_cell(cell, shares.get(place)) for place, cell in cells.items()}
        streams, contexts = ordered({place[0] for place in cells}), ordered({place[1] for place in cells})
        yield HeatMap(
            output=output_text(output),
            contexts=tuple(map(count, contexts)),
            rows=tuple((count(n), tuple(drawn.get((n, context)) for context in contexts)) for n in streams),
        )


def _heat_cell(cell: Cell, share: float | None) -> HeatCell:
    rate = number(cell.requests_per_second) if cell.requests_per_second else ""
    return HeatCell(
        text=f"{rate}{MARKS[cell.status]}",
        level="" if share is None else f"{_STRONGEST * share:.2f}",
        reasons="; ".join(cell.reasons),
        is_doubted=not cell.is_trusted,
    )


@frozen
class Dot:
    """A cell in a curve. `is_point`: it is an operating point."""

    x: float
    y: float
    title: str
    is_point: bool


@frozen
class Label:
    x: float
    y: float
    text: str
    anchor: str
    is_soft: bool = False


@frozen
class Curve:
    """The curve of one load, in pixels: requests per second across, seconds to the first token up."""

    dots: tuple[Dot, ...]
    labels: tuple[Label, ...]


def curve(cells: Sequence[Cell], points: Sequence[OperatingPoint]) -> Curve | None:
    """Return the curve, or None for fewer than two cells with both figures."""
    measured = [
        (cell.requests_per_second, cell.ttft_seconds.middle, cell)
        for cell in cells
        if cell.requests_per_second is not None and cell.ttft_seconds is not None
    ]
    if len(measured) < _FEWEST:
        return None
    measured.sort(key=lambda row: row[2].point.concurrency or 0)
    most_rate, most_seconds = _round_up(max(row[0] for row in measured)), _round_up(max(row[1] for row in measured))
    operating_points = {point.cell.point for point in points}
    dots = tuple(
        Dot(
            x=_x(rate / most_rate),
            y=_y(seconds / most_seconds),
            title=f"{count(cell.point.concurrency)} streams: {number(rate)} requests/s",
            is_point=cell.point in operating_points,
        )
        for rate, seconds, cell in measured
    )
    streams = [count(cell.point.concurrency) for _, _, cell in measured]
    return Curve(dots=dots, labels=(*_axis_labels(most_rate, most_seconds), *_stream_labels(dots, streams)))


def _axis_labels(most_rate: float, most_seconds: float) -> Iterator[Label]:
    for share in (0.0, 0.5, 1.0):
        rate = f"{most_rate * share:g}" if share else "0"
        seconds = f"{most_seconds * share:g} s" if share else "0"
        yield Label(x=_x(share), y=_BOTTOM + 14, text=rate, anchor="middle", is_soft=True)
        yield Label(x=_LEFT - 5, y=_y(share) + 4, text=seconds, anchor="end", is_soft=True)
    caption = "requests/s; beside each mark its streams"
    yield Label(x=(_LEFT + _RIGHT) / 2, y=_HEIGHT - 8, text=caption, anchor="middle", is_soft=True)


def _stream_labels(dots: Sequence[Dot], streams: Sequence[str]) -> Iterator[Label]:
    """Yield the streams above each dot, left of it, unless a label or another dot is there already."""
    occupied: list[tuple[float, float]] = []
    for dot, text in reversed(list(zip(dots, streams, strict=True))):
        begin, y = max(dot.x - 4 - _LABEL_WIDTH, _LEFT + 4.0), dot.y - 7
        others = [(other.x, other.y) for other in dots if other is not dot]
        if any(_overlap(begin, y, place) for place in (*occupied, *others)):
            continue
        occupied.append((begin, y))
        yield Label(x=begin + _LABEL_WIDTH, y=y, text=text, anchor="end")


def _overlap(begin: float, y: float, place: tuple[float, float]) -> bool:
    return abs(place[0] - begin) < _LABEL_WIDTH and abs(place[1] - y) <= _LABEL_GAP


def _x(share: float) -> float:
    return _LEFT + share * (_RIGHT - _LEFT)


def _y(share: float) -> float:
    return _BOTTOM - share * (_BOTTOM - _TOP)


def _round_up(value: float) -> float:
    """Return the next round number."""
    if value <= 0:
        return 1.0
    power = 10.0 ** floor(log10(value))
    return next(step * power for step in _STEPS if value <= step * power)
