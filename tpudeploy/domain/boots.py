"""BootRecord: what was predicted of an engine and what it reported after a boot, without secrets and addresses."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field


@dataclass(frozen=True, slots=True, kw_only=True)
class BootRecord:
    """One boot that was verified. `at` is in seconds since the epoch, and `release` is what the engine reported.

    `digest` is that of the image, "" for one without a pin. Figures have the names of verified settings and of the
    parts of a chip's memory, in bytes, and of the parts of the start, in seconds: predicted are those of a cold one.
    `phases` are the parts of the start as the engine's log has them, in seconds; none where its log was not read.
    """

    at: float
    engine: str
    release: str
    digest: str
    model: str
    accelerator_type: str
    predicted: Mapping[str, float]
    measured: Mapping[str, float]
    phases: Mapping[str, float] = field(default_factory=dict)

    def deviation(self, name: str) -> float | None:
        """Return measured / predicted - 1, or None where one of them is not known."""
        before, after = self.predicted.get(name), self.measured.get(name)
        return None if not before or after is None else after / before - 1
