"""Format the state of each place that a replica may run in: as a summary, or as a table as wide as the terminal."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import accumulate
from typing import TypeAlias

from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.events import Outlook
from tpudeploy.domain.request_table import PlaceState, PlaceStatus
from tpudeploy.domain.slices import BootPhase
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import aligned
from tpudeploy.views.status import activity, time_left

Outlooks: TypeAlias = Mapping[str, Outlook]  # by the replica's address

_RANK = {state: rank for rank, state in enumerate(PlaceState)}
_PENDING = {PlaceState.ASKED, PlaceState.QUEUED}
_WAITING = _PENDING | {PlaceState.PROVISIONING}
_FREE = "not asked"
# The text before the remaining time, for states that end by themselves.
_ENDS = {
    PlaceState.UP: "ends in",
    PlaceState.QUEUED: "lapses in",
    PlaceState.ASKED: "lapses in",
    PlaceState.REFUSED: "again in",
}
# The columns of the table; a place is a zone, a provisioning model and an API. `_DROP_ORDER` are left out of a window
# that is too narrow, the first one first.
_TITLES = ("replica", "place", "", "", "price", "state", "for", "", "slice")
_SLICE = 8
_DROP_ORDER = (7, 6, 3, 2)
_LEAST_MESSAGE = 24  # cells that are left for the last message beside the name of the slice
_SHORT_MESSAGE = 12  # cells: less of a message than this is not shown
_LOW = 8  # lines: a table that is lower has no titles
_BAR = 8  # cells
_DONE, _TO_DO = "█", "░"


def summary(places: Iterable[PlaceStatus]) -> str:
    """Return `1 provisioning, 2 queued, 9 refused (7 stockout, 2 quota), 3 not asked`."""
    rows = list(places)
    counts = Counter(p.state for p in rows)
    parts = (f"{counts[s]} {_word(s)}{_kinds(rows) if s is PlaceState.REFUSED else ''}" for s in _RANK if counts[s])
    return ", ".join(parts) or "no place remains"


def waiting(why: str, places: Iterable[PlaceStatus]) -> str:
    """Return what the run waits for: pending requests, else `why`; and the refusals, until one is provisioning."""
    rows = list(places)
    counts = Counter(p.state for p in rows)
    refused = counts[PlaceState.REFUSED]
    pending = [p for p in rows if p.state in _WAITING]
    if refused and refused == len(rows):
        return f"refused everywhere{_kinds(rows)}"
    if pending and not counts[PlaceState.UP]:
        why = pending[0].why or pending[0].state if len(pending) == 1 else summary(pending)
    if not refused or counts[PlaceState.PROVISIONING]:
        return why
    return f"{why}; refused in {words.plural(refused, 'place')}{_kinds(rows)}"


@dataclass(frozen=True, slots=True, kw_only=True)
class _PlaceRow:
    """One place of one replica. `at` is the time of its observation."""

    label: str
    place: PlaceStatus
    at: float


def heading(addresses: Iterable[str], *, elapsed: float, cost: str) -> str:
    """Return the first line of the table: `gemma: 8m 2s elapsed, $0.19 so far`."""
    names = {address.partition("[")[0] for address in addresses}
    what = next(iter(names)) if len(names) == 1 else words.plural(len(names), "deployment")
    return f"{what}: {words.duration(elapsed)} elapsed, {cost}"


def table(outlooks: Outlooks, *, heading: str, now: float, width: int, max_lines: int, paint: Paint) -> tuple[str, ...]:
    """Return the heading, the titles, the most advanced places, and one line for all that are not asked.

    If there are more than `max_lines` lines, the last place that has a line summarises the others.
    """
    rows, not_asked = _rows(outlooks)
    if not rows and not not_asked:
        return ()
    foot = [paint.dim(words.cut(f"  {_describe_not_asked(not_asked, now)}", width))] if not_asked else []
    titles, entries = _entries(rows, now, width, paint)
    if max_lines < _LOW:
        head = [paint.bold(words.cut(f"  {heading}", width))]
    else:
        # A window may be narrower than any line that `wrapped` makes.
        heading_lines = [words.cut(line, width) for line in words.wrapped(f"  {heading}", width, indent="    ")]
        head = [*map(paint.bold, heading_lines), *(titles if rows else ())]
    room = max_lines - len(head) - len(foot)
    if sum(map(len, entries)) > room:
        count = sum(total < room for total in accumulate(map(len, entries)))
        rest = _describe_hidden([row.place for row in rows[count:]])
        entries = [*entries[:count], [paint.dim(words.cut(f"  … and {rest}", width))]]
    return (*head, *(line for lines in entries for line in lines), *foot)


def _rows(outlooks: Outlooks) -> tuple[list[_PlaceRow], list[PlaceStatus]]:
    """Return the rows of the table, the most advanced first, and the places that are not asked."""
    labels = _labels(outlooks)
    every = [
        _PlaceRow(label=labels[a], place=p, at=outlook.at) for a, outlook in outlooks.items() for p in outlook.places
    ]
    rows = sorted((row for row in every if row.place.state is not PlaceState.FREE), key=_rank)
    return rows, [row.place for row in every if row.place.state is PlaceState.FREE]


def _labels(outlooks: Outlooks) -> Mapping[str, str]:
    """Return the text for each replica: "" for the only one, its index where the heading names its deployment."""
    names = {address: address.partition("[")[0] for address in outlooks}
    if len(outlooks) == 1:
        return dict.fromkeys(outlooks, "")
    is_one = len(set(names.values())) == 1
    return {address: address.removeprefix(name) if is_one else address for address, name in names.items()}


def _entries(rows: Sequence[_PlaceRow], now: float, width: int, paint: Paint) -> tuple[list[str], list[list[str]]]:
    """Return the lines of the titles and of each row. A bar that has no room in its row is below it.

    A message for which little room is left is omitted: the lines above the table had it.
    """
    cells = [_cells(row, now) for row in rows]
    bars = [_bar(row, now) for row in rows]
    columns, is_beside = _columns_that_fit(cells, width, max(map(words.width, bars), default=0))
    room = width - 2 - _width(cells, columns)
    texts = []
    for row, row_cells, bar in zip(rows, cells, bars, strict=True):
        message = " ".join(words.plain(row.place.why).split())
        if bar:
            message = bar if is_beside else ""
        elif words.width(message) > room and room < _SHORT_MESSAGE:
            message = ""
        texts.append((*(row_cells[n] for n in columns), message))
    titles, *lines = aligned([(*(_TITLES[n] for n in columns), ""), *texts])
    entries = []
    for row, line, bar in zip(rows, lines, bars, strict=True):
        below = [] if is_beside or not bar else [f"    {bar}"]
        style = _style(row.place)
        entries.append([paint.styled(style, words.cut(text, width)) for text in (f"  {line}", *below)])
    return [paint.dim(words.cut(f"  {titles}", width))], entries


def _columns_that_fit(cells: Sequence[Sequence[str]], width: int, bar: int) -> tuple[list[int], bool]:
    """Return the columns that have room, and whether a bar of that width has room beside them."""
    columns = [n for n, column in enumerate(zip(*cells, strict=True)) if any(column)]

    def has_room(message: int) -> bool:
        return _width(cells, columns) + 2 + message <= width

    if not has_room(max(bar, _LEAST_MESSAGE)) and _SLICE in columns:
        columns.remove(_SLICE)
    is_beside = has_room(bar)
    for column in _DROP_ORDER:
        if not has_room(-2) and column in columns:
            columns.remove(column)
    return columns, is_beside


def _width(cells: Sequence[Sequence[str]], columns: Sequence[int]) -> int:
    """Return the width of these columns, each with its title and the two spaces before it."""
    return sum(2 + max(words.width(text) for text in (_TITLES[n], *(row[n] for row in cells))) for n in columns)


def _bar(row: _PlaceRow, now: float) -> str:
    """Return `compiling 66 of 199 ██████░░ about 4 min left` for a place that boots, else ""."""
    stage, granted_at = row.place.stage, row.place.billed_since
    if stage is None or row.place.serving or stage.name in {BootPhase.SERVING, BootPhase.FAILED}:
        return ""
    text = activity(stage, words.plain(row.place.why)) or stage.name
    if stage.left_seconds is None:
        share = stage.done / stage.of if stage.done is not None and stage.of else None
        remaining = "time left unknown"
    else:
        # The estimate is of the observation. It is counted down until the next one.
        seconds = stage.left_seconds - (now - row.at)
        elapsed = 0.0 if granted_at is None else now - granted_at
        share = elapsed / (elapsed + seconds) if seconds > 0 else 1.0
        remaining = time_left(seconds, is_least=stage.is_least) if seconds > 0 else "longer than estimated"
    if share is None:
        return f"{text} {remaining}"
    cells = min(int(share * _BAR), _BAR - 1)  # it is not full before the server serves
    return f"{text} {_DONE * cells}{_TO_DO * (_BAR - cells)} {remaining}"


def _style(place: PlaceStatus) -> str:
    """Return the style of a row. Only a server that answers is green."""
    if place.state is PlaceState.UP and _has_failed(place):
        return "red"
    if place.state is PlaceState.UP and place.serving:
        return "green"
    if place.state in {PlaceState.UP, PlaceState.PROVISIONING}:
        return "yellow"
    return "" if place.state in _PENDING else "dim"


def _has_failed(place: PlaceStatus) -> bool:
    return place.stage is not None and place.stage.name == BootPhase.FAILED and not place.serving


def _describe_not_asked(places: Sequence[PlaceStatus], now: float) -> str:
    """Return `not asked: 4 places, $1.40/h to $2.70/h, the next in 12m 3s`."""
    parts = [words.plural(len(places), "place")]
    prices = sorted(place.usd_per_hour for place in places if place.usd_per_hour is not None)
    if prices:
        least, most = words.hourly(prices[0]), words.hourly(prices[-1])
        parts.append(least if least == most else f"{least} to {most}")
    next_at = min((place.until for place in places if place.until is not None), default=0.0)
    if next_at > now:
        parts.append(f"the next in {words.duration(next_at - now)}")
    return f"not asked: {', '.join(parts)}"


def _describe_hidden(places: Sequence[PlaceStatus]) -> str:
    if len({place.state for place in places}) == 1:
        return summary(places)
    return f"{len(places)} more: {summary(places)}"


def _rank(row: _PlaceRow) -> tuple[int, float, str, str, str, str]:
    """Return the sort key: most advanced first, then longest in that state; for refusals, the one that ends first."""
    place = row.place
    since = place.until if place.state is PlaceState.REFUSED else place.since
    return (_RANK[place.state], since or 0.0, row.label, place.zone, place.provisioning, place.backend)


def _cells(row: _PlaceRow, now: float) -> tuple[str, ...]:
    """Return the cells under `_TITLES`."""
    place = row.place
    since = "" if place.since is None else words.duration(max(0.0, now - place.since))
    ends = ""
    if place.state in _ENDS and place.until is not None and place.until > now:
        ends = f"{_ENDS[place.state]} {words.duration(place.until - now)}"
    backend = "" if place.backend == DEFAULT_BACKEND else place.backend
    price = words.hourly(place.usd_per_hour)
    return (row.label, place.zone, place.provisioning, backend, price, _place_word(place), since, ends, place.name)


def _place_word(place: PlaceStatus) -> str:
    if place.state is not PlaceState.UP:
        return _word(place.state)
    if _has_failed(place):
        return "failed"
    if place.serving:
        return "serving"
    return "up" if place.stage is None or place.stage.name == BootPhase.SERVING else "starting"


def _word(state: PlaceState) -> str:
    return _FREE if state is PlaceState.FREE else state.value


def _kinds(places: Iterable[PlaceStatus]) -> str:
    """Return ` (stockout)`, with counts if there are several kinds."""
    kinds = Counter(p.kind for p in places if p.state is PlaceState.REFUSED)
    if len(kinds) == 1:
        return f" ({next(iter(kinds))})"
    return f" ({', '.join(f'{n} {kind}' for kind, n in kinds.most_common())})"
