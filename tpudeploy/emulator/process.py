"""The emulator as a process, for `tpudeploy emulator start` and `emulator run`; and its signals. It prints nothing."""

from __future__ import annotations

import fcntl
import json
import os
import shutil
import signal
import stat
import subprocess
import sys
import tempfile
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import replace
from pathlib import Path
from types import FrameType
from typing import IO

from tpudeploy.domain.errors import EmulatorRunning, UsageError
from tpudeploy.emulator.clock import RealClock
from tpudeploy.emulator.emulator import FOLDER, Emulator
from tpudeploy.emulator.scenario import Scenario
from tpudeploy.emulator.scenario_file import load_scenario
from tpudeploy.emulator.timings import DEMO

DEFAULT_PORT = 8470
_LEASH = Path(__file__).with_name("leash.py")


def serve(
    *,
    on_ready: Callable[[Emulator], None],
    port: int = DEFAULT_PORT,
    scenario: Path | None = None,
    speed: float = 1.0,
    engine: Sequence[str] = (),
) -> None:
    """Serve until Ctrl-C or SIGTERM. Raise EmulatorRunning, ScenarioInvalid, or UsageError for a taken port."""
    with _only_one() as record:
        _sweep()
        with _emulator(port, scenario, speed, engine) as emulator, ended_by_signal() as wait:
            _note(record, emulator.host)
            on_ready(emulator)
            wait()


def run(argv: Sequence[str], *, scenario: Path | None = None, speed: float = 1.0, engine: Sequence[str] = ()) -> int:
    """Run an emulator for the length of one command, and return the command's exit code."""
    if shutil.which(argv[0]) is None:
        raise UsageError(f"There is no command `{argv[0]}`.")
    with _emulator(0, scenario, speed, engine) as emulator:
        environment = {"GOOGLE_CLOUD_PROJECT": "emulated", **os.environ, **emulator.environment}
        command = [sys.executable, "-I", "-S", str(_LEASH), str(os.getpid()), *argv]
        with subprocess.Popen(command, env=environment) as child, signals_reach(child):
            code = child.wait()
    return code if code >= 0 else 128 - code


def record_file() -> Path:
    """Return the file in which a running emulator records its process and address."""
    base = os.environ.get("XDG_RUNTIME_DIR")
    folder = Path(base) / "tpudeploy" if base else Path(tempfile.gettempdir()) / f"tpudeploy-{os.getuid()}"
    return folder / "emulator.json"


@contextmanager
def _emulator(port: int, scenario: Path | None, speed: float, engine: Sequence[str]) -> Iterator[Emulator]:
    played = replace(load_scenario(scenario, timings=DEMO, paced=True), engine=tuple(engine))
    if engine:
        _check_engine(played, speed)
    try:
        emulator = Emulator(clock=RealClock(speed), scenario=played, port=port)
    except OSError as cause:
        raise UsageError(f"The emulator cannot listen on port {port}: {cause}", hint="choose another port") from cause
    try:
        yield emulator
    finally:
        emulator.close()


def _check_engine(scenario: Scenario, speed: float) -> None:
    """Raise UsageError where a real engine cannot run."""
    if shutil.which(scenario.engine[0]) is None:
        raise UsageError(f"There is no command `{scenario.engine[0]}`.", hint="--engine takes a vLLM command line")
    if scenario.simulated:
        raise UsageError(
            "A real engine needs real nodes, and the scenario has simulated ones.", hint="remove `nodes: simulated`"
        )
    if speed != 1:
        raise UsageError("A real engine runs in real time.", hint="use --engine without --speed")


@contextmanager
def _only_one() -> Iterator[IO[str]]:
    """Hold the record file's lock: the system releases it also after a crash."""
    with _opened_record() as record:
        try:
            fcntl.flock(record, fcntl.LOCK_EX | fcntl.LOCK_NB)
        except BlockingIOError:
            raise _running(record) from None
        _note(record, "an address that it is about to choose")
        try:
            yield record
        finally:
            record.truncate(0)


def _opened_record() -> IO[str]:
    """Open the record file. Raise UsageError if another user may have put a folder or a link in its place."""
    file = record_file()
    file.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
    status = file.parent.lstat()
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.getuid() or status.st_mode & stat.S_IWOTH:
        raise UsageError(f"{file.parent} is not a folder of yours.", hint="Remove it, or set XDG_RUNTIME_DIR.")
    try:
        handle = os.open(file, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_NOFOLLOW | os.O_CLOEXEC, 0o600)
    except OSError as cause:
        raise UsageError(f"{file} cannot be written: {cause.strerror}.", hint="Remove it.") from cause
    return os.fdopen(handle, "a+", encoding="utf-8")


def _running(record: IO[str]) -> EmulatorRunning:
    record.seek(0)
    record_tree = json.loads(record.read())
    return EmulatorRunning(int(record_tree["pid"]), str(record_tree["host"]))


def _note(record: IO[str], host: str) -> None:
    record.truncate(0)
    record.write(json.dumps({"pid": os.getpid(), "host": host}))
    record.flush()


def _sweep() -> None:
    """Remove the folders of emulators that were killed."""
    for folder in Path(tempfile.gettempdir()).glob(f"{FOLDER}*"):
        owner = folder.name.removeprefix(FOLDER).partition("-")[0]
        with suppress(FileNotFoundError):  # another emulator ended in this moment, and removed its folder
            if owner.isdecimal() and folder.lstat().st_uid == os.getuid() and not _lives(int(owner)):
                shutil.rmtree(folder, ignore_errors=True)


def _lives(pid: int) -> bool:
    try:
        os.kill(pid, 0)
    except ProcessLookupError:
        return False
    except PermissionError:
        return True
    return True


@contextmanager
def ended_by_signal() -> Iterator[Callable[[], None]]:
    """Yield a wait that ends at the first SIGINT or SIGTERM, also at one that came before it began."""
    reader, writer = os.pipe()
    os.set_blocking(writer, False)
    previous_fd = signal.set_wakeup_fd(writer)
    old = {number: signal.signal(number, _ignore) for number in (signal.SIGINT, signal.SIGTERM)}
    try:
        yield lambda: _wait_for(reader, frozenset(old))
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        signal.set_wakeup_fd(previous_fd)
        os.close(reader)
        os.close(writer)


def _wait_for(reader: int, numbers: frozenset[int]) -> None:
    while not numbers & frozenset(os.read(reader, 64)):
        pass


def _ignore(_number: int, _frame: FrameType | None) -> None:
    """Do nothing: the signal's number goes to the wake-up pipe, but a handler must exist."""


@contextmanager
def signals_reach(child: subprocess.Popen[bytes]) -> Iterator[None]:
    """Ctrl-C reaches the child by the terminal, SIGTERM through us; both leave it to the child how to end."""

    def forward(number: int, _frame: FrameType | None) -> None:
        child.send_signal(number)

    old = {signal.SIGINT: signal.signal(signal.SIGINT, _ignore), signal.SIGTERM: signal.signal(signal.SIGTERM, forward)}
    try:
        yield
    finally:
        for number, handler in old.items():
            signal.signal(number, handler)
        if child.poll() is None:
            child.terminate()
            child.wait()
