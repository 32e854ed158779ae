"""Heat maps: streams down, context across, one for each length of answer. What is not believed is framed."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from math import log

from tpudeploy.domain.benchmark import Cell, CellStatus, Run
from tpudeploy.views.bench import LEGEND, MARKS, number
from tpudeploy.views.report.html import note, tag, text

_WELL = {CellStatus.OK, CellStatus.OVERSUBSCRIBED}
_STRONGEST = 0.55  # of the colour: text on it stays readable in both schemes


def heat_maps(run: Run) -> Iterator[str]:
    """HTML, with the marks explained."""
    outputs = dict.fromkeys(point.output_tokens for point in run.sweep.points)
    for output in outputs:
        cells = {(c.point.concurrency, c.point.context_tokens): c for c in run.cells if c.point.output_tokens == output}
        told = f"{output:,} token{'s' if output != 1 else ''} out" if output else "answers of a length that is not told"
        yield tag("h3", text(f"Requests per second, {told}"))
        yield _map(cells)
    marks = {cell.status for cell in run.cells if MARKS[cell.status]}
    if marks:
        yield note("; ".join(f"{MARKS[each]} {LEGEND[each]}" for each in CellStatus if each in marks))


def _map(cells: Mapping[tuple[int, int], Cell]) -> str:
    streams, contexts = (sorted({key[n] for key in cells}) for n in (0, 1))
    rates = [rate for cell in cells.values() if (rate := _rate(cell)) > 0]
    ends = (min(rates), max(rates)) if rates else (1.0, 1.0)
    head = tag(
        "tr", tag("th", "streams \\ context", scope="col"), *(tag("th", f"{c:,}", scope="col") for c in contexts)
    )
    rows = [
        tag("tr", tag("th", f"{n:,}", scope="row"), *(_cell(cells.get((n, context)), ends) for context in contexts))
        for n in streams
    ]
    return tag("div", tag("table", tag("thead", head), tag("tbody", *rows), class_="heat"), class_="wide", tabindex="0")


def _cell(cell: Cell | None, ends: tuple[float, float]) -> str:
    if cell is None:
        return tag("td", "")
    rate, (least, most) = _rate(cell), ends
    share = log(rate / least) / log(most / least) if most > least and rate > 0 else 0.0
    shown = number(rate) if rate else ""
    attributes = {"style": f"--level: {_STRONGEST * share:.2f}"} if rate else {}
    if cell.reasons:
        attributes["title"] = "; ".join(cell.reasons)
    if cell.status not in _WELL:
        attributes["class_"] = "doubt"
    return tag("td", text(f"{shown}{MARKS[cell.status]}"), **attributes)


def _rate(cell: Cell) -> float:
    return (cell.figures.requests_per_second if cell.figures is not None else None) or 0.0
