"""What a verified boot says of the prediction: the record that is kept of it."""

from __future__ import annotations

from tpudeploy.domain.boots import BootRecord
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.verify import ReplicaVerification
from tpudeploy.pins import digest_in
from tpudeploy.sizing.numbers import parse_number

_FIGURES = ("num_blocks", "kv_cache_tokens", "kv_bytes_per_token", "graphs", "compile_seconds")


def record_of(deployment: Deployment, verification: ReplicaVerification, *, at: float) -> BootRecord | None:
    """Return the record of a boot, or None if its engine reported no release."""
    release = verification.value("version")
    if not release:
        return None
    settings = {setting.name: setting for setting in verification.settings if setting.name in _FIGURES}
    predicted = {name: parse_number(setting.declared) for name, setting in settings.items()}
    measured = {name: parse_number(setting.value) for name, setting in settings.items()}
    return BootRecord(
        at=at,
        engine=deployment.engine.kind.value,
        release=release,
        digest=digest_in(deployment.attributes),
        model=deployment.model_id,
        accelerator_type=deployment.accelerator.name,
        predicted={name: value for name, value in predicted.items() if value is not None},
        measured={name: value for name, value in measured.items() if value is not None},
    )
