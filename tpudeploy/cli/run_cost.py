"""The cost of a run so far, at list price: of each slice from its grant, at the earliest from the run's start."""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.domain.events import Outlook
from tpudeploy.domain.frozen import frozen
from tpudeploy.text import words

_HOUR = 3600.0


@frozen
class _Bill:
    """What one slice costs. `ended_at` is None while it exists; `usd_per_hour` is None if its price is unknown."""

    address: str
    began_at: float
    usd_per_hour: float | None
    ended_at: float | None = None

    def usd(self, now: float) -> float:
        end = now if self.ended_at is None else self.ended_at
        return (self.usd_per_hour or 0.0) * max(0.0, end - self.began_at) / _HOUR


class RunCost:
    """Adds up the slices that a run's outlooks show as billed. For display only: Google's invoice may differ."""

    def __init__(self, began_at: float, *, is_emulated: bool) -> None:
        self._began_at = began_at
        self._is_emulated = is_emulated
        self._bills: dict[str, _Bill] = {}

    def record(self, outlook: Outlook) -> None:
        """Take over what an outlook shows: the slices of one replica that are billed now."""
        billed = {place.name: place for place in outlook.places if place.billed_since is not None}
        for name, bill in self._bills.items():
            if bill.address == outlook.address and bill.ended_at is None and name not in billed:
                self._bills[name] = replace(bill, ended_at=outlook.at)
        for name, place in billed.items():
            began_at = max(self._began_at, place.billed_since or 0.0)
            bill = _Bill(address=outlook.address, began_at=began_at, usd_per_hour=place.usd_per_hour)
            self._bills.setdefault(name, bill)

    def text(self, now: float) -> str:
        """Return `$0.19 so far, $1.40/h now at list price`."""
        bills = self._bills.values()
        usd = sum(bill.usd(now) for bill in bills)
        usd_per_hour = sum(bill.usd_per_hour or 0.0 for bill in bills if bill.ended_at is None)
        pace = f", {words.hourly(usd_per_hour)} now" if usd_per_hour else ""
        what = "(emulator: not billed)" if self._is_emulated else "at list price"
        unknown = ", without slices of unknown price" if any(bill.usd_per_hour is None for bill in bills) else ""
        return f"${usd:.2f} so far{pace} {what}{unknown}"
