"""What the machines that run no script have in common: they listen by themselves, and write one report at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tpudeploy.emulator.http_server import HttpServer
from tpudeploy.emulator.machine.facts import MachineFacts


class Scriptless:
    """A machine without bash or processes. A subclass says what it reports."""

    _facts: MachineFacts
    _server: HttpServer | None

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

    def _report(self) -> Mapping[str, str | int]:
        """Return the current report; empty before the first one."""
        raise NotImplementedError
