"""What a profile declares beside what its engines do: one row a setting of each replica, with who says so."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
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
    boot log. Values are as written there. `silent`: why a source gave nothing, by its name.
    """

    api: Mapping[str, str] = field(default_factory=dict)
    cache: Mapping[str, str] = field(default_factory=dict)
    log: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


@frozen
class Attested:
    """`effective`: source → value, contradiction first.

    `deviation`: the measured part of the predicted, less 1 (0.003: 0.3 % more).

    `is_written`: the profile itself says it. Else `declared` is what follows from it, "" where nothing does.
    """

    name: str
    declared: str
    effective: Mapping[str, str]
    verdict: Verdict
    deviation: float | None = None
    is_written: bool = False

    @property
    def value(self) -> str:
        """What its first witness says, who contradicts the profile where any does; "" where nobody says."""
        return next(iter(self.effective.values()), "")


@frozen
class Attestation:
    """Of the engine of one replica. `silent` as in `Told`."""

    address: str
    slice_name: str
    settings: tuple[Attested, ...]
    silent: Mapping[str, str] = field(default_factory=dict)

    @property
    def broken(self) -> tuple[Attested, ...]:
        """Declared, and not in effect."""
        return self.judged(Verdict.DIFFERS)

    @property
    def is_open(self) -> bool:
        """Whether something that the profile says is told by nobody."""
        return any(s.is_written and s.verdict is Verdict.UNTOLD for s in self.settings)

    def judged(self, verdict: Verdict) -> tuple[Attested, ...]:
        return tuple(s for s in self.settings if s.verdict is verdict)

    def value(self, name: str) -> str:
        """What is in effect, by its first witness; "" where nobody says."""
        return next((s.value for s in self.settings if s.name == name), "")


@frozen
class Verification:
    """All engines of one deployment."""

    name: str
    replicas: tuple[Attestation, ...]

    @property
    def holds(self) -> bool:
        return not any(replica.broken for replica in self.replicas)

    def to_dict(self) -> dict[str, object]:
        """What `tpudeploy verify --json` prints, but for its format."""
        rows = [
            {
                "replica": replica.address,
                "name": s.name,
                "declared": s.declared,
                "effective": dict(s.effective),
                "verdict": str(s.verdict),
                "deviation": s.deviation,
            }
            for replica in self.replicas
            for s in replica.settings
        ]
        silent = {replica.address: dict(replica.silent) for replica in self.replicas if replica.silent}
        return {"name": self.name, "holds": self.holds, "settings": rows, "silent": silent}
