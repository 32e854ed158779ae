"""What the machines that run no script have in common: they listen by themselves, and write one report at a time."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from urllib.parse import urlsplit

from tpudeploy.emulator.http_server import HttpServer
from tpudeploy.emulator.machine.facts import MachineFacts

END_KEY = "tpudeploy-end"
_PATIENCE = re.compile(r"^patience=([0-9]+)$", re.MULTILINE)
_REFUSED = 400


class Scriptless:
    """A machine without bash or processes. A subclass says what it reports."""

    _facts: MachineFacts
    _server: HttpServer | None
    _unended = ""
    _used_at: float

    @property
    def address(self) -> str:
        return self._facts.address

    def port_for(self, port: int) -> int:
        return self._server.port if self._server is not None else port

    def settle(self) -> None:
        """Return at once: nothing runs here."""

    def kill(self, unit: str) -> None:
        """Raise KeyError: nothing runs here."""
        raise KeyError(unit)

    def run_script_by_hand(self) -> None:
        """Do nothing: no script runs here."""

    def log(self) -> str:
        return "".join(f"{key}={value}\n" for key, value in self._report().items())

    def listening(self, port: int) -> None:
        """Find nothing: hosts that run no script do not call each other."""

    @property
    def guest_attributes(self) -> Mapping[str, str]:
        """Return one report, as templates/boot/report.sh writes it."""
        report = self._report()
        return {"tpudeploy/report": json.dumps(report)} if report else {}

    @property
    def removed_attributes(self) -> tuple[str, ...]:
        return ()

    def read_guest_attributes(self) -> Mapping[str, str]:
        """Return them as a reader from outside gets them: nothing is written that such a reader could remove."""
        return self.guest_attributes

    def ends_at(self) -> float | None:
        """Return when it is to delete its own request, as templates/boot/end.sh reads it; None for never.

        Of several hosts, the first one does it.
        """
        if self._facts.worker:
            return None
        whens, _, _ = self._facts.metadata().get(END_KEY, "").partition(" ")
        ends = (self._time_of(when) for when in whens.split(","))
        return min((end for end in ends if end is not None), default=None)

    def service(self) -> tuple[float | None, float | None]:
        """Return when it first served, and when it last had a request of a user; None for never."""
        return self._first_times()[1], self._used_at or None

    def request_to_delete(self) -> tuple[str, str]:
        """Return the host and the target of the URL that deletes its request."""
        whens, address, keys = self._facts.metadata()[END_KEY].split(" ", 2)
        url = urlsplit(address)
        if url.query:
            return url.netloc, f"{url.path}?{url.query}"
        now = self._facts.clock.now()
        times = map(self._time_of, whens.split(","))
        key = next(key.split(":")[0] for key, at in zip(keys.split("; "), times, strict=True) if at and at <= now)
        minutes = int((now - self._last_use()) // 60) if key == "lifecycle.idle" else 0
        number = ("lifecycle.end", "lifecycle.idle", "lifecycle.hours").index(key) + 1
        # As in templates/boot/end.sh: Compute Engine shows it in the list of its operations.
        return url.netloc, f"{url.path}?requestId=74707564-6570-4{number}00-8{minutes:03x}-{int(now):012x}"

    def note_end(self, status: int) -> None:
        """Report, as the script does, that it may not delete its request."""
        self._unended = "" if status < _REFUSED else f"HTTP {status}"

    def _time_of(self, when: str) -> float | None:
        if when.startswith("~") and when[1:]:
            return self._last_use() + float(when[1:])
        if when.isdecimal():
            return float(when)
        booted, served = self._first_times()
        if not when.startswith("+") or booted is None:
            return None
        patience = _PATIENCE.search(self._facts.metadata().get("startup-script", ""))
        latest = booted + float(patience[1] if patience else 0)
        return (latest if served is None else served) + float(when)

    def _last_use(self) -> float:
        """Return the last time that counts as use of it."""
        raise NotImplementedError

    def _first_times(self) -> tuple[float | None, float | None]:
        """Return when it first booted and first served; None for what it has not, or while it is off."""
        raise NotImplementedError

    def _report(self) -> Mapping[str, str | int]:
        """Return the current report; empty before the first one."""
        raise NotImplementedError
