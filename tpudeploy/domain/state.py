"""The state of one deployment: every request that may still exist, and why others were refused."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from typing import Annotated, ClassVar, Self

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import DEFAULT_PORT, Json, Place, Provisioning
from tpudeploy.domain.ending import PastEnd
from tpudeploy.domain.life import (
    Detached,
    Draining,
    Event,
    Landing,
    Life,
    Lost,
    Queued,
    Reclaimed,
    Releasing,
    Requested,
    Serving,
    progress,
    transition,
)
from tpudeploy.domain.names import DEPLOYMENT_NAME, ROUTER, SliceName, Zone
from tpudeploy.domain.slices import BootReport, RefusalScope, SliceRef
from tpudeploy.domain.stored import NamePattern, StoredValue, Tagged

# Resources that were imported have names of their own.
_RESOURCE = NamePattern(r"[a-z0-9]([-_.a-z0-9]{0,126}[a-z0-9])?")


@dataclass(frozen=True, slots=True, kw_only=True)
class Boot(StoredValue):
    """The last boot of an attempt's server. `server` is its fingerprint, "" if it is not known.

    `at`: the time of a restart, or None for the boot that the request asked for. `previous` is the server that a
    restart ended. `is_sent` is False between the save of a restart and the request for it, and where the same server
    must start again.
    """

    server: str
    at: float | None = None
    previous: str = ""
    is_sent: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class MetadataUpdate(StoredValue):
    """The server whose metadata were last sent to a node, and when; 0.0 before the first one is sent."""

    server: str
    at: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeChange(StoredValue):
    """A change that was sent to the watcher of a node, by its name in the metadata (see node.py)."""

    name: str
    sent_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Attempt(StoredValue):
    """One request for one slice. It is saved before the request is sent, and dropped when the slice is surely absent.

    `spec` is the requested configuration (see Deployment.attributes). A request that still waits at `expires_at`
    lapses; None in earlier states. `operation` is the create operation. `script` is the hash of the last startup script
    of its node, or "" in earlier states. `update` and `change` are None if none was sent since its creation; `change`
    also if it is to be sent again. `is_failed`: its server or its change failed, and that was reported; a later run
    starts it again. `is_to_go`: the user requested a replacement. `is_ending`: its run ends soon, and a successor may
    be requested. `not_in_effect` are the settings that differed from the declared ones at the last verification by an
    apply, each with both values. Times are in seconds since the epoch.

    The properties below read `life`; only `after` changes it.
    """

    ALWAYS: ClassVar[frozenset[str]] = frozenset({"life"})
    name: Annotated[str, _RESOURCE]
    project: Annotated[str, NamePattern(r"[a-z0-9]([-.:a-z0-9]*[a-z0-9])?")]
    zone: Zone
    provisioning: Provisioning
    spec: Mapping[str, Json]
    asked_at: float
    boot: Boot
    expires_at: float | None = None
    operation: Annotated[str | None, NamePattern(r"[-_.:A-Za-z0-9]+(/[-_.:A-Za-z0-9]+)*")] = None
    life: Annotated[Life, Tagged()] = field(default=Requested())
    update: MetadataUpdate | None = None
    change: NodeChange | None = None
    script: str = ""
    is_failed: bool = False
    is_to_go: bool = False
    is_ending: bool = False
    not_in_effect: Mapping[str, str] = field(default_factory=dict)

    def after(self, *events: Event) -> Self:
        """Return the attempt after these events. Raise `IllegalTransition` for one that its state does not allow."""
        life = self.life
        for event in events:
            life = transition(life, event)
        return self if life is self.life else replace(self, life=life)

    @property
    def holds_slice(self) -> bool:
        """Whether the slice was granted and is not being released: as far as is known it exists, and it is kept."""
        return self.granted_at is not None and self.release is None

    @property
    def is_listed(self) -> bool:
        """Whether the cloud has listed it once: from then on a 404 means that it was deleted."""
        return not isinstance(progress(self.life), Requested)

    @property
    def provisioning_at(self) -> float | None:
        furthest = progress(self.life)
        return None if isinstance(furthest, Requested | Queued) else furthest.provisioning_at

    @property
    def granted_at(self) -> float | None:
        furthest = progress(self.life)
        return None if isinstance(furthest, Requested | Queued | Landing) else furthest.granted_at

    @property
    def is_announced(self) -> bool:
        """Whether clients may use its endpoint, or may still use it while it drains."""
        return isinstance(progress(self.life), Serving | Draining)

    @property
    def draining_at(self) -> float | None:
        """Return since when clients are sent to another slice."""
        furthest = progress(self.life)
        return furthest.draining_at if isinstance(furthest, Draining | Detached) else None

    @property
    def release(self) -> Releasing | None:
        """Return the release under way."""
        return self.life if isinstance(self.life, Releasing) else None

    @property
    def releasing_at(self) -> float | None:
        return None if self.release is None else self.release.releasing_at

    @property
    def release_reason(self) -> str:
        return "" if self.release is None else self.release.reason

    @property
    def is_spare(self) -> bool:
        """Whether it was released only because another slice was expected to replace it."""
        return self.release is not None and self.release.is_spare

    @property
    def reclaim(self) -> Reclaimed | None:
        """Return the reclaim of an earlier release, whose deletion may still be carried out."""
        inner = self.life.before if isinstance(self.life, Releasing) else self.life
        return inner if isinstance(inner, Reclaimed) else None

    @property
    def is_lost(self) -> bool:
        """Whether its loss is already recorded, so that it is not news."""
        inner = self.life
        while isinstance(inner, Releasing | Reclaimed):
            inner = inner.before
        return isinstance(inner, Lost)

    @property
    def change_name(self) -> str:
        """Return the name of the change that was last sent to its node, or "" without one."""
        return "" if self.change is None else self.change.name

    @property
    def metadata_server(self) -> str:
        """Return the server that the metadata of its node name, as they were last sent."""
        return self.boot.server if self.update is None else self.update.server

    def is_answered_by(self, report: BootReport | None) -> bool:
        """Whether the report of its node is about the change that was last sent to it."""
        return report is not None and self.change is not None and report.change == self.change.name

    def is_undone_by(self, report: BootReport | None) -> bool:
        """Whether its node says that the change that was last sent to it failed and is being undone, or was."""
        return report is not None and self.change is not None and report.undone == self.change.name

    @property
    def backend(self) -> Backend:
        """Return the API that it was requested from. Earlier states name none: there was one."""
        return Backend(str(self.spec.get("placement.backend", DEFAULT_BACKEND)))

    @property
    def place(self) -> Place:
        return Place(self.zone, self.provisioning, self.backend)

    @property
    def port(self) -> int:
        """Return the port that its server was given."""
        port = self.spec.get("serving.port")
        return port if isinstance(port, int) else DEFAULT_PORT

    @property
    def ref(self) -> SliceRef:
        deletion = None if self.release is None else self.release.deletion
        if deletion is None and self.reclaim is not None:
            deletion = self.reclaim.deletion
        return SliceRef(
            name=self.name,
            project=self.project,
            zone=self.zone,
            operation=self.operation,
            provisioning=self.provisioning,
            deletion=deletion,
            backend=self.backend,
            was_granted=self.granted_at is not None,
            was_listed=self.is_listed,
            was_released=self.release is not None,
            accelerator_type=str(self.spec.get("tpu.type", "")),
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class RefusalRecord(StoredValue):
    """A refusal and how long it holds. `until` is in seconds since the epoch.

    `limit` and `known` are those of the refusal (domain/slices.py); `held` are the chips that we used ourselves of that
    limit at the time. `stops`: only a person can fix it. `times` counts its repetitions in a row. `landed`: it came
    after a grant that did not last, not instead of a grant (reconcile/placement.py). `backend` is the API that refused.
    `zones_available` are the zones that had capacity then, by the refusal itself.
    """

    zone: Zone
    provisioning: Provisioning
    kind: str
    scope: RefusalScope
    message: str
    at: float
    until: float
    limit: int | None = None
    held: int = 0
    known: bool = True
    stops: bool = False
    times: int = 1
    landed: bool = False
    backend: Backend = DEFAULT_BACKEND
    zones_available: tuple[Zone, ...] = ()

    @property
    def place(self) -> Place:
        return Place(self.zone, self.provisioning, self.backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class Record(StoredValue):
    """One replica. `home` is the zone of its last slice, which is requested first after a loss.

    `lost` is the slice that served and was lost, or "" without one, or if another slice serves in its place.
    """

    ALWAYS: ClassVar[frozenset[str]] = frozenset({"attempts", "refusals"})
    index: int
    attempts: tuple[Attempt, ...] = ()
    refusals: tuple[RefusalRecord, ...] = ()
    home: Zone | None = None
    lost: Annotated[str, _RESOURCE] = ""

    def attempt(self, name: str) -> Attempt | None:
        return next((a for a in self.attempts if a.name == name), None)

    def with_attempt(self, attempt: Attempt) -> Self:
        """Return the record with this attempt added, or in place of the one with its name."""
        if self.attempt(attempt.name) is None:
            return replace(self, attempts=(*self.attempts, attempt))
        return replace(self, attempts=tuple(attempt if a.name == attempt.name else a for a in self.attempts))

    def without(self, name: str) -> Self:
        return replace(self, attempts=tuple(a for a in self.attempts if a.name != name))


@dataclass(frozen=True, slots=True, kw_only=True)
class Approval(StoredValue):
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


@dataclass(frozen=True, slots=True, kw_only=True)
class StateWriter(StoredValue):
    """The writer of a state and the operation, e.g. `apply` or `state mv`. `at` is in seconds since the epoch.

    `version` is that of tpudeploy, "" in states of earlier versions.
    """

    at: float
    by: str
    operation: str
    version: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ScalingStep(StoredValue):
    """A change of the number of replicas by the load that was read, and why. `at` is in seconds since the epoch."""

    at: float
    before: int
    after: int
    why: str


_MOST_FORGOTTEN = 8  # each is a call more for every look


@dataclass(frozen=True, slots=True, kw_only=True)
class State(StoredValue):
    """One deployment. `lineage` is created once; `serial` grows with every write; attempt numbers never repeat.

    `replicas` are the indexes of its replicas where they are not the first ones, or where they are scaled (see
    reconcile/replicas.py). `scaled` is the last step of scaling, and `start` the number that the profile said to begin
    with when they were chosen, or None. `written` is None in states of earlier versions.
    `published` is the slice in `endpoints/NAME.json`, or "" for none and in states of earlier versions; `generation` is
    that of the file. `begun` counts the applies and destroys that began here, without renewals: an approval is valid
    only for the count at which its plan was made. `router` is the VM of the router: it has the life of a replica's
    slice, and `records` are only the replicas. `forgotten` are the last requests that were forgotten without ever being
    seen, the newest last: a slice of theirs may appear late. `moved_to` is the backend that the state was moved to:
    what remains here is the marker of the move, and no command works on it.
    `serving_since` is when the deployment first served, in
    seconds since the epoch; None before, and once `ended` says that its end has come (reconcile/ends.py). `used_at` is
    when it last had a request, as far as a run saw, for a deployment that ends when it is idle. `started_at` is when it
    was started again after an end.
    """

    ALWAYS: ClassVar[frozenset[str]] = frozenset({"goal", "records"})
    deployment: Annotated[str, NamePattern(DEPLOYMENT_NAME.pattern)]
    lineage: Annotated[str, NamePattern(r"[0-9a-z]{1,64}")]
    serial: int = 0
    next_attempt: int = 0
    goal: Approval | None = None
    records: tuple[Record, ...] = ()
    written: StateWriter | None = None
    published: Annotated[str, _RESOURCE] = ""
    generation: int = 0
    begun: int = 0
    router: Record = Record(index=ROUTER)
    replicas: tuple[int, ...] = ()
    scaled: ScalingStep | None = None
    start: int | None = None
    forgotten: tuple[Attempt, ...] = ()
    moved_to: str = ""
    serving_since: float | None = None
    used_at: float | None = None
    started_at: float | None = None
    ended: PastEnd | None = None

    def record(self, index: int) -> Record:
        return next((r for r in self.all_records if r.index == index), Record(index=index))

    def with_record(self, record: Record) -> Self:
        if record.index == ROUTER:
            return replace(self, router=record)
        others = tuple(r for r in self.records if r.index != record.index)
        return replace(self, records=tuple(sorted((*others, record), key=lambda r: r.index)))

    def with_forgotten(self, attempt: Attempt) -> Self:
        """Return the state that remembers the name of a request, which it no longer tracks."""
        others = [each for each in self.forgotten if each.name != attempt.name]
        return replace(self, forgotten=(*others, attempt)[-_MOST_FORGOTTEN:])

    @property
    def late_attempts(self) -> tuple[Attempt, ...]:
        """Return the forgotten requests that are not tracked again since."""
        names = {attempt.name for attempt in self.attempts}
        return tuple(attempt for attempt in self.forgotten if attempt.name not in names)

    def slice_name(self, replica: int) -> SliceName:
        """Return the name of the next attempt."""
        return SliceName(
            deployment=self.deployment, lineage=self.lineage[:8], replica=replica, attempt=self.next_attempt
        )

    @property
    def all_records(self) -> tuple[Record, ...]:
        """Return the records of the replicas, and that of the router's VM."""
        return (*self.records, self.router)

    @property
    def attempts(self) -> tuple[Attempt, ...]:
        """Return every request that may still exist, for slices and for the router's VM."""
        return tuple(a for r in self.all_records for a in r.attempts)

    @property
    def slice_attempts(self) -> tuple[Attempt, ...]:
        """Return the requests for slices, without those for the router's VM."""
        return tuple(a for r in self.records for a in r.attempts)

    @property
    def indexed_attempts(self) -> tuple[tuple[int, Attempt], ...]:
        """Return each of `attempts` after the index of its replica, which is `ROUTER` for the router's VM."""
        return tuple((record.index, attempt) for record in self.all_records for attempt in record.attempts)

    @property
    def indexed_slice_attempts(self) -> tuple[tuple[int, Attempt], ...]:
        """Return each of `slice_attempts` after the index of its replica."""
        return tuple((record.index, attempt) for record in self.records for attempt in record.attempts)
