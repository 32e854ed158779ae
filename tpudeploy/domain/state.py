"""The state of one deployment: every request that may still exist, and why others were refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field, replace
from typing import Self

from tpudeploy.domain.deployment import Json, Provisioning
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import SliceName, Zone
from tpudeploy.domain.slices import Scope, SliceRef


@frozen
class Attempt:
    """One request for one slice. It is saved before the request is sent, and dropped when the slice is surely absent.

    `spec` is the requested configuration (see Deployment.attributes). `seen`: the cloud has listed it once; from then
    on a 404 means that it is gone, before that it may only be late. `booted` is the fingerprint of the server of its
    last boot, `booted_before` that of the server which a restart ended; `boot_asked` is False between the save of that
    and the request for the reboot. A request that still waits at `expires_at` lapses; None in earlier states.
    `deletion` is the operation of the last release. `is_to_go`: the user requested a replacement. `is_lost`: its loss
    is already recorded, so it is not news. `script` is the hash of the last startup script of its node, or "" in
    earlier states. `change` is the last change that was sent to its node (see node/node.py), at `told_at`, or "" if
    none was sent since its creation, or it is to be sent again. `is_failed`: that change failed, and the failure was
    reported; a later run sends it again. `served`: clients may use its endpoint. From `draining_at` on, clients are
    sent to another slice. `is_ending`: its run ends soon, and a successor may be requested. `not_in_effect` are the
    settings that differed from the declared ones at the last verification by an apply, each with both values.
    `is_spare`: it was released only because another slice was expected to replace it. `is_reclaimed`: such a slice is
    needed again after all; until its deletion is observed to have failed, it may still be deleted.
    Times are in seconds since the epoch.
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

    @property
    def ref(self) -> SliceRef:
        # Once granted, or seen and released, an absent slice is simply gone: its create operation has no say in that.
        is_settled = self.granted_at is not None or (self.seen and self.releasing_at is not None)
        return SliceRef(
            name=self.name,
            project=self.project,
            zone=self.zone,
            operation=None if is_settled else self.operation,
            provisioning=self.provisioning,
            deletion=self.deletion,
        )


@frozen
class Refused:
    """A refusal and how long it holds. `until` is in seconds since the epoch.

    `limit` and `known` are those of the refusal (domain/slices.py); `held` are the chips that we used ourselves of that
    limit at the time. `stops`: only a person can fix it. `times` counts its repetitions in a row. `landed`: it came
    after a grant that did not last, not instead of a grant (reconcile/placement.py).
    """

    zone: Zone
    provisioning: Provisioning
    kind: str
    scope: Scope
    message: str
    at: float
    until: float
    limit: int | None = None
    held: int = 0
    known: bool = True
    stops: bool = False
    times: int = 1
    landed: bool = False


@frozen
class Record:
    """One replica. `home` is the zone of its last slice, which is requested first after a loss.

    `lost` is the slice that served and was lost, or "" if there is none or another slice serves in its place.
    """

    index: int
    attempts: tuple[Attempt, ...] = ()
    refusals: tuple[Refused, ...] = ()
    home: Zone | None = None
    lost: str = ""

    def attempt(self, name: str) -> Attempt | None:
        return next((a for a in self.attempts if a.name == name), None)

    def with_attempt(self, attempt: Attempt) -> Self:
        """Return the record with this attempt added, or in place of the one with its name."""
        if self.attempt(attempt.name) is None:
            return replace(self, attempts=(*self.attempts, attempt))
        return replace(self, attempts=tuple(attempt if a.name == attempt.name else a for a in self.attempts))

    def without(self, name: str) -> Self:
        return replace(self, attempts=tuple(a for a in self.attempts if a.name != name))


@frozen
class Goal:
    """The approved target that a run began to apply. A later run may resume it without another approval.

    `fingerprint` is that of the target deployment, or "" to delete all of it. `removes`: the approved operation is a
    `destroy`; earlier states show that by the fingerprint alone. `approval` names the approval in a pipeline, for
    example a merged commit, or is "" for a user at a terminal.
    """

    fingerprint: str
    since: float
    who: str
    removes: bool = False
    approval: str = ""

    @property
    def is_removal(self) -> bool:
        """Whether the target is a `destroy` of all or a part of the deployment."""
        return self.removes or not self.fingerprint


@frozen
class Written:
    """The writer of a state and the operation, e.g. `apply` or `state mv`. `at` is in seconds since the epoch."""

    at: float
    by: str
    operation: str


@frozen
class State:
    """One deployment. `lineage` is created once; `serial` grows with every write; attempt numbers never repeat.

    `written` is None in states of earlier versions. `published` is the slice in `endpoints/NAME.json`, or "" for none
    and in states of earlier versions; `generation` is that of the file. `begun` counts the applies and destroys that
    began here, without renewals: an approval is valid only for the count at which its plan was made.
    """

    deployment: str
    lineage: str
    serial: int = 0
    next_attempt: int = 0
    goal: Goal | None = None
    records: tuple[Record, ...] = ()
    written: Written | None = None
    published: str = ""
    generation: int = 0
    begun: int = 0

    def record(self, index: int) -> Record:
        return next((r for r in self.records if r.index == index), Record(index=index))

    def with_record(self, record: Record) -> Self:
        others = tuple(r for r in self.records if r.index != record.index)
        return replace(self, records=tuple(sorted((*others, record), key=lambda r: r.index)))

    def slice_name(self, replica: int) -> SliceName:
        """Return the name of the next attempt."""
        return SliceName(
            deployment=self.deployment, lineage=self.lineage[:8], replica=replica, attempt=self.next_attempt
        )

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        return tuple(a for r in self.records for a in r.attempts)
