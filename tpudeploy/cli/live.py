"""Draw a table in place below the scrolling event lines. At the end the table is erased, and the lines remain.

Its heading has the cost of the run so far, at list price. Why: decision 70 in docs/decisions.md.
"""

from __future__ import annotations

import math
import signal
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, replace

from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain import events
from tpudeploy.domain.events import Outlook
from tpudeploy.ports import Clock
from tpudeploy.text import words
from tpudeploy.text.words import fitted, width
from tpudeploy.views.events import Repeats
from tpudeploy.views.request_table import heading, table

_FRAME = 0.25  # seconds between frames
_MAX_LINES = 20
_HOUR = 3600.0


@dataclass(frozen=True, slots=True, kw_only=True)
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


class Live:
    """Draws each frame in one write: move up over the old table, print the new lines, print the new table.

    A separate thread draws the frames, so that Ctrl-C, which interrupts the main thread, never splits one.
    """

    def __init__(self, terminal: Terminal, clock: Clock, *, is_emulated: bool = False) -> None:
        self._terminal = terminal
        self._clock = clock
        self._began = clock.now()
        self._cost = RunCost(self._began, is_emulated=is_emulated)
        self._repeats = Repeats()
        self._lock = threading.RLock()  # the main thread may be stopped (Ctrl-Z) while it holds it
        self._lines: list[str] = []
        self._outlooks: dict[str, events.Outlook] = {}
        self._drawn: tuple[str, ...] = ()

    def tell(self, event: events.Event) -> None:
        """Show the event in the next frame. Several threads may call this."""
        with self._lock:
            match event:
                case events.Outlook():
                    self._cost.record(event)
                    self._show(event)
                case events.ChangeDone() | events.ChangeLeft() | events.ChangeFailed():
                    self._outlooks.pop(event.address, None)
                case _:
                    pass
            text = self._repeats.line(event, self._terminal.paint)
            if text is not None:
                self._lines.append(text)

    def say(self, text: str) -> None:
        """Show a line in the next frame. Several threads may call this."""
        with self._lock:
            self._lines.append(text)

    def _show(self, outlook: events.Outlook) -> None:
        if outlook.places:
            self._outlooks[outlook.address] = outlook
        else:
            self._outlooks.pop(outlook.address, None)

    @contextmanager
    def drawing(self) -> Iterator[None]:
        """Draw a frame whenever a line or the table changes; the table shows elapsed seconds."""
        over = threading.Event()

        def draw() -> None:
            while not over.wait(_FRAME):
                self._draw(self._rows())
            self._draw(())

        painter = threading.Thread(target=draw, name="live", daemon=True)
        painter.start()
        try:
            with self._cleared_while_stopped():
                yield
        finally:
            over.set()
            painter.join()

    def _rows(self) -> tuple[str, ...]:
        columns, lines = self._terminal.size
        max_lines = min(lines // 2, _MAX_LINES)
        if not self._terminal.is_in_foreground:
            return ()
        with self._lock:
            outlooks, now, paint = dict(self._outlooks), self._clock.now(), self._terminal.paint
            first = heading(outlooks, elapsed=now - self._began, cost=self._cost.text(now))
        rows = table(outlooks, heading=first, now=now, width=columns - 1, max_lines=max_lines, paint=paint)
        return ("", *rows) if rows else ()

    def _draw(self, rows: tuple[str, ...]) -> None:
        with self._lock:
            lines, self._lines = self._lines, []
            if not lines and rows == self._drawn:
                return
            columns = self._terminal.size.columns
            # In a window that became narrower, a row of the table wraps to several lines.
            height = sum(max(1, math.ceil(width(row) / columns)) for row in self._drawn)
            escape = self._terminal.escape
            up, end_line, end_screen = escape(f"{height}A") if height else "", escape("K"), escape("J")
            text = "\n".join(fitted(line, columns) for line in lines)
            above = f"{end_screen}{text}\n" if lines else ""
            below = "".join(f"{row}{end_line}\n" for row in rows)
            self._terminal.draw(f"{up}{above}{below}{end_screen}")
            self._drawn = rows

    @contextmanager
    def _cleared_while_stopped(self) -> Iterator[None]:
        """Erase the table on Ctrl-Z, so that the shell gets a clean screen."""

        def stop(number: int, _frame: object) -> None:
            with self._lock:
                self._draw(())
                signal.signal(number, signal.SIG_DFL)
                signal.raise_signal(number)  # the process stops here until the shell continues it
                signal.signal(number, stop)

        previous_handler = signal.getsignal(signal.SIGTSTP)
        if previous_handler is not signal.SIG_DFL or threading.current_thread() is not threading.main_thread():
            yield
            return
        signal.signal(signal.SIGTSTP, stop)
        try:
            yield
        finally:
            signal.signal(signal.SIGTSTP, previous_handler)
