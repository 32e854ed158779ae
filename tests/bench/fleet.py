"""Measure a fleet in one run, by whole processes: what each command takes for so many profiles, and how that grows.

A benchmark, not a test: `python tests/bench/fleet.py [new] [DEPLOYMENTS...]`. A fleet has fifty kinds of profiles, which
differ in a label, and the profiles of a kind differ in their names. The emulator stands in this process and answers at
once, the measured command in a process of its own, at the emulator's virtual time: so the CPU of each is known. What `apply` takes each is without the plan that it begins with. With `new` nothing is applied: a
minute instead of an hour for 10,000. `TMPDIR=/dev/shm` keeps the states in memory: of what a disk takes, a virtual
machine pays most for the pages of new files, more or less by the hour. The last rows are how CPU and memory grow with a
deployment more, and what the zone history costs by its length.
"""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
import time
from collections.abc import Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path
from unittest.mock import patch

sys.path.insert(0, str(Path(__file__).parents[1]))

from adapters.state.samples import REFUSED
from shared_clock import SharedClock

from tpudeploy.adapters.state.local import LocalState
from tpudeploy.emulator import running
from tpudeploy.serialization.capacity_history import format_entry

PROFILE = """\
version: 1
name: d{number:05}
model: {{id: google/gemma-4-E2B-it}}
tpu: {{type: v6e-1}}
secrets: {{VLLM_API_KEY: vllm-key}}
serving: {{image: "vllm/vllm-tpu:v0.32.0", max_model_len: 16384}}
placement:
  labels: {{team: team{kind:02}}}
  zones: [us-east5-a, us-east5-b, europe-west4-a]
  provisioning: [flex-start, spot]
  max_run_duration: 12h
"""
KINDS = 50  # of profiles that differ in their names alone
SCENARIO = {
    "nodes": "simulated",
    "boot": {"boot_seconds": 0},
    "creates_per_minute": 1_000_000,
    "timings": {"queued": 0, "waiting": 0, "provisioning": 0, "node_ready": 0, "deleting": 0},
}
START = 1_790_000_000.0  # of virtual time, in seconds since the epoch
# As the console script, but at the emulator's time: what passes here passes there too.
COMMAND = """\
import gc, os, sys
from pathlib import Path
sys.path.insert(0, sys.argv[2])
from shared_clock import SharedClock
from tpudeploy.cli.main import main
from tpudeploy.domain.patience import Patience
from tpudeploy.emulator import VirtualClock
gc.disable()
shared = SharedClock(Path(sys.argv[1]))
clock = VirtualClock(start=shared.now())
clock.on_advance.append(lambda: shared.sleep(clock.now() - shared.now()))
code = main(sys.argv[3:], clock=clock, patience=Patience(create_every=0.001))
sys.stdout.flush()
with open("/proc/self/status") as status:
    sys.stderr.write(next(line for line in status if line.startswith("VmHWM:")))
sys.stderr.flush()
os._exit(code)
"""
ZONE_HISTORIES = (1_000, 10_000, 100_000)  # lines


@dataclass(frozen=True, kw_only=True)
class Use:
    """What one command took: seconds, those of CPU of its own and of the emulator, and its largest size."""

    wall: float
    cpu: float
    emulator_cpu: float
    mib: float
    requests: int


def main(counts: Sequence[int], *, is_applied: bool) -> None:
    uses = [measure_fleet(count, is_applied=is_applied) for count in counts]
    for (few, before), (many, after) in pairwise(zip(counts, uses, strict=True)):
        grown = [f"{name} {growth(before[name], after[name], many - few)}" for name in after]
        say(many, "a profile more", f"from {few}: {', '.join(grown)}")
    for lines in ZONE_HISTORIES:
        say(lines, "lines", f"of zone history: {zone_history(lines)}")
    sys.stdout.write(f"load average {os.getloadavg()[0]:.1f} on {os.cpu_count()} cores\n")


def profile(number: int) -> str:
    return PROFILE.format(number=number, kind=number % KINDS)


def growth(before: Use, after: Use, more: int) -> str:
    """Return what one of so many more deployments takes."""
    return f"{1000 * (after.cpu - before.cpu) / more:.2f} ms and {1024 * (after.mib - before.mib) / more:.0f} KiB"


def measure_fleet(deployments: int, *, is_applied: bool) -> dict[str, Use]:
    with tempfile.TemporaryDirectory() as name:
        folder, clock = Path(name), SharedClock(Path(name, "clock"), start=START)
        (folder / "fleet").mkdir()
        for number in range(deployments):
            (folder / "fleet" / f"d{number:05}.yaml").write_text(profile(number), encoding="utf-8")
        with (
            running(clock=clock, scenario=SCENARIO) as emulator,
            patch.dict("os.environ", {**emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated"}),
        ):

            def run(*words: str, times: int = 1) -> Use:
                """Return the use of the run that took the least CPU: on a busy machine even CPU time grows."""
                uses: list[Use] = []
                for _ in range(times):
                    before = len(emulator.requests)
                    use = command(folder, *words)
                    uses.append(replace(use, requests=len(emulator.requests) - before))
                return min(uses, key=lambda use: use.cpu)

            uses = {"validate": run("validate", "fleet", times=3), "fresh plan": run("plan", "fleet", times=3)}
            if is_applied:
                uses["apply"] = run("apply", "-auto-approve", "fleet")
                uses |= {"plan": run("plan", "fleet", times=3), "status": run("status", "fleet", times=3)}
    for what, use in uses.items():
        each = ""
        if what == "apply":
            own, of_emulator = use.cpu - uses["fresh plan"].cpu, use.emulator_cpu - uses["fresh plan"].emulator_cpu
            each = f"; each {1000 * own / deployments:.1f} ms, and {1000 * of_emulator / deployments:.1f} ms of the emulator"
        figures = f"{use.wall:7.2f} s, {use.cpu:6.2f} s of CPU, {use.mib:.0f} MiB at most, {use.requests} requests"
        say(deployments, what, figures + each)
    return uses


def command(folder: Path, *arguments: str) -> Use:
    """Run one command in a process of its own."""
    words = [sys.executable, "-c", COMMAND, str(folder / "clock"), str(Path(__file__).parents[1])]
    with tempfile.TemporaryFile() as out, tempfile.TemporaryFile("w+") as err:
        began, cpu_began = time.perf_counter(), time.process_time()
        process = subprocess.Popen([*words, *arguments, "--chdir", str(folder)], stdout=out, stderr=err)
        _, status, used = os.wait4(process.pid, 0)
        wall, emulator_cpu = time.perf_counter() - began, time.process_time() - cpu_began
        process.returncode = os.waitstatus_to_exitcode(status)
        err.seek(0)
        output = err.read()
    if process.returncode:
        sys.exit(f"{arguments} ended with {process.returncode}:\n{output[-2000:]}")
    # Not `used.ru_maxrss`: until it becomes the command, a child counts as large as this process.
    mib = int(output.split("VmHWM:")[1].split()[0]) / 1024
    return Use(wall=wall, cpu=used.ru_utime + used.ru_stime, emulator_cpu=emulator_cpu, mib=mib, requests=0)


def zone_history(lines: int) -> str:
    """Return what one read of a history takes that an earlier version has left at this length."""
    with tempfile.TemporaryDirectory() as name:
        clock = SharedClock(Path(name, "clock"), start=START)
        path = Path(name, "zones.jsonl")
        path.write_text("".join(format_entry(replace(REFUSED, at=float(n))) for n in range(lines)), encoding="utf-8")
        began = time.process_time()
        entries = LocalState(Path(name), clock, who="bench").history()
        cpu = time.process_time() - began
        return f"{path.stat().st_size / 2**20:.1f} MiB, one read {1000 * cpu:.0f} ms of CPU, {len(entries)} entries"


def say(count: int, what: str, figures: str) -> None:
    sys.stdout.write(f"{count:>6}  {what:<14}{figures}\n")
    sys.stdout.flush()


if __name__ == "__main__":
    numbers = [int(word) for word in sys.argv[1:] if word != "new"]
    main(numbers or [125, 250, 500, 1000], is_applied="new" not in sys.argv)
