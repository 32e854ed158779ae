"""Verification: the declared settings of each replica against the effective ones by source, and its details."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.serialization import to_json


class Verdict(StrEnum):
    HOLDS = "holds"
    DIFFERS = "differs"  # the declared value is not in effect
    OFF = "off"  # the measured value is not the predicted one
    UNTOLD = "untold"  # no source reports it


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineReport:
    """The values that the engine reports, by source; an empty source gave nothing.

    `api` is from /v1/models and /version, `cache` from the labels of `vllm:cache_config_info` in /metrics, `log` from
    the boot log. Values are verbatim. `phases` are the parts of the start in that log, in seconds. `silent` says for
    each source that gave nothing why.
    """

    api: Mapping[str, str] = field(default_factory=dict)
    cache: Mapping[str, str] = field(default_factory=dict)
    log: Mapping[str, str] = field(default_factory=dict)
    phases: Mapping[str, float] = field(default_factory=dict)
    silent: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifiedSetting:
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

    def to_dict(self, replica: str) -> dict[str, object]:
        """Return the row of a setting in the document of `tpudeploy verify --json`."""
        return {
            "replica": replica,
            "name": self.name,
            "declared": self.declared,
            "effective": dict(self.effective),
            "verdict": str(self.verdict),
            "deviation": self.deviation,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaVerification:
    """The settings of one replica's engine. `silent` is as in `EngineReport`.

    `basis` says which release predicted values are for, where the arithmetic is not that of the image's own; or "".
    """

    ADDED_LATER = frozenset({"basis"})
    address: str
    slice_name: str
    settings: tuple[VerifiedSetting, ...]
    silent: Mapping[str, str] = field(default_factory=dict)
    basis: str = ""

    @property
    def broken(self) -> tuple[VerifiedSetting, ...]:
        """The settings that are declared and not in effect."""
        return self.with_verdict(Verdict.DIFFERS)

    @property
    def is_observed(self) -> bool:
        """Whether the engine itself reported a setting, by its API or its metrics. A boot log is older than now."""
        return any({"api", "metrics"} & set(setting.effective) for setting in self.settings)

    @property
    def is_open(self) -> bool:
        """Whether some setting in the profile is reported by no source."""
        return any(s.is_written and s.verdict is Verdict.UNTOLD for s in self.settings)

    def with_verdict(self, verdict: Verdict) -> tuple[VerifiedSetting, ...]:
        return tuple(s for s in self.settings if s.verdict is verdict)

    def value(self, name: str) -> str:
        """Return the value in effect by the first source, or "" where no source reports it."""
        return next((s.value for s in self.settings if s.name == name), "")


@dataclass(frozen=True, slots=True, kw_only=True)
class Verification:
    """The verification of all engines of one deployment.

    `absent` are the addresses of replicas that have no machine to ask.
    """

    name: str
    replicas: tuple[ReplicaVerification, ...]
    absent: tuple[str, ...] = ()

    @property
    def mute(self) -> tuple[str, ...]:
        """The addresses of replicas of which no setting is known."""
        return tuple(r.address for r in self.replicas if not r.with_verdict(Verdict.HOLDS) and not r.broken)

    @property
    def broken(self) -> tuple[VerifiedSetting, ...]:
        """The settings of all replicas that are declared and not in effect."""
        return tuple(setting for replica in self.replicas for setting in replica.broken)

    @property
    def silent_replicas(self) -> tuple[str, ...]:
        """The addresses of replicas whose engine did not answer; a boot log is older than now."""
        return tuple(replica.address for replica in self.replicas if not replica.is_observed)

    @property
    def holds(self) -> bool:
        return not self.broken and not self.silent_replicas

    def to_dict(self) -> dict[str, object]:
        """Return the document of `tpudeploy verify --json` without its format."""
        rows = [setting.to_dict(replica.address) for replica in self.replicas for setting in replica.settings]
        silent = {replica.address: dict(replica.silent) for replica in self.replicas if replica.silent}
        return {
            "name": self.name,
            "holds": self.holds,
            "settings": rows,
            "silent": silent,
            "absent": list(self.absent),
            "unobserved": list(self.silent_replicas),
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineSetting:
    """One setting: the value by the profile and the value that the engine reports, or ""."""

    name: str
    planned: str
    told: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Share:
    """One part of a chip's HBM, in bytes; None where it is unknown."""

    name: str
    planned: int | None
    measured: int | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Details:
    """The details of one replica. `memory` is that of one chip; all chips hold the same.

    `process_bytes` is the resident memory of the API server on the machine. `silent` says for each source that gave
    nothing why.
    """

    address: str
    slice_name: str
    facts: tuple[EngineSetting, ...]
    memory: tuple[Share, ...]
    process_bytes: int | None
    silent: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        """Return one of the `details` of `status --details --json`."""
        document: dict[str, object] = to_json(self)
        return document
