"""One container: the request for it, and the process in its place: the stand-in or the real engine."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from collections.abc import Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

from tpudeploy.emulator.machine import session
from tpudeploy.emulator.machine.docker.run_options import RunOptions

PARENT = str(Path(__file__).parents[4])  # where `tpudeploy` is imported from
START = "import sys; sys.path.insert(0, sys.argv[1]); from tpudeploy.emulator.machine.{program} import run; run()"
GRACE = 60.0  # real seconds that a stopped stand-in has before it is killed


@dataclass(slots=True, kw_only=True, eq=False)
class DockerContainer:
    """`environment` is complete, secrets and all: it lives in memory and in the stand-in's pipe, never on disk.

    `program` is the stand-in, by its module in `emulator/machine/`. `status` is what it last reported: "starting",
    "asleep" or "serving". A real engine (`is_real`) reports nothing, and counts as serving.
    """

    id: str
    name: str
    options: RunOptions
    environment: Mapping[str, str]
    task: Mapping[str, Any]
    place: tuple[str, int] | None
    port: int
    log_file: Path
    created: float
    is_real: bool = False
    program: str = "vllm.main"
    status: str = "starting"
    process: subprocess.Popen[bytes] | None = field(default=None, repr=False)

    def start(self) -> None:
        self.status = "serving" if self.is_real else "starting"
        start = START.format(program="real_engine" if self.is_real else self.program)
        with self.log_file.open("ab") as log:
            self.process = session.start(
                [sys.executable, "-I", "-S", "-c", start, PARENT],  # -S: site-packages would cost a fifth of its start
                output=log,
                environment=os.environ if self.is_real else {"LANG": "C.UTF-8"},
                folder=self.log_file.parent,
            )
        assert self.process.stdin is not None
        self.process.stdin.write(json.dumps(self.task).encode() + b"\n")
        self.process.stdin.flush()  # the pipe stays open: the stand-in dies with our end of it

    @property
    def exit_code(self) -> int | None:
        """Return None while it runs. A signal counts as a shell counts it."""
        code = self.process.poll() if self.process else 0
        return 128 - code if code is not None and code < 0 else code

    @property
    def is_on_chip(self) -> bool:
        return "privileged" in self.options.switches

    @property
    def is_running(self) -> bool:
        return self.exit_code is None

    def stop(self, *, kill: bool = False) -> None:
        if self.process is None:
            return
        if self.is_running:
            if not kill:
                self.process.terminate()
                with suppress(subprocess.TimeoutExpired):
                    self.process.wait(GRACE)
            with suppress(ProcessLookupError):  # the group is its own, with all that an engine started
                os.killpg(self.process.pid, signal.SIGKILL)
            self.process.wait()
        assert self.process.stdin is not None
        self.process.stdin.close()

    def log(self) -> bytes:
        return self.log_file.read_bytes()
