"""The timeline of one machine's last start: each part with its time, and the parts on the critical path."""

from __future__ import annotations

from tpudeploy.domain.bootlog import Phase, Reading
from tpudeploy.domain.frozen import frozen


@frozen
class Timeline:
    """One start. `reading` holds the parts; `critical` are those on the critical path, first to last.

    `cache` is the machine's report of its compile cache, or "". `is_whole` False: its log could not be read, so the
    work of the server in its container is one part.
    """

    address: str
    slice_name: str
    reading: Reading
    critical: tuple[Phase, ...]
    cache: str = ""
    is_whole: bool = True

    def to_dict(self) -> dict[str, object]:
        """Return one of the `timelines` of `status --timeline --json`."""
        reading = self.reading.to_dict()
        return {
            "address": self.address,
            "slice": self.slice_name,
            "serving": reading["serving"],
            "seconds": reading["seconds"],
            "phases": reading["phases"],
            "critical": [phase.name for phase in self.critical],
            "cache": self.cache,
            "whole": self.is_whole,
        }
