"""What the machines that run no script have in common: they listen by themselves, and write one report at a time."""

from __future__ import annotations

import json
from collections.abc import Mapping

from tpudeploy.emulator.http_server import Server
from tpudeploy.emulator.machine.facts import Facts


class Scriptless:
    """A machine without bash or processes. A subclass says what it reports."""

    _facts: Facts
    _server: Server | None

    @property
    def address(self) -> str:
        return self._facts.address

    def port_for(self, port: int) -> int:
        return self._server.port if self._server is not None else port

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
