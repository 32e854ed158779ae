"""An emulated Cloud TPU: a server behind Google's real clients. `running()` is the door.

Each name is imported when it is asked for: every stand-in process passes through here, and needs none of them.

Why: decision 1 in docs/decisions.md.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpudeploy.emulator.clock import EmulatorClock, RealClock, VirtualClock
    from tpudeploy.emulator.emulator import Emulator, running
    from tpudeploy.emulator.scenario import Scenario

__all__ = ["Emulator", "EmulatorClock", "RealClock", "Scenario", "VirtualClock", "running"]

_HOMES = {
    "EmulatorClock": "clock",
    "Emulator": "emulator",
    "RealClock": "clock",
    "Scenario": "scenario",
    "VirtualClock": "clock",
    "running": "emulator",
}

if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module `tpudeploy.emulator` has no `{name}`")
        return getattr(import_module(f"tpudeploy.emulator.{_HOMES[name]}"), name)
