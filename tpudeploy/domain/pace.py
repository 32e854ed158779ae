"""How fast an emulator's time runs. Every process before the same emulator reads the same line, so all agree."""

from __future__ import annotations

import math
from typing import Self

from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.frozen import frozen

VARIABLE = "TPUDEPLOY_EMULATED_TIME"


@frozen
class Pace:
    """Emulated time is `origin` at the real moment `origin`, and from then on `speed` times as fast as real time.

    Moments are seconds since the epoch.
    """

    origin: float
    speed: float

    def moment(self, real: float) -> float:
        """Return the emulated moment at a real one."""
        return self.origin + (real - self.origin) * self.speed

    def real_seconds(self, seconds: float) -> float:
        """Return how many real seconds so many emulated ones last."""
        return seconds / self.speed

    def text(self) -> str:
        """Return it as the environment variable has it, e.g. `60@1790000000.0`."""
        return f"{self.speed!r}@{self.origin!r}"

    @classmethod
    def parse(cls, text: str) -> Self:
        """Read what `text()` wrote. Raise ConfigError for anything else."""
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
