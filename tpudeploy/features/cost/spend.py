"""Add up a ledger: each request once, with the time that its machine ran and the price of its chips."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from enum import StrEnum

from tpudeploy.domain.frozen import frozen, replace
from tpudeploy.domain.ledger import LedgerEvent, LedgerLine
from tpudeploy.domain.state import State
from tpudeploy.reconcile.ledger_lines import line_of

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


@frozen
class Charge:
    """One request that ran: from `began` until `ended`, None while it runs or may run.

    `is_untracked`: no state tracks it any more, so that nothing here shows whether it still runs.
    """

    line: LedgerLine
    began: float
    ended: float | None
    ends_at: float | None
    is_untracked: bool = False

    def seconds(self, since: float, until: float) -> float:
        """Return how long it ran between two moments."""
        ended = until if self.ended is None else min(until, self.ended)
        return max(0.0, ended - max(since, self.began))

    def usd(self, since: float, until: float) -> float | None:
        """Return what it cost between two moments at list price, or None if its price is unknown."""
        price = self.line.usd_per_hour
        return None if price is None else price * self.seconds(since, until) / _HOUR

    @property
    def is_running(self) -> bool:
        return self.ended is None


@frozen
class SpendRow:
    """What one group cost until now, and what of it still runs.

    `usd` is a lower bound if `unknown_prices` of its slices have no list price. `usd_to_end` is what those that run
    cost until Google ends their runs, None if nothing ends one of them.
    """

    key: str
    usd: float
    chip_hours: float
    slices: int
    running: int
    usd_per_hour: float
    usd_to_end: float | None
    unknown_prices: int = 0


def charges(lines: Iterable[LedgerLine], states: Iterable[State], now: float) -> tuple[Charge, ...]:
    """Return what ran, by its beginning. A request in a state whose lines are lost is taken from the state."""
    by_name: dict[tuple[str, str, str], list[LedgerLine]] = {}
    for line in (*lines, *_of_states(states, now)):
        by_name.setdefault((line.project, line.zone, line.name), []).append(line)
    every = (_charge(own) for own in by_name.values())
    return tuple(sorted((each for each in every if each is not None), key=lambda each: (each.began, each.line.name)))


def _of_states(states: Iterable[State], now: float) -> Iterator[LedgerLine]:
    for state in states:
        for index, attempt in state.indexed_attempts:
            if attempt.granted_at is not None:
                began = attempt.granted_at
                yield line_of(LedgerEvent.REQUESTED, state.deployment, index, attempt, now, began=began)


def _charge(lines: Sequence[LedgerLine]) -> Charge | None:
    """Return the charge of one request, or None for one that never ran, or that another ledger has."""
    if any(line.event is LedgerEvent.MOVED for line in lines):
        return None
    began = _beginning(lines)
    if began is None:
        return None
    last = max(lines, key=lambda line: line.at)
    ends_at = next((line.ends_at for line in reversed(lines) if line.ends_at is not None), None)
    ended = min(_times(lines, LedgerEvent.GONE, "ended"), default=None)
    if ended is not None:
        # If its end was not seen, Google's own time for it counts.
        ended = max(began, ended if ends_at is None else min(ended, ends_at))
    is_untracked = ended is None and last.event is LedgerEvent.UNTRACKED
    return Charge(line=last, began=began, ended=ended, ends_at=ends_at, is_untracked=is_untracked)


def _beginning(lines: Sequence[LedgerLine]) -> float | None:
    """Return when the machine was created, by Google's time if a line has it, or None if it never ran."""
    created = _times(lines, LedgerEvent.RUNNING, "began")
    return min(created or [line.began for line in lines if line.began is not None], default=None)


def _times(lines: Iterable[LedgerLine], event: LedgerEvent, key: str) -> list[float]:
    times = (getattr(line, key) for line in lines if line.event is event)
    return [time for time in times if time is not None]


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
    """Return what it costs from now until Google ends its run, or None if nothing ends it or its price is unknown."""
    if charge.ends_at is None:
        return None
    return replace(charge, ended=charge.ends_at).usd(now, max(now, charge.ends_at))
