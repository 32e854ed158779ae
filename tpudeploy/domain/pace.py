"""The speed of an emulator's time. All processes of the same emulator read the same variable, so they agree."""

from __future__ import annotations

import math
from dataclasses import dataclass
from typing import Self

from tpudeploy.domain.errors import ConfigError

VARIABLE = "TPUDEPLOY_EMULATED_TIME"
LOOP_PATH = "/emulator/loop"  # where the emulator's stand-in computes the answers to a whole cell of load


@dataclass(frozen=True, slots=True, kw_only=True)
class Pace:
    """Emulated time equals real time at `origin` and then runs `speed` times as fast. Seconds since the epoch."""

    origin: float
    speed: float

    def moment(self, real: float) -> float:
        """Return the emulated moment at a real one."""
        return self.origin + (real - self.origin) * self.speed

    def real_seconds(self, seconds: float) -> float:
        """Return the real seconds that a number of emulated seconds last."""
        return seconds / self.speed

    def text(self) -> str:
        """Return the value of the environment variable, e.g. `60@1790000000.0`."""
        return f"{self.speed!r}@{self.origin!r}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Parse the result of `text()`. Raise ConfigError for anything else."""
        speed, _, origin = text.partition("@")
        try:
            pace = cls(origin=float(origin), speed=float(speed))
        except ValueError:
            pace = cls(origin=0.0, speed=0.0)
        if not (0 < pace.speed < math.inf and 0 < pace.origin < math.inf):
            raise ConfigError(
                f"{VARIABLE} is `{text}`, which is not a speed and a moment such as `60@1790000000.0`.",
                hint=f"Unset {VARIABLE}. `tpudeploy emulator run --speed 60 -- COMMAND` sets it for its command.",
            )
        return pace
