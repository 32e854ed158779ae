"""Who holds the node's chip: one container at a time, and for a while nobody but the memory of a killed one."""

from __future__ import annotations

import math

from tpudeploy.emulator.clock import Clock
from tpudeploy.emulator.machine.root import Root

# What libtpu says of a chip that another process holds (published: marin #4675).
BUSY = "RuntimeError: TPU initialization failed: open(/dev/vfio/0): Device or resource busy"
_HOLDER = "proc/4242/fd"  # as Linux shows an open file of a process, below the node's root


class Chip:
    """`busy` is for how many seconds a container that was killed keeps it."""

    def __init__(self, root: Root, busy: float, clock: Clock) -> None:
        self._root = root
        self._busy = busy
        self._clock = clock
        self._free_at = -math.inf

    @property
    def is_held(self) -> bool:
        return self._clock.now() < self._free_at

    def let_go(self) -> None:
        """Its container was killed."""
        if self._busy:
            self._free_at = self._clock.now() + self._busy
            folder = self._root.path / _HOLDER
            folder.mkdir(parents=True, exist_ok=True)
            (folder / "7").unlink(missing_ok=True)
            (folder / "7").symlink_to("/dev/vfio/0")

    def look(self) -> None:
        """Time may have passed."""
        if not self.is_held:
            (self._root.path / _HOLDER / "7").unlink(missing_ok=True)
