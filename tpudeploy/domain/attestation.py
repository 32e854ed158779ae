"""What a profile declares beside what its engine does: one row a setting, with who says so."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tpudeploy.domain.frozen import frozen


class Verdict(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"  # what was declared is not in effect
    OFF = "off"  # what was predicted is not what was measured
    UNTOLD = "untold"  # nobody says


@frozen
class Told:
    """The engine's own words, each source apart; an empty one gave nothing.

    `api`: from /v1/models and /version. `cache`: the labels of `vllm:cache_config_info` in /metrics. `log`: from the
    boot log. Values are as written there.
    """

    api: Mapping[str, str]
    cache: Mapping[str, str]
    log: Mapping[str, str]


@frozen
class Attested:
    """`effective`: source → value. `deviation`: the measured part of the predicted, less 1 (0.003: 0.3 % more)."""

    name: str
    declared: str
    effective: Mapping[str, str]
    verdict: Verdict
    deviation: float | None = None


@frozen
class Attestation:
    name: str
    settings: tuple[Attested, ...]

    @property
    def broken(self) -> tuple[Attested, ...]:
        """Declared, and not in effect."""
        return tuple(s for s in self.settings if s.verdict is Verdict.DIFFERS)

    def to_dict(self) -> dict[str, object]:
        """What `tpudeploy verify --json` prints, but for its format."""
        rows = [
            {
                "name": s.name,
                "declared": s.declared,
                "effective": dict(s.effective),
                "verdict": str(s.verdict),
                "deviation": s.deviation,
            }
            for s in self.settings
        ]
        return {"name": self.name, "holds": not self.broken, "settings": rows}
