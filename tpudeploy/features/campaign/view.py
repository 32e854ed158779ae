"""Format a campaign: what it will do, the matrix of its cells while it runs, and its result."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.campaign import lanes
from tpudeploy.features.campaign.lanes import CampaignLane
from tpudeploy.features.campaign.progress import Board, CampaignEvent, CellProgress
from tpudeploy.features.campaign.proposal import CampaignPlan, GridObstacle
from tpudeploy.features.campaign.record import CampaignRecord, RecordedServer
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import EMULATED, count, number

_MOST_OBSTACLES = 12
_MARKS: Mapping[CellProgress, str] = {
    CellProgress.WAITING: "·",
    CellProgress.STARTING: "start",
    CellProgress.MEASURING: "…",
    CellProgress.MEASURED: "",
    CellProgress.DOUBTED: "?",
    CellProgress.FAILED: "failed",
    CellProgress.LEFT: "left",
}
_STYLES: Mapping[CellProgress, str] = {
    CellProgress.MEASURED: "green",
    CellProgress.DOUBTED: "yellow",
    CellProgress.FAILED: "red",
    CellProgress.LEFT: "yellow",
    CellProgress.WAITING: "dim",
}
_RATED = frozenset({CellProgress.MEASURED, CellProgress.DOUBTED})
_DOUBTED = "?  measured, and its figures are not trusted: `tpudeploy bench show RUN` says why"


def proposal(plan: CampaignPlan, paint: Paint, width: int | None) -> str:
    """Return what a campaign will do, cannot do, and may cost."""
    spec = plan.grid.spec
    lines = [paint.bold(words.plain(f"Campaign {spec.name}, {plan.grid.file}")), ""]
    lines.append(f"  {words.plural(len(plan.servers), 'server')}, {words.plural(plan.cells, 'cell')}{_counts(plan)}")
    rows: list[tuple[str, ...]] = [("slice", "chips", "per hour", "servers", "cells", "cold", "likely", "at most")]
    rows += [_lane_row(plan, lane) for lane in plan.busy_lanes]
    if len(rows) > 1:
        lines += ["", *(f"  {line}" for line in words.aligned(rows, numbers=range(1, 8), room=width))]
    lines += ["", *(f"  {line}" for line in _effort(plan))]
    obstacles = tuple(_obstacles(plan.obstacles, width))
    if obstacles:
        lines += ["", paint.yellow("  Cannot run:"), *obstacles]
    return "\n".join(lines)


def _counts(plan: CampaignPlan) -> str:
    parts = [f"{plan.cells_done} measured" if plan.cells_done else ""]
    parts.append(f"{plan.cells_failed} failed before (-retry)" if plan.cells_failed else "")
    texts = ", ".join(filter(None, parts))
    return f": {texts}, {plan.cells_left} to measure" if texts else ""


def _lane_row(plan: CampaignPlan, lane: CampaignLane) -> tuple[str, ...]:
    own = plan.needs[lane.name]
    price = "?" if lane.usd_per_hour is None else f"${lane.usd_per_hour:.2f}"
    servers = len({turn.server.key for turn in lane.turns})
    cells = sum(len(turn.points) for turn in lane.turns)
    return (
        lane.name.removeprefix(f"{plan.grid.spec.name}-"),
        str(lane.chips),
        price,
        str(servers),
        str(cells),
        str(lanes.cold_starts(lane.turns)),
        words.duration(own.likely_seconds) + _usd(own.likely_usd),
        words.duration(own.most_seconds) + _usd(own.most_usd),
    )


def _usd(usd: float | None) -> str:
    return "" if usd is None else f" ${usd:.2f}"


def _effort(plan: CampaignPlan) -> Iterator[str]:
    spec = plan.grid.spec
    if not plan.cells_left:
        yield "Nothing is left to measure."
        return
    chips = _chips(plan)
    yield f"about {words.duration(plan.seconds)} once slices are granted; at most {spec.end.text}"
    if chips:
        yield f"at the same time: {chips}"
    likely = "an unknown price" if plan.likely_usd is None else f"about ${plan.likely_usd:.2f}"
    most = "" if plan.most_usd is None else f", at most ${plan.most_usd:.2f}"
    spent = f", beside ${plan.spent:.2f} spent" if plan.spent else ""
    wall = "no budget holds it" if spec.budget is None else f"the budget is ${spec.budget:.2f}"
    yield f"{likely} at list price{most}{spent}; {wall}"
    if spec.accuracy is not None:
        yield f"each server also answers the questions of {spec.accuracy} once"
    yield "at the end all slices of the campaign are deleted"


def _chips(plan: CampaignPlan) -> str:
    """Return how many chips lanes may have at the same time, "" for any number."""
    if plan.limits.together is not None:
        return f"{plan.limits.together} chips"
    parts = [f"{chips} {generation} chips" for generation, chips in plan.limits.by_generation.items()]
    return f"{', '.join(parts)} (Google's quota)" if parts else ""


def _obstacles(obstacles: Sequence[GridObstacle], width: int | None) -> Iterator[str]:
    by_reason: dict[tuple[str, str], list[str]] = {}
    for each in obstacles:
        at = "" if each.at is None else f" ({each.at.file}:{each.at.line})"
        by_reason.setdefault((each.why, at), []).append(each.label)
    for (why, at), names in tuple(by_reason.items())[:_MOST_OBSTACLES]:
        text = words.plain(f"    {'; '.join(names)}: {why}{at}")
        yield from words.wrapped(text, width, indent="      ")
    if len(by_reason) > _MOST_OBSTACLES:
        yield f"    and {len(by_reason) - _MOST_OBSTACLES} more reasons"


def line(event: CampaignEvent, paint: Paint) -> str:
    """Return the line of a change, where there is no table."""
    where = words.plain(event.label)
    load = ""
    if event.point is not None:
        streams, context, output = event.point.sizes
        load = f", {words.plural(streams, 'stream')}, {context:,} in, {output:,} out"
    repeat = f", repeat {event.repeat}" if event.repeat > 1 else ""
    rate = "" if event.requests_per_second is None else f" {number(event.requests_per_second)} requests/s"
    text = f" ({words.plain(event.text)})" if event.text else ""
    state = paint.styled(_STYLES.get(event.state, "bold"), event.state)
    return f"{where}{load}{repeat}: {state}{rate}{text}  {paint.dim(status(event))}"


def status(event: CampaignEvent) -> str:
    """Return `12 of 24 cells, $3.10 so far, about 40m left`."""
    remainder = "" if not event.seconds_left else f", about {words.duration(event.seconds_left)} left"
    return f"[{event.ended} of {event.total} cells, ${event.spent:.2f} so far{remainder}]"


def matrix(servers: Sequence[RecordedServer], board: Board, paint: Paint, width: int | None = None) -> list[str]:
    """Return a row for each server and a column for each load, with the rate or the state of the cell."""
    points = sorted({point for server in servers for point in server.points}, key=lambda each: each.rank)
    if not points:
        return []
    head = ("", *_headings(points))
    rows = [head, *((server.label, *(_cell(server, point, board) for point in points)) for server in servers)]
    lines = list(words.aligned(rows, numbers=range(1, len(head)), room=width))
    return [paint.bold(lines[0]), *lines[1:]]


def _headings(points: Sequence[Point]) -> list[str]:
    """Return the streams of each column, and its lengths where they differ."""
    is_one_load = len({point.load for point in points}) == 1
    return [
        count(point.concurrency)
        if is_one_load
        else f"{count(point.concurrency)} {count(point.context_tokens)}/{count(point.output_tokens)}"
        for point in points
    ]


def _cell(server: RecordedServer, point: Point, board: Board) -> str:
    places = [(server.key, point, repeat) for repeat in range(1, server.repeats + 1)]
    states = [board.states[place] for place in places if place in board.states]
    if not states:
        return "-"
    rates = [rate for place in places if (rate := board.rates.get(place)) is not None]
    unended = next((state for state in states if state not in _RATED), None)
    if not rates:
        return _MARKS[unended or states[0]] or "."
    mark = "?" if CellProgress.DOUBTED in states else ""
    more = "" if unended is None else f" {_MARKS[unended]}"
    return f"{number(sum(rates) / len(rates))}{mark}{more}"


def result(
    record: CampaignRecord, board: Board, paint: Paint, *, place: str, width: int | None, is_emulated: bool
) -> str:
    """Return the result of a campaign: the matrix, what failed and why, and its cost."""
    blocks = [paint.bold(words.plain(f"Campaign {record.name}"))]
    blocks += [paint.yellow(EMULATED)] if is_emulated else []
    table = matrix(record.servers, board, paint, width)
    if table:
        blocks.append("\n".join([paint.dim("requests/s, the streams of each load across"), *table]))
    if board.count(CellProgress.DOUBTED):
        blocks.append(paint.dim(_DOUBTED))
    names = {server.key: server.label for server in record.servers}
    failed = [f"  {names[key]}: {why}" for key, why in record.failures.items() if key in names]
    if failed:
        lines = [part for text in failed for part in words.wrapped(words.plain(text), width, indent="    ")]
        blocks.append("\n".join([paint.red("Failed:"), *lines]))
    blocks.append("\n".join(_summary(record, board, place)))
    return "\n\n".join(blocks)


def _summary(record: CampaignRecord, board: Board, place: str) -> Iterator[str]:
    total = len(board.states)
    measured = board.count(CellProgress.MEASURED, CellProgress.DOUBTED)
    failed = board.count(CellProgress.FAILED)
    open_cells = total - measured - failed
    cost = "" if record.usd is None else f" ${record.usd:.2f} at list price."
    yield f"{measured} of {words.plural(total, 'cell')} measured, {failed} failed, {open_cells} left.{cost}"
    if open_cells:
        yield f"Continue with: tpudeploy campaign {record.file}"
    yield f"Report: tpudeploy campaign report {record.name} -o report.md"
    yield f"Kept in {place}"
