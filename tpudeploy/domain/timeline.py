"""How one machine came to serve: each part of its last start, when it ran, and which parts made it take so long."""

from __future__ import annotations

from tpudeploy.domain.bootlog import Phase, Reading
from tpudeploy.domain.frozen import frozen


@frozen
class Timeline:
    """`reading` holds the parts; `critical` are those by whose length the start would shrink, first to last.

    `cache` is what the machine says of its compile cache, "" for none. `is_whole` False: its log could not be had, so
    what the server did in its container is one part.
    """

    address: str
    slice_name: str
    reading: Reading
    critical: tuple[Phase, ...]
    cache: str = ""
    is_whole: bool = True

    def to_dict(self) -> dict[str, object]:
        """One of the `timelines` that `status --timeline --json` prints."""
        told = self.reading.to_dict()
        return {
            "address": self.address,
            "slice": self.slice_name,
            "serving": told["serving"],
            "seconds": told["seconds"],
            "phases": told["phases"],
            "critical": [phase.name for phase in self.critical],
            "cache": self.cache,
            "whole": self.is_whole,
        }
