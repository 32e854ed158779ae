"""The article of a campaign, from its record and its runs alone."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.frozen import frozen
from tpudeploy.features.campaign.lanes import cell_key
from tpudeploy.features.campaign.measured import Measured
from tpudeploy.features.campaign.progress import Board, CellPlace, CellProgress
from tpudeploy.features.campaign.record import CampaignRecord


@frozen
class CampaignCell:
    """One measured cell, as programs read it. `run` is the id of the run that has all of it."""

    key: str
    server: str
    streams: int
    context: int
    output: int
    repeat: int
    status: str
    requests_per_second: float | None
    output_tokens_per_second: float | None
    ttft_p50: float | None
    tpot_p50: float | None
    run: str


def current_board(record: CampaignRecord, measured: Measured) -> Board:
    """Return the board of a campaign that is not running."""
    states: dict[CellPlace, CellProgress] = {}
    rates: dict[CellPlace, float | None] = {}
    for server in record.servers:
        for repeat in range(1, server.repeats + 1):
            cells = measured.get((server.key, repeat), {})
            for point in server.points:
                place = (server.key, point, repeat)
                states[place] = CellProgress.FAILED if server.key in record.failures else CellProgress.WAITING
                if point in cells:
                    cell = cells[point].cell
                    has_figures = cell.status != "failed"
                    ended = CellProgress.MEASURED if cell.is_trusted else CellProgress.DOUBTED
                    states[place] = ended if has_figures else CellProgress.FAILED
                    rates[place] = cell.requests_per_second
    return Board(states=states, rates=rates)


def cell_rows(record: CampaignRecord, measured: Measured) -> tuple[CampaignCell, ...]:
    return tuple(_cell_rows(record, measured))


def _cell_rows(record: CampaignRecord, measured: Measured) -> Iterator[CampaignCell]:
    for server in record.servers:
        for repeat in range(1, server.repeats + 1):
            for point, each in sorted(measured.get((server.key, repeat), {}).items(), key=lambda pair: pair[0].rank):
                streams, context, output = point.sizes
                figures = each.cell.figures
                ttft = None if figures is None else figures.ttft_seconds
                tpot = None if figures is None else figures.tpot_seconds
                yield CampaignCell(
                    key=cell_key(server.key, point, repeat),
                    server=server.key,
                    streams=streams,
                    context=context,
                    output=output,
                    repeat=repeat,
                    status=each.cell.status,
                    requests_per_second=each.cell.requests_per_second,
                    output_tokens_per_second=None if figures is None else figures.output_tokens_per_second,
                    ttft_p50=None if ttft is None else ttft.p50,
                    tpot_p50=None if tpot is None else tpot.p50,
                    run=each.run.id,
                )


def article(record: CampaignRecord, measured: Measured) -> str:
    del measured
    return f"# {record.name}\n"
