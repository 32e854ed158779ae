"""An emulated Cloud TPU: a server behind Google's real clients. `running()` is the door."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from tpudeploy.emulator.clock import Clock, RealClock, VirtualClock
from tpudeploy.emulator.emulator import Emulator
from tpudeploy.emulator.scenario import Scenario, ScenarioInvalid
from tpudeploy.emulator.timings import DEMO, Timings

__all__ = ["Clock", "Emulator", "RealClock", "Scenario", "ScenarioInvalid", "VirtualClock", "running"]


@contextmanager
def running(
    *, clock: Clock | None = None, scenario: Mapping[str, Any] | Path | str | None = None, port: int = 0
) -> Iterator[Emulator]:
    """An emulator for the length of a `with`. Without a clock, real time and a person's timings.

    Raise ScenarioInvalid for a scenario that cannot be played; its format stands in scenario.py.
    """
    timings = DEMO if clock is None or isinstance(clock, RealClock) else Timings()
    emulator = Emulator(clock=clock or RealClock(), scenario=Scenario.load(scenario, timings=timings), port=port)
    try:
        yield emulator
    finally:
        emulator.close()
