"""The cells that a campaign has measured, by its runs. A run's id has the campaign, the server and the repeat."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import TypeAlias

from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Cell, Run

ServerTurn: TypeAlias = tuple[str, int]  # a server's key, and which of the repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredCell:
    """A cell, and the run that has it."""

    cell: Cell
    run: Run


Measured: TypeAlias = Mapping[ServerTurn, Mapping[Point, MeasuredCell]]


def run_prefix(campaign: str) -> str:
    """Return how the ids of a campaign's runs begin; those of a campaign with a longer name may begin so too."""
    return f"{campaign}-"


def next_run_id(campaign: str, server: str, repeat: int, runs: Iterable[Run]) -> str:
    """Return the id of the next run of a server. A turn has several if it was interrupted, or lost its slice."""
    numbers = [number for run in runs for own, number in [_parts(campaign, run.id)] if own == (server, repeat)]
    return f"{campaign}-{server}-{repeat}-{max(numbers, default=0) + 1}"


def measured_cells(campaign: str, runs: Sequence[Run]) -> Measured:
    """Return the cells by server and repeat. Of a cell that is in two runs, the first counts."""
    cells: dict[ServerTurn, dict[Point, MeasuredCell]] = {}
    for run in runs:
        turn, _ = _parts(campaign, run.id)
        if turn is not None:
            for cell in run.cells:
                cells.setdefault(turn, {}).setdefault(cell.point, MeasuredCell(cell=cell, run=run))
    return cells


def _parts(campaign: str, id: str) -> tuple[ServerTurn | None, int]:  # noqa: A002 - the record's word
    """Return the server, the repeat and the number in the id of a run, or None for one of another campaign."""
    parts = id.rsplit("-", 3)
    if len(parts) != 4 or parts[0] != campaign or not (parts[2].isdecimal() and parts[3].isdecimal()):  # noqa: PLR2004 - as in `next_run_id`
        return None, 0
    return (parts[1], int(parts[2])), int(parts[3])
