"""Add up costs by deployment, zone, model, label, day or month."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from datetime import UTC, datetime, timedelta
from enum import StrEnum
from math import inf

from tpudeploy.domain.ledger import PricedRequest
from tpudeploy.reconcile.spend import Billing, Interval

_HOUR = 3600.0


class Grouping(StrEnum):
    """What costs are added up by, besides `label:KEY`."""

    DEPLOYMENT = "deployment"
    SLICE = "slice"
    ZONE = "zone"
    MODEL = "model"
    DAY = "day"
    MONTH = "month"


_LABEL = "label:"


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendRow:
    """What one group cost until now, and what of it still runs.

    `usd` and `chip_hours` are the most; `usd_least` is what is certain. `usd` is a lower bound if `unknown_prices` of
    its slices have no list price. `may_run` of the slices may have ended, or were never granted, since a run looked.
    `usd_to_end` is what those that run, or may, cost until their ends, None if nothing ends one of them.
    """

    key: str
    usd: float
    chip_hours: float
    slices: int
    running: int
    usd_per_hour: float
    usd_to_end: float | None
    unknown_prices: int = 0
    may_run: int = 0
    usd_least: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class SpendNotes:
    """What the sentences under a table say: names of slices, the dates of the prices, and what ends what runs."""

    prices: str
    ended_by: str
    untracked: tuple[str, ...]
    bounds: tuple[str, ...]
    unwatched: tuple[str, ...]
    unseen: tuple[str, ...]
    unreadable_lines: int


def rows(every: Iterable[Interval], by: str, now: float) -> tuple[SpendRow, ...]:
    """Return what each group cost until `now`, the most expensive first; days and months in their order."""
    if by in {Grouping.DAY, Grouping.MONTH}:
        return tuple(_by_time(tuple(every), now, is_month=by == Grouping.MONTH))
    groups: dict[str, list[Interval]] = {}
    for each in every:
        groups.setdefault(_key(by)(each.request), []).append(each)
    totals = (_row(key, own, 0.0, now, now) for key, own in groups.items())
    return tuple(sorted(totals, key=lambda row: (-row.usd, row.key)))


def total(every: Iterable[Interval], now: float) -> SpendRow:
    """Return what all of it cost until `now`."""
    return _row("total", tuple(every), 0.0, now, now)


def _key(by: str) -> Callable[[PricedRequest], str]:
    if by.startswith(_LABEL):
        return lambda request: request.labels.get(by.removeprefix(_LABEL), "")
    keys: Mapping[str, Callable[[PricedRequest], str]] = {
        Grouping.DEPLOYMENT: lambda request: request.deployment,
        Grouping.SLICE: lambda request: request.name,
        Grouping.ZONE: lambda request: str(request.zone),
        Grouping.MODEL: lambda request: request.model,
    }
    return keys[by]


def _by_time(every: Sequence[Interval], now: float, *, is_month: bool) -> Iterator[SpendRow]:
    """Yield a row for each day or month, in UTC, in which something ran."""
    if not every:
        return
    moment = datetime.fromtimestamp(min(each.began for each in every), UTC)
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    start = start.replace(day=1) if is_month else start
    while start.timestamp() <= now:
        end = (start + timedelta(days=32)).replace(day=1) if is_month else start + timedelta(days=1)
        since, until = start.timestamp(), min(now, end.timestamp())
        own = [each for each in every if each.seconds(since, until) > 0]
        if own:
            yield _row(f"{start:%Y-%m}" if is_month else f"{start:%Y-%m-%d}", own, since, until, now)
        start = end


def _row(key: str, own: Sequence[Interval], since: float, until: float, now: float) -> SpendRow:
    costs = [each.most_usd(since, until) for each in own]
    known_costs = [usd for usd in costs if usd < inf]
    alive = [each for each in own if each.may_run and until >= now]
    running = [each for each in alive if each.billing is Billing.RUNS]
    to_end = sum(_usd_to_end(each, now) for each in alive)
    return SpendRow(
        key=key,
        usd=sum(known_costs),
        usd_least=sum(each.least_usd(since, until) for each in own),
        chip_hours=sum(each.request.chips * each.seconds(since, until) for each in own) / _HOUR,
        slices=len(own),
        running=len(running),
        may_run=len(alive) - len(running),
        usd_per_hour=sum(each.request.usd_per_hour or 0.0 for each in alive),
        usd_to_end=to_end if to_end < inf else None,
        unknown_prices=len(costs) - len(known_costs),
    )


def _usd_to_end(interval: Interval, now: float) -> float:
    """Return what it costs from now until its end; infinite if nothing ends it or its price is unknown."""
    usd_per_hour, seconds = interval.request.usd_per_hour, interval.ends_by - now
    return inf if usd_per_hour is None else usd_per_hour * min(seconds, interval.most_seconds) / _HOUR
