"""What a verified boot says of the prediction: the record that is kept of it."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.boots import BootRecord
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.compilation import PredictedStart
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.verify import EngineReport, ReplicaVerification
from tpudeploy.pins import digest_in
from tpudeploy.sizing.numbers import parse_number
from tpudeploy.verify.details import memory_of

_FIGURES = ("num_blocks", "kv_cache_tokens", "kv_bytes_per_token", "graphs", "compile_seconds")


# The parts of a chip's memory by their names for people (`details.memory_of`).
_SHARES = {
    "weights": "weights_bytes",
    "KV cache": "kv_cache_bytes",
    "programs need": "program_bytes",
    "room for programs": "program_room_bytes",
    "HBM": "hbm_bytes",
}

# The parts of a predicted start (sizing/starts.py), and the phases of a boot log that they are.
_PHASES = {
    "process_seconds": ("container", "imports", "engine"),
    "weights_seconds": ("weights",),
    "compile_seconds": ("compile",),
    "ready_seconds": ("warm-up",),
}


def record_of(
    deployment: Deployment, verification: ReplicaVerification, report: EngineReport, *, at: float
) -> BootRecord | None:
    """Return the record of a boot, or None if its engine reported no release."""
    release = verification.value("version")
    if not release:
        return None
    predicted, measured = _figures(deployment, verification, report)
    return BootRecord(
        at=at,
        engine=deployment.engine.kind.value,
        release=release,
        digest=digest_in(deployment.attributes),
        model=deployment.model_id,
        accelerator_type=deployment.accelerator.name,
        predicted=_without_none(predicted),
        measured=_without_none(measured),
        phases=report.phases,
    )


def _figures(
    deployment: Deployment, verification: ReplicaVerification, report: EngineReport
) -> tuple[dict[str, float | None], dict[str, float | None]]:
    """Return the predicted figures by name, and the measured ones."""
    settings = {setting.name: setting for setting in verification.settings if setting.name in _FIGURES}
    predicted = {name: parse_number(setting.declared) for name, setting in settings.items()}
    measured = {name: parse_number(setting.value) for name, setting in settings.items()}
    if isinstance(deployment.budget, HbmBudget):
        shares = {_SHARES[share.name]: share for share in memory_of(deployment.budget, report)}
        predicted |= {name: share.planned for name, share in shares.items()}
        measured |= {name: share.measured for name, share in shares.items()}
        predicted |= _predicted_phases(deployment.budget.start)
        measured = {**_measured_phases(report.phases), **_present(measured)}
    return predicted, measured


def _present(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if value is not None}


def _predicted_phases(start: PredictedStart) -> Mapping[str, float]:
    """Return the seconds of each part of a cold start."""
    graphs = sum(group.count for group in start.groups)
    return {name: getattr(start, name) for name in _PHASES if name != "compile_seconds"} | {
        "compile_seconds": start.compile_seconds(graphs)
    }


def _without_none(figures: Mapping[str, float | None]) -> dict[str, float]:
    return {name: value for name, value in figures.items() if value is not None}


def _measured_phases(phases: Mapping[str, float]) -> dict[str, float]:
    """Return the seconds of those parts of which the log has a phase."""
    parts = {name: [phases[each] for each in names if each in phases] for name, names in _PHASES.items()}
    return {name: sum(seconds) for name, seconds in parts.items() if seconds}
