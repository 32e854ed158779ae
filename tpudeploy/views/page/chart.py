"""Charts of a page, as data: views/page/charts.js draws them with uPlot."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class ChartScale(StrEnum):
    LINEAR = "linear"
    LOG = "log"


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartAxis:
    """An axis. `label` has the unit, as in `median, ms`."""

    label: str
    scale: ChartScale = ChartScale.LINEAR
    unit: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChartLine:
    """One line. All columns have a row for each value of the x axis; None where the line has no mark.

    `style` counts from 0 and decides color, dash and shape. `titles` are shown over a mark. `doubts` and `points` mark
    doubted figures and operating points by their shape. `labels` stand beside the marks. `order` is the order in which
    the marks are joined, that of the columns by default.
    """

    label: str
    style: int
    values: tuple[float | None, ...]
    titles: tuple[str, ...]
    doubts: tuple[bool, ...] = ()
    points: tuple[bool, ...] = ()
    labels: tuple[str, ...] = ()
    order: tuple[int, ...] = ()
    has_marks: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Chart:
    """A chart. `x_values` ascend."""

    title: str
    x: ChartAxis
    y: ChartAxis
    x_values: tuple[float, ...]
    lines: tuple[ChartLine, ...]
