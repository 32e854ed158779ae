"""Add up charges by deployment, zone, model, label, day or month."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from tpudeploy.domain.ledger import LedgerLine
from tpudeploy.reconcile.spend import Charge

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

    `usd` is a lower bound if `unknown_prices` of its slices have no list price. `usd_to_end` is what those that run
    cost until their ends, None if nothing ends one of them.
    """

    key: str
    usd: float
    chip_hours: float
    slices: int
    running: int
    usd_per_hour: float
    usd_to_end: float | None
    unknown_prices: int = 0


def rows(every: Iterable[Charge], by: str, now: float) -> tuple[SpendRow, ...]:
    """Return what each group cost until `now`, the most expensive first; days and months in their order."""
    if by in {Grouping.DAY, Grouping.MONTH}:
        return tuple(_by_time(tuple(every), now, is_month=by == Grouping.MONTH))
    groups: dict[str, list[Charge]] = {}
    for charge in every:
        groups.setdefault(_key(by)(charge.line), []).append(charge)
    totals = (_row(key, own, 0.0, now, now) for key, own in groups.items())
    return tuple(sorted(totals, key=lambda row: (-row.usd, row.key)))


def total(every: Iterable[Charge], now: float) -> SpendRow:
    """Return what all of it cost until `now`."""
    return _row("total", tuple(every), 0.0, now, now)


def _key(by: str) -> Callable[[LedgerLine], str]:
    if by.startswith(_LABEL):
        return lambda line: line.labels.get(by.removeprefix(_LABEL), "")
    keys: Mapping[str, Callable[[LedgerLine], str]] = {
        Grouping.DEPLOYMENT: lambda line: line.deployment,
        Grouping.SLICE: lambda line: line.name,
        Grouping.ZONE: lambda line: str(line.zone),
        Grouping.MODEL: lambda line: line.model,
    }
    return keys[by]


def _by_time(every: Sequence[Charge], now: float, *, is_month: bool) -> Iterator[SpendRow]:
    """Yield a row for each day or month, in UTC, in which something ran."""
    if not every:
        return
    moment = datetime.fromtimestamp(min(charge.began for charge in every), UTC)
    start = moment.replace(hour=0, minute=0, second=0, microsecond=0)
    start = start.replace(day=1) if is_month else start
    while start.timestamp() <= now:
        end = (start + timedelta(days=32)).replace(day=1) if is_month else start + timedelta(days=1)
        since, until = start.timestamp(), min(now, end.timestamp())
        own = [charge for charge in every if charge.seconds(since, until) > 0]
        if own:
            yield _row(f"{start:%Y-%m}" if is_month else f"{start:%Y-%m-%d}", own, since, until, now)
        start = end


def _row(key: str, own: Sequence[Charge], since: float, until: float, now: float) -> SpendRow:
    costs = [charge.usd(since, until) for charge in own]
    running = [charge for charge in own if charge.is_running and until >= now]
    to_end = [_usd_to_end(charge, now) for charge in running]
    bounds = [usd for usd in to_end if usd is not None]
    return SpendRow(
        key=key,
        usd=sum(usd for usd in costs if usd is not None),
        chip_hours=sum(charge.line.chips * charge.seconds(since, until) for charge in own) / _HOUR,
        slices=len(own),
        running=len(running),
        usd_per_hour=sum(charge.line.usd_per_hour or 0.0 for charge in running),
        usd_to_end=sum(bounds) if len(bounds) == len(to_end) else None,
        unknown_prices=costs.count(None),
    )


def _usd_to_end(charge: Charge, now: float) -> float | None:
    """Return what it costs from now until its end, or None if nothing ends it or its price is unknown."""
    if charge.ends_at is None:
        return None
    return replace(charge, ended=charge.ends_at).usd(now, max(now, charge.ends_at))
