"""Many deployments that hunt at once, to their end, in one process and in virtual time: what that takes.

A benchmark, not a test: `python tests/bench/many.py [DEPLOYMENTS] [HOURS]`. Every zone is full for so
many hours; then one after the other opens for ten minutes, and has chips for a fifth of those who ask.
"""

from __future__ import annotations

import gc
import os
import sys
import tempfile
import threading
import time
from bisect import bisect_right
from collections import Counter
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any
from unittest.mock import patch

from tpudeploy.domain import events
from tpudeploy.emulator import Emulator, VirtualClock, running
from tpudeploy.emulator.trouble import Trouble
from tpudeploy.loading import Profile
from tpudeploy.ports import World
from tpudeploy.wiring import Adapters
from tpudeploy.workspace import Workspace

ZONES = (
    *("us-east5-a", "us-east5-b", "us-east5-c", "us-central1-a", "us-central1-b", "us-central1-c"),
    *("europe-west4-a", "asia-northeast1-b", "us-east1-d", "us-west1-c", "us-south1-a", "asia-southeast1-b"),
)
PROFILE = """\
version: 1
name: {name}
model: {{id: google/gemma-4-E2B-it}}
tpu: {{type: v6e-1}}
serving: {{image: "vllm/vllm-tpu:v0.32.0", max_model_len: 16384}}
placement:
  zones: [{zones}]
  provisioning: [flex-start, spot]
  max_run_duration: 12h
  max_parallel_requests: 8
"""
FULL: tuple[Mapping[str, Any], ...] = (
    {"fault": "wait-for-ever", "model": "FLEX_START"},
    {"fault": "stockout", "model": "SPOT"},
)
SOME: Mapping[str, Any] = {"fault": "stockout", "model": "SPOT", "chance": 0.8}
HOUR, WINDOW, MINUTE, MIB = 3600.0, 600.0, 60.0, 2**20
MOST_CREATES = 91  # a minute, from one project: what Google takes


def main(deployments: int, hours: float) -> None:
    clock = VirtualClock()
    scenario = {"nodes": "simulated", "boot": {"boot_seconds": 60}, "creates_per_minute": MOST_CREATES}
    with (
        tempfile.TemporaryDirectory() as folder,
        running(clock=clock, scenario=scenario) as emulator,
        patch.dict("os.environ", {**emulator.environment, "GOOGLE_CLOUD_PROJECT": "emulated"}),
        Measured(Path(folder), clock=clock) as workspace,
    ):
        gauge = workspace.adapters.gauge = Gauge(emulator, clock)
        profiles = list(_profiles(Path(folder), deployments))
        clock.on_advance += [_weather(emulator, clock, until=clock.now() + hours * HOUR), gauge.sample]
        began, start = time.perf_counter(), clock.now()
        report = workspace.apply(workspace.plan(profiles), on_event=gauge.hear)
        wall, lasted = time.perf_counter() - began, clock.now() - start
        states = Counter(state for zone in emulator.live().values() for state in zone.values())
        failed = Counter(type(o.error).__name__ for o in report.outcomes if o.error is not None)
    figures = {
        "deployments": f"{deployments}, {sum(failed.values())} failed {dict(failed) or ''}",
        "slices at the end": f"{dict(states)}",
        "virtual time": f"{lasted / HOUR:.1f} h",
        "wall time": f"{wall:.0f} s",
        "looks": f"{gauge.looks}, each at {gauge.gets / gauge.looks:.1f} requests",
        "creates": f"{len(gauge.created_at)}, at most {gauge.creates_in_a_minute} in a minute, of {MOST_CREATES}",
        "refused": f"{dict(gauge.refused)}",
        "threads": f"{gauge.threads} at most",
        "memory": gauge.memory,
    }
    for name, figure in figures.items():
        print(f"{name.ljust(18)}  {figure}")


def _profiles(folder: Path, deployments: int) -> Iterator[Any]:
    for number in range(deployments):
        path = folder / f"gemma-{number}.yaml"
        path.write_text(PROFILE.format(name=f"gemma-{number}", zones=", ".join(ZONES)), encoding="utf-8")
        yield Profile.load(path)


def _weather(emulator: Emulator, clock: VirtualClock, *, until: float) -> Callable[[], None]:
    """Full everywhere until then; afterwards one zone at a time has some chips."""
    current: int | None = -1

    def change() -> None:
        nonlocal current
        passed = int((clock.now() - until) // WINDOW)
        opened = passed % len(ZONES) if passed >= 0 else None
        if opened != current:
            current = opened
            shut = (z for n, z in enumerate(ZONES) if n != opened)
            rows = [{**row, "zone": zone} for zone in shut for row in FULL]
            some = [] if opened is None else [{**SOME, "zone": ZONES[opened]}]
            emulator._cloud.troubles[:] = [Trouble.parse(row) for row in (*some, *rows)]

    change()
    return change


@dataclass
class Gauge:
    """What is measured on the way. What the emulator alone remembers of the past is cleared away each hour."""

    emulator: Emulator
    clock: VirtualClock
    looks: int = 0
    gets: int = 0
    threads: int = 0
    created_at: list[float] = field(default_factory=list)
    refused: Counter[str] = field(default_factory=Counter)
    _hours: list[tuple[float, float]] = field(default_factory=list)
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def hear(self, event: events.Event) -> None:
        with self._lock:
            if isinstance(event, events.Requested):
                self.created_at.append(event.at)
            elif isinstance(event, events.NotGranted):
                self.refused[event.kind] += 1

    def count_look(self) -> None:
        with self._lock:
            self.looks += 1

    def count_get(self) -> None:
        with self._lock:
            self.gets += 1

    def sample(self) -> None:
        ours = [t for t in threading.enumerate() if "(_serve)" not in t.name and not t.name.startswith("emulator")]
        self.threads = max(self.threads, len(ours))
        now = self.clock.now()
        if self._hours and now - self._hours[-1][0] < HOUR:
            return
        self.emulator._service.requests.clear()
        operations = self.emulator._cloud.operations
        for name in [n for n, o in operations.items() if o.ended_at is not None and o.ended_at < now - WINDOW]:
            del operations[name]
        gc.collect()
        resident = int(Path("/proc/self/statm").read_text().split()[1]) * os.sysconf("SC_PAGE_SIZE") / MIB
        self._hours.append((now, resident))

    @property
    def creates_in_a_minute(self) -> int:
        moments = sorted(self.created_at)
        return max(bisect_right(moments, m + MINUTE) - n for n, m in enumerate(moments))

    @property
    def memory(self) -> str:
        """The first hours are spent on imports and connections; what counts is whether it grows after those."""
        return f"{', '.join(f'{mib:.0f}' for _, mib in self._hours)} MiB resident, hour by hour, the emulator included"


class CountedAdapters(Adapters):
    """The library as it is, its looks counted: the lock is taken for each, and a request is looked at in each."""

    gauge: Gauge

    def world(self, on_event: Callable[[events.Event], None] | None = None) -> World:
        world = super().world(on_event)
        cloud = _Counted(world.cloud, "slices", self.gauge.count_get)
        return replace(world, cloud=cloud, state=_Counted(world.state, "lock", self.gauge.count_look))


class Measured(Workspace):
    adapters_class = CountedAdapters
    adapters: CountedAdapters


class _Counted:
    """A port, one of whose methods is counted."""

    def __init__(self, port: Any, method: str, count: Callable[[], None]) -> None:
        self._port, self._method, self._count = port, method, count

    def __getattr__(self, name: str) -> Any:
        if name == self._method:
            self._count()
        return getattr(self._port, name)


if __name__ == "__main__":
    main(*(int(sys.argv[1]) if len(sys.argv) > 1 else 50, float(sys.argv[2]) if len(sys.argv) > 2 else 3.0))
