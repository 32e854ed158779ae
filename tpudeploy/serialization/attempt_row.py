"""An attempt as one row of flags and times: what `state show` and `import` print of a slice. No file has it."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tpudeploy.domain.deployment import Json, Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.state import Attempt


@dataclass(frozen=True, slots=True, kw_only=True)
class AttemptRow:
    """One request for one slice. It is saved before the request is sent, and dropped when the slice is surely absent.

    It says in flags and times what `Attempt.life`, `boot`, `update` and `change` say. Never decide on it.
    """

    name: str
    project: str
    zone: Zone
    provisioning: Provisioning
    spec: Mapping[str, Json]
    asked_at: float
    booted: str
    expires_at: float | None = None
    operation: str | None = None
    seen: bool = False
    granted_at: float | None = None
    provisioning_at: float | None = None
    releasing_at: float | None = None
    release_reason: str = ""
    deletion: str | None = None
    booted_at: float | None = None
    booted_before: str = ""
    boot_asked: bool = True
    update_asked: str = ""
    update_asked_at: float = 0.0
    served: bool = False
    is_to_go: bool = False
    is_lost: bool = False
    script: str = ""
    change: str = ""
    told_at: float = 0.0
    is_failed: bool = False
    draining_at: float | None = None
    is_ending: bool = False
    not_in_effect: Mapping[str, str] = field(default_factory=dict)
    is_spare: bool = False
    is_reclaimed: bool = False


def attempt_row(attempt: Attempt) -> AttemptRow:
    """Return the row that shows this attempt."""
    return AttemptRow(
        name=attempt.name,
        project=attempt.project,
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        spec=attempt.spec,
        asked_at=attempt.asked_at,
        booted=attempt.boot.server,
        expires_at=attempt.expires_at,
        operation=attempt.operation,
        seen=attempt.is_listed,
        granted_at=attempt.granted_at,
        provisioning_at=attempt.provisioning_at,
        releasing_at=attempt.releasing_at,
        release_reason=attempt.release_reason,
        deletion=attempt.ref.deletion,
        booted_at=attempt.boot.at,
        booted_before=attempt.boot.previous,
        boot_asked=attempt.boot.is_sent,
        update_asked="" if attempt.update is None else attempt.update.server,
        update_asked_at=0.0 if attempt.update is None else attempt.update.at,
        served=attempt.is_announced,
        is_to_go=attempt.is_to_go,
        is_lost=attempt.is_lost,
        script=attempt.script,
        change=attempt.change_name,
        told_at=0.0 if attempt.change is None else attempt.change.sent_at,
        is_failed=attempt.is_failed,
        draining_at=attempt.draining_at,
        is_ending=attempt.is_ending,
        not_in_effect=attempt.not_in_effect,
        is_spare=attempt.is_spare,
        is_reclaimed=attempt.reclaim is not None,
    )
