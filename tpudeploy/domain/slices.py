"""Observations of the cloud in our terms. Only adapters/google translates Google's states into these."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.names import Zone


class Absence(StrEnum):
    """Why a request has no slice."""

    REFUSED = "refused"  # its create operation failed
    NEVER_APPEARED = "never appeared"  # it led to no slice, as far as the cloud shows
    GONE = "gone"


class Phase(StrEnum):
    """The phase of a slice's life.

    creating ─▶ queued ─▶ provisioning ─▶ up ─▶ suspending ─▶ husk ─▶ leaving ─▶ (absent)
        └─────────┴───────────┴───────────┴──────────────────────────────▲
    suspending: Google takes its machine away, and the request remains as a husk.  leaving: it is being deleted.
    refused: the request failed, and no slice was created.  lost: Google still lists it, but its machine is gone.
    """

    CREATING = "creating"
    QUEUED = "queued"
    PROVISIONING = "provisioning"
    UP = "up"
    SUSPENDING = "suspending"
    LEAVING = "leaving"
    HUSK = "husk"
    LOST = "lost"
    REFUSED = "refused"


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRef:
    """A reference that suffices to find a slice and to read its refusal.

    `operation` is the create operation if its name is known, `deletion` is the last delete operation, and
    `provisioning` is the model of the request. `is_bare`: it means a node whose queued resource no longer exists.
    `accelerator_type` is that of the request: a group of instances is requested by another call than a single one.
    `was_granted`: its machine has run before, so that a machine that starts is one that Google restarts.
    `was_listed`: the cloud has listed it once, so that its create operation explains no later absence.
    `was_released`: its deletion was requested, or is about to be.
    """

    name: str
    project: str
    zone: Zone
    operation: str | None = None
    provisioning: Provisioning | None = None
    deletion: str | None = None
    is_bare: bool = False
    backend: Backend = DEFAULT_BACKEND
    was_granted: bool = False
    was_listed: bool = False
    was_released: bool = False
    accelerator_type: str = ""

    @property
    def was_visible(self) -> bool:
        """Whether the cloud has shown it: from then on, an absence means that it was deleted."""
        return self.was_listed or self.was_granted


class Remedy(StrEnum):
    LOOK_AGAIN = "look again"
    NEXT_ZONE = "next zone"
    DROP_ZONE = "drop zone"
    STOP = "stop"


class RefusalScope(StrEnum):
    """The scope of a refusal: this pair of zone and provisioning model, the zone, its region, or the project.

    The quotas are those of the pool that this provisioning model uses (reconcile/placement.py), in the zone or its
    region. The resources of a region are what every slice needs there beside chips: a disk, an external address.
    """

    PAIR = "pair"
    ZONE = "zone"
    ZONE_QUOTA = "zone quota"
    REGION = "region"
    REGION_QUOTA = "region quota"
    REGION_RESOURCES = "region resources"
    PROJECT = "project"


@dataclass(frozen=True, slots=True, kw_only=True)
class Refusal:
    """A refusal: Google's text, and its meaning for the next choice.

    `kind` is the row of the error table (adapters/google/refusals/), for display. `limit` is the limit in chips in the
    text of a quota, or None. `is_known` False: neither the text nor its code is known, so the remedy is a guess, which
    is tried a bounded number of times. `zones_available` are the zones that have capacity, by the refusal itself.
    """

    kind: str
    message: str
    remedy: Remedy
    scope: RefusalScope
    holds_seconds: float
    limit: int | None = None
    is_known: bool = True
    zones_available: tuple[Zone, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class CreateOperation:
    """The create operation of a slice that the cloud does not show. `ended_at` is None while it is open."""

    ended_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceEnd:
    """The end of a slice by Google's own record: when its deletion was requested, or when Google took its machine.

    `cause` is why its machine deleted itself, None for any other end; `idle_minutes` is for how long it had been idle
    then. `names_cause`: the record would name the cause; without one, the machine did not end itself.
    """

    at: float
    cause: EndCause | None = None
    idle_minutes: int = 0
    names_cause: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Slice:
    """One slice as the cloud lists it now. `raw_state` is Google's state, for display only.

    `operation` is set if only the create operation shows it. The slice was not seen: it may appear late, or never.

    `created_at` is the creation of its machine, `ends_at` is set if its run is limited; both are in seconds since the
    epoch. `undeleted` is why its last deletion failed, if known. `tags` is None if they were not read.

    `script` is the fingerprint of the startup script in its metadata, or "". `metadata` has all but the script, which
    would be nearly all that the slices of a fleet take in memory. `machines_running` counts the machines that run, and
    are billed, of a slice that is no use without the others. `is_remainder`: its group was deleted with its machines,
    and the rest costs nothing.
    """

    name: str
    zone: Zone
    phase: Phase
    raw_state: str = ""
    refusal: Refusal | None = None
    undeleted: Refusal | None = None
    operation: CreateOperation | None = None
    created_at: float | None = None
    ends_at: float | None = None
    provisioning: Provisioning | None = None
    accelerator_type: str = ""
    external_ip: str | None = None
    internal_ip: str | None = None
    port: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)
    script: str = ""
    machines_running: int = 0
    is_remainder: bool = False
    tags: tuple[str, ...] | None = None


class BootPhase(StrEnum):
    """The phases that a machine reports, in order."""

    BOOTED = "booted"
    DOCKER = "docker"
    IMAGE = "image"
    SECRETS = "secrets"
    STARTING = "starting"
    SERVING = "serving"
    FAILED = "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class BootReport:
    """The report of a node in its guest attributes. `spec` is the fingerprint of the server that it runs.

    `started` is the start of its container in seconds since the epoch, or None before the start and from earlier
    scripts. `pulled` is the percentage of the image's layers that are pulled, or None.
    `change` is the last change that it applied, by its name in the metadata; `undone` is a change that failed because
    of `cause`, after which the node went back to the previous server.
    `timeline` and `cache` describe its last start, for display only; boot_log/starts.py parses the former.
    `worker` is the number of the host in a slice of several hosts, or None. The report of such a slice is that of its
    worker 0 with the worst phase of all, and `workers` are the reports of all, None for a host that has not reported.
    `failed_at` is when its work last failed, or None before that and from earlier scripts.
    `preempted_at` is when a host read in its metadata that Google takes the machine back, or None.
    `at` is when it was written, and `used_at` when its server last had a request, as far as the machine looks for that
    (templates/boot/idle.sh), in seconds since the epoch, or None. `served_at` is when the machine first served.
    `unended` is why the machine could not delete its own request at its end (templates/boot/end.sh), or "".
    `loaded` is the fingerprint of the list of replicas that the router on this machine sends requests to.
    """

    phase: BootPhase
    detail: str = ""
    spec: str = ""
    answer: str = ""
    started: float | None = None
    pulled: int | None = None
    change: str = ""
    undone: str = ""
    cause: str = ""
    timeline: str = ""
    cache: str = ""
    worker: int | None = None
    workers: tuple[BootReport | None, ...] = ()
    failed_at: float | None = None
    preempted_at: float | None = None
    loaded: str = ""
    unended: str = ""
    at: float | None = None
    used_at: float | None = None
    served_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceRequest:
    """The content of a request for one slice. Durations are in seconds.

    `runtime_version` is the runtime of the TPU API, or the image family of an instance of Compute Engine.
    `machine_image` is the image that the family is pinned to, or None for the newest one.
    """

    name: str
    project: str
    zone: Zone
    provisioning: Provisioning
    accelerator_type: str
    runtime_version: str
    boot_disk_gib: int
    metadata: Mapping[str, str]
    labels: Mapping[str, str]
    network: str | None
    subnetwork: str | None
    external_ip: bool
    tags: tuple[str, ...]
    service_account: str | None
    reservation: str | None
    max_run_seconds: float | None
    valid_until_seconds: float
    backend: Backend = DEFAULT_BACKEND
    machine_image: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class NodeUpdate:
    """The fields of a running node that can be updated. Each is replaced as a whole.

    A node keeps its startup script if `metadata` has none.
    """

    metadata: Mapping[str, str]
    labels: Mapping[str, str]
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Health:
    """The result of one probe. `door` is the network route that answered; `answer` is the completion's text.

    `node_only`: the machine reports a completion, but no route from here reached it. `silence` is why it is not
    observed: the server was reached, and gave no answer. What its machine reported of its boot is older than that.
    """

    serving: bool
    detail: str
    door: str = ""
    url: str = ""
    answer: str = ""
    node_only: bool = False
    silence: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerLoad:
    """The requests of one server, over all its engines, by its own metrics. None: it does not report that.

    `kv_cache_used` (0 to 1) is that of the fullest engine: a request waits for the engine that it was given to, even if
    another one has room.
    """

    running: int | None = None
    waiting: int | None = None
    kv_cache_used: float | None = None

    @property
    def requests(self) -> int | None:
        """Return the requests that it works on or has queued."""
        counts = [count for count in (self.running, self.waiting) if count is not None]
        return sum(counts) if counts else None


@dataclass(frozen=True, slots=True, kw_only=True)
class Observed:
    """One observation: every slice that a state tracks, and the probes of the serving ones. Absent means 404.

    `unseen` are the slices that could not be observed, with the reason. `loads` are those of the servers that were
    asked for it; a draining one always is. `late` are slices whose requests the state has forgotten. `ends` are the
    ends of slices whose deletion no run requested, as far as Google has a record of them.
    """

    at: float
    slices: Mapping[str, Slice]
    reports: Mapping[str, BootReport] = field(default_factory=dict)
    health: Mapping[str, Health] = field(default_factory=dict)
    unseen: Mapping[str, str] = field(default_factory=dict)
    loads: Mapping[str, ServerLoad] = field(default_factory=dict)
    late: Mapping[str, Slice] = field(default_factory=dict)
    ends: Mapping[str, SliceEnd] = field(default_factory=dict)

    def serves(self, name: str) -> bool:
        """Return whether the server of a slice was probed, and answered."""
        health = self.health.get(name)
        return health is not None and health.serving

    def requests(self, name: str) -> int | None:
        """Return the requests that a slice still works on or has queued, or None if it does not report them."""
        load = self.loads.get(name)
        return None if load is None else load.requests
