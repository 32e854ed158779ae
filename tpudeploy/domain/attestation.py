"""The declared settings of a profile against the effective ones: one row per setting of each replica, with sources."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.frozen import frozen


class Verdict(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"  # the declared value is not in effect
    OFF = "off"  # the measured value is not the predicted one
    UNTOLD = "untold"  # no source reports it


@frozen
class Told:
    """The values that the engine reports, by source; an empty source gave nothing.

    `api` is from /v1/models and /version, `cache` from the labels of `vllm:cache_config_info` in /metrics, `log` from
    the boot log. Values are verbatim. `silent` says for each source that gave nothing why.
    """

    api: Mapping[str, str] = field(default_factory=dict)
    cache: Mapping[str, str] = field(default_factory=dict)
    log: Mapping[str, str] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


@frozen
class Attested:
    """One setting. `effective` maps each source to its value, contradicting sources first.

    `deviation` is measured divided by predicted, minus 1 (0.003: 0.3 % more). `is_written`: the profile itself states
    the value. Otherwise `declared` is the value that follows from the profile, or "".
    """

    name: str
    declared: str
    effective: Mapping[str, str]
    verdict: Verdict
    deviation: float | None = None
    is_written: bool = False

    @property
    def value(self) -> str:
        """The value of the first source, which contradicts the profile if any source does; "" without sources."""
        return next(iter(self.effective.values()), "")


@frozen
class Attestation:
    """The settings of one replica's engine. `silent` is as in `Told`."""

    address: str
    slice_name: str
    settings: tuple[Attested, ...]
    silent: Mapping[str, str] = field(default_factory=dict)

    @property
    def broken(self) -> tuple[Attested, ...]:
        """The settings that are declared and not in effect."""
        return self.with_verdict(Verdict.DIFFERS)

    @property
    def is_open(self) -> bool:
        """Whether no source reports some setting that the profile states."""
        return any(s.is_written and s.verdict is Verdict.UNTOLD for s in self.settings)

    def with_verdict(self, verdict: Verdict) -> tuple[Attested, ...]:
        return tuple(s for s in self.settings if s.verdict is verdict)

    def value(self, name: str) -> str:
        """Return the value in effect by the first source, or "" where no source reports it."""
        return next((s.value for s in self.settings if s.name == name), "")


@frozen
class Verification:
    """The verification of all engines of one deployment.

    `absent` are the addresses of replicas that have no machine to ask.
    """

    name: str
    replicas: tuple[Attestation, ...]
    absent: tuple[str, ...] = ()

    @property
    def mute(self) -> tuple[str, ...]:
        """The addresses of replicas of which no setting is known."""
        return tuple(r.address for r in self.replicas if not r.with_verdict(Verdict.HOLDS) and not r.broken)

    @property
    def holds(self) -> bool:
        return not any(replica.broken for replica in self.replicas)

    def to_dict(self) -> dict[str, object]:
        """Return the document of `tpudeploy verify --json` without its format."""
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
        absent = list(self.absent)
        return {"name": self.name, "holds": self.holds, "settings": rows, "silent": silent, "absent": absent}
