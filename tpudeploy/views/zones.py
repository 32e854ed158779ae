"""Where a slice type can be had: a table of pairs, what closes the others, and where each gate's word comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import groupby

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import UNLIMITED
from tpudeploy.domain.gates import Fill, Gate, Pair, Quota, Reading, Source, Standing, Word, Zones
from tpudeploy.domain.history import Ending
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

_MINUTE, _DAY = 60, 86400
_EMULATED = "On the emulator: hardware, quota and prices are made up."
_NARROWEST = 40
_TABLES = {Gate.HARDWARE: "the catalogue's zones", Gate.PRICE: "the catalogue's prices"}
_READ = {Gate.HARDWARE: "accelerator types", Gate.PRICE: "the billing catalogue"}


def zones(tables: Iterable[Zones], paint: Paint, *, width: int | None, emulated: bool) -> str:
    """`width` is the terminal's, in columns; None: nobody looks, so that nothing has to be left out."""
    blocks = ["\n".join(_table(table, paint, width)) for table in tables]
    note = words.wrapped(_EMULATED, width, indent="") if emulated else []
    return "\n\n".join([*blocks, *(["\n".join(map(paint.yellow, note))] if note else [])])


def _table(of: Zones, paint: Paint, width: int | None) -> Iterator[str]:
    shown = [pair for pair in of.pairs if pair.standing is not Standing.CLOSED]
    first, *rest = words.wrapped(_head(of, len(shown)), width, indent="")
    yield first.replace(of.type, paint.bold(of.type), 1)
    yield from rest
    if shown:
        yield ""
        yield from _rows(shown, paint, width)
    closed = list(_closed(of))
    if closed:
        yield "\nClosed:"
        for line in closed:
            yield from words.wrapped(line, width, indent="    ")
    yield ""
    for gate, reading in of.readings.items():
        text = f"{gate.ljust(8)}  {_told(gate, reading, of)}"
        yield from (paint.dim(line) for line in words.wrapped(text, width, indent=" " * 10))
    for because, hint in dict.fromkeys(_reasons(of.readings.values())):
        yield from (paint.yellow(line) for line in words.wrapped(because, width, indent="  "))
        yield from words.advice(hint, width, indent="  ")


def _head(of: Zones, count: int) -> str:
    who = f"{of.profile}: " if of.profile else ""
    where = f"in {of.project}" if of.project else "in no project"
    chips = f"{of.chips} chip{'s' if of.chips > 1 else ''}"
    pairs = f"{count} of {len(of.pairs)} pairs of zone and provisioning model can be asked"
    if not of.pairs:
        pairs = "no zone is known to list it"
    return f"{who}{of.type} ({chips}) {where}: {pairs}."


@dataclass(frozen=True, slots=True, kw_only=True)
class _Column:
    title: str
    cells: Sequence[str]
    is_number: bool = False

    @property
    def width(self) -> int:
        return max(map(len, (self.title, *self.cells)))

    def padded(self, text: str) -> str:
        return text.rjust(self.width) if self.is_number else text.ljust(self.width)


def _rows(shown: Sequence[Pair], paint: Paint, width: int | None) -> Iterator[str]:
    columns = list(_fitting(_columns(shown), width))
    yield paint.bold(_row(columns, [c.title for c in columns]))
    for number, pair in enumerate(shown):
        text = _row(columns, [c.cells[number] for c in columns])
        yield paint.yellow(text) if pair.standing is Standing.DOUBTFUL else _lucky(pair, text, paint)


def _lucky(pair: Pair, text: str, paint: Paint) -> str:
    return paint.green(text) if pair.luck.last is Ending.GRANTED else text


def _columns(shown: Sequence[Pair]) -> Iterator[_Column]:
    """The more telling first: a narrow terminal leaves out the last ones."""
    yield _Column(title="zone", cells=[p.zone for p in shown])
    yield _Column(title="model", cells=[_model(p) for p in shown])
    yield _Column(title="$/chip-h", cells=[_price(p) for p in shown], is_number=True)
    yield _Column(title="quota left", cells=[_quota(p.quota) for p in shown])
    if any(p.luck.last is not None for p in shown):
        yield _Column(title="last", cells=[_last(p) for p in shown])
        yield _Column(title="granted", cells=[_counted(p) for p in shown])
        yield _Column(title="median wait", cells=[_wait(p) for p in shown], is_number=True)


def _fitting(columns: Iterable[_Column], width: int | None) -> Iterator[_Column]:
    taken = 0
    for column in columns:
        taken += 2 + column.width
        if width is not None and taken > max(width, _NARROWEST):
            return
        yield column


def _row(columns: Sequence[_Column], cells: Sequence[str]) -> str:
    return "".join(f"  {c.padded(text)}" for c, text in zip(columns, cells, strict=True)).rstrip()


def _model(of: Pair) -> str:
    """With a question mark where nobody has recorded that the zone takes it; spot and on-demand are taken for given."""
    doubt = "?" if of.provisioning is Provisioning.FLEX_START and of.model.yes is None else ""
    return f"{of.provisioning}{doubt}"


def _price(of: Pair) -> str:
    usd = of.price.usd_per_chip_hour
    mark = "~" if of.price.source is Source.TABLE else ""
    return "?" if usd is None else f"{mark}{usd:.2f}"


def _quota(of: Quota) -> str:
    """Of the place that leaves less: `8 of 16` is what is left and the limit."""
    places = ((of.zone_limit, of.zone_used), (of.region_limit, of.region_used))
    known = [(limit, used) for limit, used in places if limit is not None]
    bounded = [(limit, used) for limit, used in known if limit != UNLIMITED]
    if not known:
        return "?"
    doubt = "" if len(known) == len(places) else "?"
    if not bounded:
        return f"no limit{doubt}"
    limit, used = min(bounded, key=lambda row: row[0] - (row[1] or 0))
    left = "" if not used or of.fill is Fill.NONE else f"{max(limit - used, 0)} of "
    return f"{left}{limit}{doubt}"


def _last(of: Pair) -> str:
    if of.luck.last is None or of.luck.last_age is None:
        return ""
    what = of.luck.last_kind if of.luck.last is Ending.REFUSED and of.luck.last_kind else of.luck.last
    return f"{what} {words.ago(of.luck.last_age)}"


def _counted(of: Pair) -> str:
    """Grants, of what was not given up by ourselves."""
    asked = sum(count for ending, count in of.luck.counts.items() if ending is not Ending.RELEASED)
    return f"{of.luck.counts.get(Ending.GRANTED, 0)} of {asked}" if asked else ""


def _wait(of: Pair) -> str:
    return "" if of.luck.median_wait is None else words.duration(of.luck.median_wait)


def _closed(of: Zones) -> Iterator[str]:
    """What cannot be asked, by reason."""
    closed = sorted((_why(pair, of), pair.zone) for pair in of.pairs if pair.closed_by is not None)
    for why, pairs in groupby(closed, key=lambda row: row[0]):
        places = list(dict.fromkeys(zone for _, zone in pairs))
        yield f"  {why}: {', '.join(places)}"


def _why(of: Pair, table: Zones) -> str:
    match of.closed_by:
        case Gate.HARDWARE:
            return f"no {table.type}{_by(of.hardware)}"
        case Gate.MODEL:
            return f"no {of.provisioning}{_by(of.model)}"
        case _:
            return f"{of.provisioning} is dearer than the profile allows"


def _by(of: Word) -> str:
    """Whose word it is, where it is not today's: `, refused on 2026-11-20 (Google's text)`."""
    if of.source is Source.LIVE:
        return ""
    return f", refused {of.as_of}" + (f" ({words.plain(of.because)})" if of.because else "")


def _told(gate: Gate, of: Reading, table: Zones) -> str:
    match gate, of.source:
        case Gate.MODEL, _:
            seen = f"published runs up to {of.as_of}, and " if of.as_of else ""
            return f"{seen}what asking came to; `?`: nobody has recorded it"
        case Gate.QUOTA, Source.LIVE:
            used = "chips left of the smaller limit" if of.unknown is None else "the limit: what is held is not known"
            return f"read now, {used}; it only warns, capacity is the real gate"
        case Gate.LUCK, Source.LOG:
            tried = sum(sum(pair.luck.counts.values()) for pair in table.pairs)
            days = f"the last {table.window / _DAY:.0f} days"
            return f"{tried} requests of {days}, as they ended" if tried else f"nothing was asked in {days}"
        case Gate.PRICE, _:
            return f"{_read(gate, of)}{_listed(table)}"
    return _read(gate, of)


def _read(gate: Gate, of: Reading) -> str:
    """What was read, and how long ago; or which table stands in."""
    if of.source is not Source.LIVE:
        return f"{_TABLES[gate]} of {of.as_of}" if of.as_of else "not known"
    age = of.age or 0.0
    return f"{_READ[gate]}, read " + ("now" if age < _MINUTE else f"{words.ago(age)}; --refresh reads anew")


def _listed(table: Zones) -> str:
    months = sorted({p.price.as_of for p in table.pairs if p.price.source is Source.TABLE})
    return f"; `~` marks list prices of {', '.join(months)}" if months else ""


def _reasons(of: Iterable[Reading]) -> Iterator[tuple[str, str]]:
    """Why something was not told, and what may help."""
    for reading in of:
        if reading.unknown is not None:
            yield words.plain(reading.unknown.because), reading.unknown.hint
