"""An attempt as one flat row: the shape of state format 1, and of the documents that show a slice to users."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field

from tpudeploy.domain.deployment import Json, Provisioning
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.life import (
    Detached,
    Draining,
    Granted,
    Landing,
    Life,
    Lost,
    Queued,
    Reclaimed,
    Releasing,
    Requested,
    Serving,
    Starting,
    Waiting,
)
from tpudeploy.domain.names import Zone
from tpudeploy.domain.state import Attempt, Boot, MetadataUpdate, NodeChange


@frozen
class FlatAttempt:
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


def flat(attempt: Attempt) -> FlatAttempt:
    """Return the row that shows this attempt."""
    return FlatAttempt(
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


def unflattened(row: FlatAttempt) -> Attempt:
    """Return the attempt that a row of a state in format 1 describes."""
    has_update = bool(row.update_asked) or row.update_asked_at > 0
    return Attempt(
        name=row.name,
        project=row.project,
        zone=row.zone,
        provisioning=row.provisioning,
        spec=row.spec,
        asked_at=row.asked_at,
        boot=Boot(server=row.booted, at=row.booted_at, previous=row.booted_before, is_sent=row.boot_asked),
        expires_at=row.expires_at,
        operation=row.operation,
        life=_life(row),
        update=MetadataUpdate(server=row.update_asked, at=row.update_asked_at) if has_update else None,
        change=NodeChange(name=row.change, sent_at=row.told_at) if row.change else None,
        script=row.script,
        is_failed=row.is_failed,
        is_to_go=row.is_to_go,
        is_ending=row.is_ending,
        not_in_effect=row.not_in_effect,
    )


def _life(row: FlatAttempt) -> Life:
    """Return the life of a row, built from the inside out: how far it came, its loss, its reclaim, its release."""
    granted = _granted(row)
    reached: Waiting | Granted | Lost = _waiting(row) if granted is None else granted
    if row.is_lost and granted is not None:
        reached = Lost(before=granted)
    is_releasing = row.releasing_at is not None
    before: Waiting | Granted | Lost | Reclaimed = reached
    if row.is_reclaimed:
        before = Reclaimed(before=reached, deletion=None if is_releasing else row.deletion)
    if row.releasing_at is None:
        return before
    return Releasing(
        before=before,
        releasing_at=row.releasing_at,
        reason=row.release_reason,
        is_spare=row.is_spare,
        deletion=row.deletion,
    )


def _waiting(row: FlatAttempt) -> Waiting:
    if row.provisioning_at is not None:
        return Landing(provisioning_at=row.provisioning_at)
    return Queued() if row.seen else Requested()


def _granted(row: FlatAttempt) -> Granted | None:
    """Return its state after the grant, or None before it."""
    granted_at = row.granted_at
    if granted_at is None and (row.served or row.is_lost or row.draining_at is not None):
        # No version wrote that, but a person may have: what served was granted, at the latest when it was seen to land.
        granted_at = row.asked_at if row.provisioning_at is None else row.provisioning_at
    if granted_at is None:
        return None
    if row.draining_at is None:
        state = Serving if row.served else Starting
        return state(granted_at=granted_at, provisioning_at=row.provisioning_at)
    drained = Draining if row.served else Detached
    return drained(granted_at=granted_at, draining_at=row.draining_at, provisioning_at=row.provisioning_at)
