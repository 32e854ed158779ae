"""The article of a campaign, from its record and its runs alone."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime

from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.report.article import ArticleSection, ArticleServer, ArticleTable, sections
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.campaign.lanes import cell_key
from tpudeploy.features.campaign.measured import Measured
from tpudeploy.features.campaign.progress import Board, CellPlace, CellProgress
from tpudeploy.features.campaign.record import CampaignRecord


@dataclass(frozen=True, slots=True, kw_only=True)
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


def article_servers(record: CampaignRecord, measured: Measured) -> tuple[ArticleServer, ...]:
    """Return the servers of a campaign with their cells, each as often as it was measured."""
    return tuple(_servers(record, measured))


def _servers(record: CampaignRecord, measured: Measured) -> Iterator[ArticleServer]:
    for server in record.servers:
        cells: dict[Point, tuple[Cell, ...]] = {}
        runs: dict[str, Run] = {}
        for repeat in range(1, server.repeats + 1):
            for point, each in measured.get((server.key, repeat), {}).items():
                runs[each.run.id] = each.run
                if each.cell.figures is not None:
                    cells[point] = (*cells.get(point, ()), each.cell)
        if runs:
            yield ArticleServer(label=server.label, runs=tuple(runs.values()), cells=cells)


def article_sections(
    record: CampaignRecord, measured: Measured, others: Sequence[ArticleServer] = ()
) -> tuple[ArticleSection, ...]:
    """Return the article: the figures of the servers, their answers, what has no figures, and how to repeat it.

    `others` are servers of imported tables, which stand beside the same model and slice.
    """
    servers = article_servers(record, measured)
    *figures, methods = sections(servers, _notes(record), others)
    more = (_answers(record), _without_figures(record))
    repeat = f"`tpudeploy campaign {record.file}` with the profile `{record.base}` measures it again:"
    ending = replace(methods, parts=(*methods.parts, repeat), code=tuple(filter(None, (record.grid, record.profile))))
    return (*figures, *(section for section in more if section is not None), ending)


def _notes(record: CampaignRecord) -> Iterator[str]:
    day = datetime.fromtimestamp(record.began_at, UTC).strftime("%-d %B %Y")
    cost = "" if record.usd is None else f" It cost ${record.usd:.2f} at list price, hunts and starts included."
    yield f"Campaign {record.name}, begun on {day}, with tpudeploy {record.version}.{cost}"


def _answers(record: CampaignRecord) -> ArticleSection | None:
    rows = [
        (server.label, f"{answers.right / answers.count:.1%}", str(answers.count), answers.source)
        for server in record.servers
        if (answers := record.answers.get(server.key)) is not None and answers.count
    ]
    if not rows:
        return None
    table = ArticleTable(head=("server", "right", "questions", "source"), rows=tuple(rows))
    return ArticleSection(title="Accuracy", parts=(table,))


def _without_figures(record: CampaignRecord) -> ArticleSection | None:
    """Return the servers that failed, and the combinations that sizing has refused, with the reasons."""
    labels = {server.key: server.label for server in record.servers}
    rows = [(labels[key], "failed", why) for key, why in record.failures.items() if key in labels]
    rows += [(label, "cannot run", why) for label, why in record.obstacles.items()]
    if not rows:
        return None
    table = ArticleTable(head=("server", "why", "reason"), rows=tuple(rows), figures=3)
    return ArticleSection(title="Without figures", parts=(table,))
