"""Throughput against latency, a curve a load: where more streams bring more, and where they only wait."""

from __future__ import annotations

from collections.abc import Sequence
from math import floor, log10

from tpudeploy.domain.benchmark import Cell
from tpudeploy.domain.recommendation import OperatingPoint
from tpudeploy.views.bench import number
from tpudeploy.views.report.html import tag, text

_WIDTH, _HEIGHT, _LEFT, _RIGHT, _TOP, _BOTTOM = 360, 260, 46, 14, 12, 40
_LABEL_GAP = 13  # pixels between two labels, so that none lies on another
_LABEL_WIDTH = 30
_STEPS = (1, 1.5, 2, 2.5, 3, 4, 5, 6, 8, 10)


def curve(cells: Sequence[Cell], points: Sequence[OperatingPoint]) -> str:
    """SVG; "" for fewer than two cells that tell both. Across: requests a second; up: seconds to the first token."""
    known = [(x, y, cell) for cell in cells if (x := _rate(cell)) is not None and (y := _first(cell)) is not None]
    if len(known) < 2:  # noqa: PLR2004 - a curve has two ends
        return ""
    known.sort(key=lambda each: each[2].point.concurrency)
    across, up = _top(max(x for x, _, _ in known)), _top(max(y for _, y, _ in known))
    places = [(_x(x / across), _y(y / up), cell) for x, y, cell in known]
    line = " ".join(f"{x:.1f},{y:.1f}" for x, y, _ in places)
    aims = {point.cell.point: [p.aim for p in points if p.cell.point == point.cell.point] for point in points}
    marks = [_mark(x, y, cell, is_point=cell.point in aims) for x, y, cell in places]
    return tag(
        "svg",
        tag("title", "Requests per second against the time to the first token"),
        *_axes(across, up),
        f'<polyline class="curve" points="{line}"/>',
        *marks,
        *_labels(places),
        viewBox=f"0 0 {_WIDTH} {_HEIGHT}",
        role="img",
    )


def _labels(places: Sequence[tuple[float, float, Cell]]) -> list[str]:
    """Streams above each mark, where the curve has not been yet; left out where a label or a mark stands already."""
    taken: list[tuple[float, float]] = []
    labels = []
    for x, y, cell in reversed(places):
        begins = max(x - 4 - _LABEL_WIDTH, _LEFT + 4.0)
        marks = ((mark_x, mark_y) for mark_x, mark_y, other in places if other is not cell)
        if all(_are_apart((begins, y - 7), at) for at in (*taken, *marks)):
            taken.append((begins, y - 7))
            labels.append(_text(begins + _LABEL_WIDTH, y - 7, f"{cell.point.concurrency:,}", "end"))
    return labels


def _are_apart(begins: tuple[float, float], other: tuple[float, float]) -> bool:
    return not -_LABEL_WIDTH < other[0] - begins[0] < _LABEL_WIDTH or abs(begins[1] - other[1]) > _LABEL_GAP


def _mark(x: float, y: float, cell: Cell, *, is_point: bool) -> str:
    told = f"{cell.point.concurrency:,} streams: {number(_rate(cell))} requests/s"
    return tag(
        "circle",
        tag("title", text(told)),
        cx=f"{x:.1f}",
        cy=f"{y:.1f}",
        r=5 if is_point else 3,
        class_="point" if is_point else "dot",
    )


def _axes(across: float, up: float) -> list[str]:
    right, bottom = _WIDTH - _RIGHT, _HEIGHT - _BOTTOM
    lines = [
        f'<line class="axis" x1="{_LEFT}" y1="{bottom}" x2="{right}" y2="{bottom}"/>',
        f'<line class="axis" x1="{_LEFT}" y1="{_TOP}" x2="{_LEFT}" y2="{bottom}"/>',
    ]
    for share in (0.0, 0.5, 1.0):
        lines.append(_tick(_x(share), bottom + 14, f"{across * share:g}" if share else "0", "middle"))
        lines.append(_tick(_LEFT - 5, _y(share) + 4, f"{up * share:g} s" if share else "0", "end"))
    lines.append(_tick((_LEFT + right) / 2, _HEIGHT - 8, "requests/s; beside each mark its streams", "middle"))
    return lines


def _tick(x: float, y: float, words: str, anchor: str) -> str:
    return _text(x, y, words, anchor, class_="soft")


def _text(x: float, y: float, words: str, anchor: str, **more: object) -> str:
    return tag("text", text(words), x=f"{x:.1f}", y=f"{y:.1f}", text_anchor=anchor, **more)


def _x(share: float) -> float:
    return _LEFT + share * (_WIDTH - _LEFT - _RIGHT)


def _y(share: float) -> float:
    return _HEIGHT - _BOTTOM - share * (_HEIGHT - _TOP - _BOTTOM)


def _top(of: float) -> float:
    """The next round number."""
    if of <= 0:
        return 1.0
    power = 10.0 ** floor(log10(of))
    return next(step * power for step in _STEPS if of <= step * power)


def _rate(cell: Cell) -> float | None:
    return None if cell.figures is None else cell.figures.requests_per_second


def _first(cell: Cell) -> float | None:
    of = None if cell.figures is None else cell.figures.ttft_seconds
    return None if of is None else of.mean if of.p50 is None else of.p50
