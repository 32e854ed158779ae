"""Format where a slice type is available: the pairs to ask, why the others are closed, and each gate's source."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.availability import (
    FactSource,
    Fill,
    Gate,
    GateSource,
    Pair,
    Quota,
    SourcedAnswer,
    Standing,
    ZoneTable,
)
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import UNLIMITED
from tpudeploy.domain.history import Ending
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import aligned

_MINUTE, _DAY = 60, 86400
_EMULATED = "On the emulator: hardware, quota and prices are simulated."
_NARROWEST = 40
_STATIC_SOURCES = {Gate.HARDWARE: "the catalogue's zones", Gate.PRICE: "the catalogue's prices"}


def zones(tables: Iterable[ZoneTable], paint: Paint, *, width: int | None, emulated: bool) -> str:
    """Return the tables as text. `width` is the terminal's, in columns; with None, no column is left out."""
    blocks = ["\n".join(_table(table, paint, width)) for table in tables]
    emulator_note = words.wrapped(_EMULATED, width, indent="") if emulated else []
    return "\n\n".join([*blocks, *(["\n".join(map(paint.yellow, emulator_note))] if emulator_note else [])])


def _table(table: ZoneTable, paint: Paint, width: int | None) -> Iterator[str]:
    open_pairs = [pair for pair in table.pairs if pair.standing is not Standing.CLOSED]
    first, *more = words.wrapped(_head(table, len(open_pairs)), width, indent="")
    yield first.replace(table.type, paint.bold(table.type), 1)
    yield from more
    if open_pairs:
        yield ""
        yield from _rows(open_pairs, paint, width)
    closed = list(_closed(table))
    if closed:
        yield "\nClosed:"
        for line in closed:
            yield from words.wrapped(line, width, indent="    ")
    yield ""
    for gate in table.readings:
        text = f"{gate.ljust(8)}  {_gate_text(gate, table)}"
        yield from (paint.dim(line) for line in words.wrapped(text, width, indent=" " * 10))
    every = [*table.readings.values(), *(each for own in table.readings_by_api.values() for each in own.values())]
    for because, hint in dict.fromkeys(_unknowns(every)):
        yield from (paint.yellow(line) for line in words.wrapped(because, width, indent="  "))
        yield from words.advice(hint, width, indent="  ")


def _head(table: ZoneTable, count: int) -> str:
    who = f"{table.profile}: " if table.profile else ""
    where = f"in {table.project}" if table.project else "in no project"
    chips = words.plural(table.chips, "chip")
    pairs = f"{count} of {len(table.pairs)} pairs of zone and provisioning model are available"
    if not table.pairs:
        pairs = "no known zone offers it"
    return f"{who}{table.type} ({chips}) {where}: {pairs}."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    title: str
    cells: Sequence[str]
    is_number: bool = False


def _rows(pairs: Sequence[Pair], paint: Paint, width: int | None) -> Iterator[str]:
    columns = list(_columns(pairs))
    rows = zip(*((column.title, *column.cells) for column in columns), strict=True)
    numbers = [index for index, column in enumerate(columns) if column.is_number]
    room = None if width is None else max(width, _NARROWEST) - 2
    title, *lines = aligned(list(rows), numbers=numbers, room=room, optional=range(len(columns) - 1, 1, -1))
    yield paint.bold(f"  {title}")
    for pair, line in zip(pairs, lines, strict=True):
        yield _coloured(pair, f"  {line}", paint)


def _coloured(pair: Pair, text: str, paint: Paint) -> str:
    if pair.standing is Standing.DOUBTFUL:
        return paint.yellow(text)
    return paint.green(text) if pair.luck.last is Ending.GRANTED else text


def _columns(pairs: Sequence[Pair]) -> Iterator[_Column]:
    """Yield the columns, most important first: a narrow terminal omits the last ones."""
    yield _Column(title="zone", cells=[p.zone for p in pairs])
    yield _Column(title="model", cells=[_model(p) for p in pairs])
    if any(pair.backend is not DEFAULT_BACKEND for pair in pairs):
        yield _Column(title="backend", cells=[p.backend for p in pairs])
    yield _Column(title="$/chip-h", cells=[_price(p) for p in pairs], is_number=True)
    yield _Column(title="quota left", cells=[_quota(p.quota) for p in pairs])
    if any(p.luck.last is not None for p in pairs):
        yield _Column(title="last", cells=[_last(p) for p in pairs])
        yield _Column(title="granted", cells=[_success_count(p) for p in pairs])
        yield _Column(title="median wait", cells=[_wait(p) for p in pairs], is_number=True)


def _model(pair: Pair) -> str:
    """Return the provisioning model, with `?` if no record shows that the zone accepts flex-start."""
    doubt = "?" if pair.provisioning is Provisioning.FLEX_START and pair.model.yes is None else ""
    return f"{pair.provisioning}{doubt}"


def _price(pair: Pair) -> str:
    usd = pair.price.usd_per_chip_hour
    mark = "~" if pair.price.source is FactSource.TABLE else ""
    return "?" if usd is None else f"{mark}{usd:.2f}"


def _quota(quota: Quota) -> str:
    """Return the tighter of the zone's and the region's quota: `8 of 16` is what remains and the limit."""
    places = ((quota.zone_limit, quota.zone_used), (quota.region_limit, quota.region_used))
    limits = [(limit, used) for limit, used in places if limit is not None]
    bounded = [(limit, used) for limit, used in limits if limit != UNLIMITED]
    if not limits:
        return "?"
    doubt = "" if len(limits) == len(places) else "?"
    if not bounded:
        return f"no limit{doubt}"
    limit, used = min(bounded, key=lambda row: row[0] - (row[1] or 0))
    remaining = "" if not used or quota.fill is Fill.NONE else f"{max(limit - used, 0)} of "
    return f"{remaining}{limit}{doubt}"


def _last(pair: Pair) -> str:
    if pair.luck.last is None or pair.luck.last_age is None:
        return ""
    outcome = pair.luck.last_kind if pair.luck.last is Ending.REFUSED and pair.luck.last_kind else pair.luck.last
    return f"{outcome} {words.ago(pair.luck.last_age)}"


def _success_count(pair: Pair) -> str:
    """Return the number of grants among the requests that were not released by us: `2 of 5`."""
    requests = sum(count for ending, count in pair.luck.counts.items() if ending is not Ending.RELEASED)
    return f"{pair.luck.counts.get(Ending.GRANTED, 0)} of {requests}" if requests else ""


def _wait(pair: Pair) -> str:
    return "" if pair.luck.median_wait is None else words.duration(pair.luck.median_wait)


def _closed(table: ZoneTable) -> Iterator[str]:
    """Yield the closed zones, grouped by reason."""
    closed = sorted((_closing_reason(pair, table), pair.zone) for pair in table.pairs if pair.closed_by is not None)
    for why, pairs in groupby(closed, key=lambda row: row[0]):
        places = list(dict.fromkeys(zone for _, zone in pairs))
        yield f"  {why}: {', '.join(places)}"


def _closing_reason(pair: Pair, table: ZoneTable) -> str:
    match pair.closed_by:
        case Gate.HARDWARE:
            is_one_api = len({p.backend for p in table.pairs}) == 1
            return f"no {table.type}{'' if is_one_api else f' at {BACKENDS[pair.backend].api}'}{_source(pair.hardware)}"
        case Gate.MODEL:
            return f"no {pair.provisioning}{_source(pair.model)}"
        case _:
            return f"{pair.provisioning} is dearer than the profile allows"


def _source(word: SourcedAnswer) -> str:
    """Return the source of a fact that is not live: `, refused 2026-11-20 (Google's text)`."""
    if word.source is FactSource.LIVE:
        return ""
    return f", refused {word.as_of}" + (f" ({words.plain(word.because)})" if word.because else "")


def _gate_text(gate: Gate, table: ZoneTable) -> str:
    reading = table.readings[gate]
    match gate, reading.source:
        case Gate.HARDWARE | Gate.QUOTA, _:
            return _text_by_api(gate, table)
        case Gate.MODEL, _:
            published = f"published runs up to {reading.as_of}, and " if reading.as_of else ""
            return f"{published}the results of earlier requests; `?`: no record"
        case Gate.LUCK, FactSource.LOG:
            count = sum(sum(pair.luck.counts.values()) for pair in table.pairs)
            days = f"the last {table.window / _DAY:.0f} days"
            counted = f"{count} requests of {days}, as they ended; a repeated refusal counts once in 10 min"
            return counted if count else f"no request in {days}"
        case Gate.PRICE, _:
            return f"{_reading_text(gate, reading, 'the billing catalogue')}{_list_price_note(table)}"
    return _reading_text(gate, reading)


def _text_by_api(gate: Gate, table: ZoneTable) -> str:
    """Return the sources of a gate that each API answers for itself."""
    texts: dict[Backend, str] = {}
    for backend, own in table.readings_by_api.items():
        if gate is Gate.QUOTA:
            texts[backend] = _quota_text(own[gate], backend)
        else:
            texts[backend] = _reading_text(gate, own[gate], BACKENDS[backend].types)
    *_, only = texts.values()
    text = (
        only if len(texts) == 1 else "; ".join(f"{text} ({BACKENDS[backend].api})" for backend, text in texts.items())
    )
    is_known = gate is Gate.QUOTA and any(own[gate].source is FactSource.LIVE for own in table.readings_by_api.values())
    return f"{text}; it only warns, capacity is the real gate" if is_known else text


def _quota_text(reading: GateSource, backend: Backend) -> str:
    if reading.source is not FactSource.LIVE:
        return "not known"
    used = (
        f"chips left of {BACKENDS[backend].quota_limit}"
        if reading.unknown is None
        else "the limit: current usage is unknown"
    )
    return f"read now, {used}"


def _reading_text(gate: Gate, reading: GateSource, live_source: str = "") -> str:
    """Return what was read and how long ago, or the static table that replaces it."""
    if reading.source is not FactSource.LIVE:
        return f"{_STATIC_SOURCES[gate]} of {reading.as_of}" if reading.as_of else "not known"
    age = reading.age or 0.0
    return f"{live_source}, read " + ("now" if age < _MINUTE else f"{words.ago(age)}; --refresh reads it again")


def _list_price_note(table: ZoneTable) -> str:
    months = sorted({p.price.as_of for p in table.pairs if p.price.source is FactSource.TABLE})
    return f"; `~` marks list prices of {', '.join(months)}" if months else ""


def _unknowns(readings: Iterable[GateSource]) -> Iterator[tuple[str, str]]:
    """Yield why a fact is unknown, and what may help."""
    for reading in readings:
        if reading.unknown is not None:
            yield words.plain(reading.unknown.because), reading.unknown.hint
