"""A fleet in one run, whole processes measured: `validate` and `plan` of so many profiles, and what applying them took.

A benchmark, not a test: `python tests/bench/fleet.py [DEPLOYMENTS...]`. The emulator answers at once and stands in this
process, the measured command in one of its own, at the emulator's virtual time.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections import Counter
from pathlib import Path
from unittest.mock import patch

from tpudeploy.domain.patience import Patience
from tpudeploy.emulator import VirtualClock, running
from tpudeploy.loading import Profile
from tpudeploy.workspace import Workspace

PROFILE = """\
version: 1
name: d{number:04}
model: {{id: google/gemma-4-E2B-it}}
tpu: {{type: v6e-1}}
secrets: {{VLLM_API_KEY: vllm-key}}
serving: {{image: "vllm/vllm-tpu:v0.32.0", max_model_len: 16384}}
placement:
  zones: [us-east5-a, us-east5-b, europe-west4-a]
  provisioning: [flex-start, spot]
  max_run_duration: 12h
"""
SCENARIO = {
    "nodes": "simulated",
    "boot": {"boot_seconds": 0},
    "creates_per_minute": 1_000_000,
    "timings": {"queued": 0, "waiting": 0, "provisioning": 0, "node_ready": 0, "deleting": 0},
}
# As the console script, but at the emulator's time.
COMMAND = """\
import gc, os, sys
from tpudeploy.cli.main import main
from tpudeploy.emulator import VirtualClock
gc.disable()
code = main(sys.argv[2:], clock=VirtualClock(start=float(sys.argv[1])))
sys.stdout.flush()
with open("/proc/self/status") as told:
    sys.stderr.write(next(line for line in told if line.startswith("VmHWM:")))
sys.stderr.flush()
os._exit(code)
"""


def main(deployments: int) -> None:
    clock = VirtualClock()
    with (
        tempfile.TemporaryDirectory() as name,
        running(clock=clock, scenario=SCENARIO) as emulator,
        patch.dict("os.environ", {**emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated"}),
    ):
        folder = Path(name)
        (folder / "fleet").mkdir()
        for number in range(deployments):
            (folder / "fleet" / f"d{number:04}.yaml").write_text(PROFILE.format(number=number), encoding="utf-8")
        say(deployments, "apply, fresh", applied(folder, clock))
        for what in ("validate", "plan", "status"):
            before = len(emulator.requests)
            # The least of three: on a busy machine even CPU time grows.
            took = min(command(folder, clock, what, "fleet") for _ in range(3))
            say(deployments, what, f"{took}, {(len(emulator.requests) - before) // 3} requests")


def applied(folder: Path, clock: VirtualClock) -> str:
    """In this process, with the emulator: what counts is how it grows."""
    profiles = [Profile.load(path) for path in sorted((folder / "fleet").iterdir())]
    with Workspace.open(folder, clock=clock, patience=Patience(create_every=0.001)) as workspace:
        plan = workspace.plan(profiles)
        began, spent = time.perf_counter(), time.process_time()
        report = workspace.apply(plan)
        wall, cpu = time.perf_counter() - began, time.process_time() - spent
    failed = Counter(type(o.error).__name__ for o in report.outcomes if o.error is not None)
    each = f"{1000 * cpu / len(profiles):.1f} ms each, emulator included"
    return f"{wall:6.2f} s, {cpu:6.2f} s of CPU, {each}{f', failed: {dict(failed)}' if failed else ''}"


def command(folder: Path, clock: VirtualClock, *arguments: str) -> str:
    """One command in a process of its own: seconds, seconds of CPU, its largest size."""
    words = [sys.executable, "-c", COMMAND, str(clock.now()), *arguments, "--chdir", str(folder)]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile("w+") as err:
        began = time.perf_counter()
        process = subprocess.Popen(words, stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        wall = time.perf_counter() - began
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        output = err.read()
    if process.returncode:
        sys.exit(f"{arguments} ended with {process.returncode}:\n{output[-2000:]}")
    # Not `used.ru_maxrss`: until it becomes the command, a child counts as large as this process.
    largest = int(output.split("VmHWM:")[1].split()[0]) / 1024
    return f"{wall:6.2f} s, {used.ru_utime + used.ru_stime:6.2f} s of CPU, {largest:.0f} MiB at most"


def say(deployments: int, what: str, figures: str) -> None:
    sys.stdout.write(f"{deployments:>6}  {what:<14}{figures}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    for count in map(int, sys.argv[1:] or ("125", "250", "500", "1000")):
        main(count)
