"""A machine without bash or processes: it says in its guest attributes what a serving one would say.

As the startup script does, it goes back to the server that served last where a change of its metadata fails. That
server then has to boot again, which takes as long as any boot.
"""

from __future__ import annotations

import json
import threading
from collections.abc import Mapping

from tpudeploy.emulator.machine.facts import Behaviour, Facts
from tpudeploy.emulator.machine.vllm import deaths
from tpudeploy.emulator.script import engine_of, has_setup
from tpudeploy.emulator.server import Reply, Server
from tpudeploy.emulator.stand_in import ANSWER, answer
from tpudeploy.emulator.streams import Streams

# The order a startup script reports, and how far into the boot each phase begins.
_PHASES = (
    ("booted", 0.0),
    ("docker", 0.1),
    ("image", 0.2),
    ("secrets", 0.3),
    ("starting", 0.4),
    ("serving", 1.0),
)
_PORT = 8000
_SETUP_FAILED = "a setup step exited 1"
_UNDO_FAILED = "the engine did not come up"


class Simulated:
    def __init__(self, facts: Facts, behaviour: Behaviour) -> None:
        self._facts = facts
        self._behaviour = behaviour
        self._booted_at: float | None = None
        self._boots = 0
        self._boot_seconds = behaviour.boot_seconds
        self._spec = self._change = self._script = ""
        self._served: tuple[str, str] | None = None  # the spec and script that served last: on the disk
        self._undone = self._cause = ""  # the change that was undone, and why: on the disk too
        self._server: Server | None = None
        self._streams = Streams(facts.clock)
        self._lock = threading.RLock()  # its guest attributes and its server are asked side by side

    @property
    def address(self) -> str:
        return self._facts.address

    def port_for(self, port: int) -> int:
        return self._server.port if self._server is not None else port

    @property
    def guest_attributes(self) -> Mapping[str, str]:
        """One report, as templates/boot/report.sh writes it."""
        report = self._report()
        return {"tpudeploy/report": json.dumps(report)} if report else {}

    @property
    def removed_attributes(self) -> tuple[str, ...]:
        return ()

    def read_guest_attributes(self) -> Mapping[str, str]:
        """It writes nothing that a reader above Google's limit could cost it."""
        return self.guest_attributes

    def _report(self) -> dict[str, str | int]:
        if self._booted_at is None or not self._behaviour.guest_attributes:
            return {}
        self._hear()
        phase, detail = self._phase()
        report: dict[str, str | int] = {"at": int(self._facts.clock.now()), "phase": phase, "detail": detail}
        report |= {"spec": self._spec, "change": self._change}
        if self._undone:
            report |= {"undone": self._undone, "cause": self._cause}
        if phase in {"starting", "serving"}:
            begins = dict(_PHASES)["starting"] * self._boot_seconds
            report["started"] = str(int(self._booted_at + begins))
        if phase == "serving":
            report["answer"] = ANSWER
            # As the script keeps it of a start that came up: when each phase of the server began.
            report["timeline"] = f"starting {report['started']}\nserving {int(self._booted_at + self._boot_seconds)}"
        return report

    def boot(self) -> None:
        self.reboot()
        if self._behaviour.reachable:
            port = 0 if self.address == "127.0.0.1" else _PORT
            self._server = Server(port, self._answer, sleep=self._facts.clock.sleep, address=self.address)

    def reboot(self) -> None:
        self._booted_at = self._facts.clock.now()
        self._boots += 1
        self._boot_seconds = self._facts.jitter.vary(self._behaviour.boot_seconds, "boot", self._boots)
        metadata = self._facts.metadata()
        self._spec, self._script = metadata.get("tpudeploy-spec", ""), metadata.get("startup-script", "")
        self._change = metadata.get("tpudeploy-change", "")
        if self._change and self._change == self._undone:
            self._go_back(self._cause, at=self._booted_at)  # what failed is not tried again by a reboot

    def _hear(self) -> None:
        """A watcher would have heard of a change at once; here it begins when somebody looks."""
        told = self._facts.metadata().get("tpudeploy-change", "")
        with self._lock:
            if self._booted_at is not None and self._behaviour.hears_changes and told != self._change:
                self._phase()  # what has served by now is kept
                self.reboot()

    def stop(self) -> None:
        self._booted_at = None
        self._streams.settle()
        self._streams.close()
        if self._server is not None:
            self._server.close()
            self._server = None

    def settle(self) -> None:
        """Nothing runs, so nothing has to be waited for."""

    def kill(self, unit: str) -> None:
        """Nothing runs: always KeyError."""
        raise KeyError(unit)

    def run_script_by_hand(self) -> None:
        """Nothing runs here."""

    def log(self) -> str:
        return "".join(f"{key}={value}\n" for key, value in self._report().items())

    def _answer(self, method: str, target: str, body: bytes) -> Reply:
        self._hear()
        serves = self._booted_at is not None and self._phase()[0] == "serving"
        engine = engine_of(self._script, self._facts.accelerator_type, self._behaviour) if serves else None
        pace = self._behaviour.token_seconds * (1.0 if engine is None else engine.pace)
        return answer(method, target, body, serves=serves, streams=self._streams, token_seconds=pace, engine=engine)

    def _phase(self) -> tuple[str, str]:
        with self._lock:
            phase, detail = self._outcome()
            if phase == "failed" and self._booted_at is not None:
                if not self._go_back(detail, at=self._booted_at + self._boot_seconds):
                    return phase, detail
                phase, detail = self._outcome()
            if phase == "serving":
                self._served = (self._spec, self._script)
            return phase, detail

    def _go_back(self, cause: str, *, at: float) -> bool:
        """Boot the server that served last, from `at` on. Return False where there is none, or that one failed."""
        if not self._change or self._served is None or self._served[0] == self._spec:
            return False
        self._undone, self._cause = self._change, cause
        (self._spec, self._script), self._booted_at = self._served, at
        return True

    def _outcome(self) -> tuple[str, str]:
        assert self._booted_at is not None
        share = 1.0
        if self._boot_seconds:
            share = (self._facts.clock.now() - self._booted_at) / self._boot_seconds
        phase = [name for name, begins in _PHASES if begins <= share][-1]
        if phase != "serving":
            return phase, ""
        if self._is_undo and self._behaviour.undo_fails:
            return "failed", f"{self._cause} (the server before did not come back either: {_UNDO_FAILED})"
        if self._behaviour.crash in deaths.NAMES:
            return "failed", f"The container ended (exit code 1): {deaths.message(self._behaviour.crash)}"
        if self._behaviour.crash:
            return "failed", self._behaviour.crash
        if self._behaviour.setup_fails and has_setup(self._script):
            return "failed", _SETUP_FAILED
        return ("starting", "") if self._behaviour.hang else (phase, "")

    @property
    def _is_undo(self) -> bool:
        return bool(self._change) and self._change == self._undone
