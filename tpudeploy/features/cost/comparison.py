"""Compare the ledger with what Google billed: what each difference comes from."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.names import SliceName, address
from tpudeploy.features.cost.billing_export import BilledRow
from tpudeploy.reconcile.spend import Interval, situation

_HOUR = 3600.0
_ROUNDING_SECONDS = 180.0  # per slice: the machine is deleted within minutes, and Google rounds
_NONE = 0.005  # USD; less is no difference


class DifferenceCause(StrEnum):
    """Why Google billed more or less than the ledger says, in the order in which it is explained."""

    COMMITTED_USE = "committed-use discounts"
    SUSTAINED_USE = "sustained-use discounts"
    CREDITS = "other credits"
    ROUNDING = "rounding of time"
    TIME = "another time"
    PRICE = "another price"
    PRICE_OR_TIME = "another price or time"
    OTHER_RESOURCES = "disks, addresses and other resources"
    ADJUSTMENTS = "taxes and adjustments"
    NOT_IN_LEDGER = "not in the ledger"
    NOT_IN_EXPORT = "not in the export"
    NO_LABELS = "TPUs without labels of tpudeploy"


_CREDITS = {
    "COMMITTED_USAGE_DISCOUNT": DifferenceCause.COMMITTED_USE,
    "COMMITTED_USAGE_DISCOUNT_DOLLAR_BASE": DifferenceCause.COMMITTED_USE,
    "FEE_UTILIZATION_OFFSET": DifferenceCause.COMMITTED_USE,
    "SUSTAINED_USAGE_DISCOUNT": DifferenceCause.SUSTAINED_USE,
}
_REGULAR = "regular"


@dataclass(frozen=True, slots=True, kw_only=True)
class CostDifference:
    """What one slice, or one replica where the rows have no names, costs by the ledger and by the export, in USD.

    `causes` are the parts of billed_usd - ledger_usd.
    """

    key: str
    ledger_usd: float
    billed_usd: float
    causes: Mapping[str, float]


@dataclass(frozen=True, slots=True, kw_only=True)
class ComparedCosts:
    """The differences between two moments, which are those of the export; the largest first."""

    since: float
    until: float
    rows: tuple[CostDifference, ...]
    total: CostDifference


def compare(intervals: Iterable[Interval], billed: Iterable[BilledRow]) -> ComparedCosts:
    """Return what differs in the time that the export is about. Without a row, nothing does."""
    rows = tuple(billed)
    if not rows:
        empty = CostDifference(key="total", ledger_usd=0.0, billed_usd=0.0, causes={})
        return ComparedCosts(since=0.0, until=0.0, rows=(), total=empty)
    since, until = min(row.since for row in rows), max(row.until for row in rows)
    own = [interval for interval in intervals if interval.seconds(since, until) > 0]
    of_rows: dict[str, list[BilledRow]] = {}
    names = {row.name for row in rows if row.name}
    for row in rows:
        of_rows.setdefault(_key_of_row(row), []).append(row)
    of_intervals: dict[str, list[Interval]] = {}
    for interval in own:
        of_intervals.setdefault(_key_of_interval(interval, names, of_rows), []).append(interval)
    keys = dict.fromkeys([*of_intervals, *of_rows])
    every = [_difference(key, of_intervals.get(key, ()), of_rows.get(key, ()), since, until) for key in keys]
    every.sort(key=lambda each: (-abs(each.billed_usd - each.ledger_usd), each.key))
    return ComparedCosts(since=since, until=until, rows=tuple(every), total=_total(every))


def _key_of_row(row: BilledRow) -> str:
    if row.name:
        return row.name
    return "" if row.mark is None else f"{address(row.mark.deployment, row.mark.replica)} {row.mark.lineage}"


def _key_of_interval(interval: Interval, names: set[str], of_rows: Mapping[str, object]) -> str:
    """Return its name, or the key of its replica where rows of that have labels and no names."""
    name = SliceName.parse(interval.request.name)
    if interval.request.name in names or name is None:
        return interval.request.name
    replica = f"{address(name.deployment, name.replica)} {name.lineage}"
    return replica if replica in of_rows else interval.request.name


def _difference(
    key: str, intervals: Sequence[Interval], rows: Sequence[BilledRow], since: float, until: float
) -> CostDifference:
    ledger = situation(intervals, (), until).spent(since, until)
    has_chips = any(interval.request.chips for interval in intervals) or not intervals
    counted = [row for row in rows if row.cost_type == _REGULAR and (row.is_chip or not has_chips)]
    parts = [*_of_credits(rows), *_of_others(rows, counted)]
    if not intervals:
        cause = DifferenceCause.NOT_IN_LEDGER if key else DifferenceCause.NO_LABELS
        parts.append((cause, sum(row.usd for row in counted)))
    elif not counted:
        parts.append((DifferenceCause.NOT_IN_EXPORT, -ledger))
    else:
        parts += _of_time_and_price(intervals, counted, ledger, since, until)
    billed = sum(row.usd + sum(row.credits.values()) for row in rows)
    return CostDifference(key=key or "(no label)", ledger_usd=ledger, billed_usd=billed, causes=_by_cause(parts))


def _of_credits(rows: Iterable[BilledRow]) -> Iterator[tuple[DifferenceCause, float]]:
    for row in rows:
        for kind, usd in row.credits.items():
            yield _CREDITS.get(kind, DifferenceCause.CREDITS), usd


def _of_others(rows: Iterable[BilledRow], counted: Sequence[BilledRow]) -> Iterator[tuple[DifferenceCause, float]]:
    """Yield the rows that are not the price of chips."""
    lines = {row.line for row in counted}
    for row in rows:
        if row.cost_type != _REGULAR:
            yield DifferenceCause.ADJUSTMENTS, row.usd
        elif row.line not in lines:
            yield DifferenceCause.OTHER_RESOURCES, row.usd


def _by_cause(parts: Iterable[tuple[DifferenceCause, float]]) -> Mapping[str, float]:
    sums = dict.fromkeys(DifferenceCause, 0.0)
    for cause, usd in parts:
        sums[cause] += usd
    return {str(cause): usd for cause, usd in sums.items() if abs(usd) >= _NONE}


def _of_time_and_price(
    intervals: Sequence[Interval], rows: Sequence[BilledRow], ledger: float, since: float, until: float
) -> list[tuple[DifferenceCause, float]]:
    """Return which part of a difference comes from the time, and which from the price."""
    usd = sum(row.usd for row in rows)
    hours = [row.chip_hours for row in rows]
    own_hours = sum(interval.request.chips * interval.seconds(since, until) for interval in intervals) / _HOUR
    known_hours = [each for each in hours if each is not None]
    if len(known_hours) < len(hours) or not own_hours:
        return [(DifferenceCause.PRICE_OR_TIME, usd - ledger)]
    own_price, more = ledger / own_hours, sum(known_hours) - own_hours
    tolerance = sum(interval.request.chips for interval in intervals) * _ROUNDING_SECONDS / _HOUR
    cause = DifferenceCause.ROUNDING if abs(more) <= tolerance else DifferenceCause.TIME
    return [(cause, more * own_price), (DifferenceCause.PRICE, usd - ledger - more * own_price)]


def _total(rows: Iterable[CostDifference]) -> CostDifference:
    rows = tuple(rows)
    parts = ((DifferenceCause(cause), usd) for row in rows for cause, usd in row.causes.items())
    return CostDifference(
        key="total",
        ledger_usd=sum(row.ledger_usd for row in rows),
        billed_usd=sum(row.billed_usd for row in rows),
        causes=_by_cause(parts),
    )
