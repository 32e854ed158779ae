"""Deployment: the desired state with every default decided. Only planning/resolve.py creates it."""

from __future__ import annotations

from abc import abstractmethod
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from functools import partial
from typing import Annotated, Any, NamedTuple, TypeAlias

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, AcceleratorType, Backend
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.cost_budget import CostBudget
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.ending import End, IdleLimit, PastEnd
from tpudeploy.domain.engine import NO_ENGINE, Engine
from tpudeploy.domain.hours import Hours
from tpudeploy.domain.model import Checkpoint
from tpudeploy.domain.names import ROUTER, Zone
from tpudeploy.domain.notify import Notify
from tpudeploy.domain.router import Router
from tpudeploy.domain.stored import AsIs, read_with
from tpudeploy.domain.task import Task, TaskOrigin

Json: TypeAlias = Annotated["bool | int | float | str | list[Json] | dict[str, Json] | None", AsIs()]

# The value of `placement.backend` with which each request may go to any API that serves the slice.
AUTO = "auto"
DEFAULT_PORT = 8000  # of a server
# The attributes of the project's own files, by their key and path: a fingerprint of the text of each.
OWN_FILES = "boot.digest."
# The attribute of the image that the family of `tpu.runtime_version` is pinned to, of an instance of Compute Engine.
MACHINE_IMAGE = "tpu.machine_image"


class Provisioning(StrEnum):
    """The provisioning model of a slice, in Google's terms."""

    FLEX_START = "flex-start"
    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"

    @property
    def is_lasting(self) -> bool:
        """Whether Google neither preempts such a slice nor ends its run. A flex-start run is only not preempted."""
        return self in {Provisioning.ON_DEMAND, Provisioning.RESERVED}


class Via(StrEnum):
    """The network route by which an endpoint is probed."""

    AUTO = "auto"
    EXTERNAL = "external"
    INTERNAL = "internal"
    IAP = "iap"
    NODE = "node"


class Place(NamedTuple):
    """Where a slice is requested: refusals, requests and results of the same place are compared by it.

    The APIs have quota and refusals of their own, so a zone and provisioning model at each of them is another place.
    """

    zone: Zone
    provisioning: Provisioning
    backend: Backend = DEFAULT_BACKEND

    def __str__(self) -> str:
        return describe_place(*self)


def describe_place(zone: str, provisioning: str, backend: str) -> str:
    """Return `us-east5-a, spot`, and the API where it is not the TPU API: `us-east5-a, spot, gce-instance`."""
    return ", ".join([zone, provisioning, *([] if backend == DEFAULT_BACKEND else [backend])])


# A zone at one API.
Area = tuple[Zone, Backend]


@dataclass(frozen=True, slots=True, kw_only=True)
class Candidate:
    """One place to request. `usd_per_chip_hour` is None where the list price is unknown."""

    zone: Zone
    provisioning: Provisioning
    usd_per_chip_hour: float | None
    backend: Backend = DEFAULT_BACKEND

    @property
    def place(self) -> Place:
        return Place(self.zone, self.provisioning, self.backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class SecretRef:
    """A reference to a secret, never its value. `secret` is an id or a full resource name with version."""

    variable: str
    secret: str


API_KEY = "VLLM_API_KEY"  # what vLLM reads its key from, and clients here theirs


@dataclass(frozen=True, slots=True, kw_only=True)
class Container:
    """The container for docker. `serve` is the argument list from `vllm` on; `environment` has plain values only.

    With several `hosts`, each of them runs the container with Ray, and the server is a process in one of them.
    """

    name: str
    image: str
    serve: tuple[str, ...]
    setup: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: tuple[SecretRef, ...]
    volumes: tuple[tuple[str, str], ...]
    shm_size: str | None
    port: int
    hosts: int = 1

    @property
    def api_key(self) -> SecretRef | None:
        """Return the secret with the key that the server requires, or None if it requires none."""
        return next((ref for ref in self.secrets if ref.variable == API_KEY), None)


@dataclass(frozen=True, slots=True, kw_only=True)
class BucketFolder:
    """The folder `gs://name/prefix` of a bucket. `prefix` is "", or ends with a slash."""

    name: str
    prefix: str

    @classmethod
    def parse(cls, url: str) -> BucketFolder:
        """Return the folder of a URL that the schema has validated."""
        name, _, path = url.removeprefix("gs://").partition("/")
        path = path.strip("/")
        return cls(name=name, prefix=f"{path}/" if path else "")


@dataclass(frozen=True, slots=True, kw_only=True)
class CompileCache:
    """The bucket that keeps compiled programs beyond the life of a machine.

    `folder` is the folder on the machine that the container compiles into. `key` identifies everything that the
    programs depend on except the image; `digest` is the image's sha256, or "" for a tag.
    """

    bucket: BucketFolder
    key: str
    digest: str
    folder: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Mirror:
    """A copy of the weights in a bucket, and the folder on the machine that it is fetched into."""

    bucket: BucketFolder
    folder: str


class OwnKey(StrEnum):
    """Where a file of the project is used: as a script of `boot.before` or `boot.after`, or instead of a template."""

    BEFORE = "before"
    AFTER = "after"
    TEMPLATE = "template"


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnFile:
    """A file of the project in the startup script. `path` is as the profile writes it, or that of the template."""

    key: OwnKey
    path: str
    text: str
    at: Location

    @property
    def attribute(self) -> str:
        return f"{OWN_FILES}{self.key}.{self.path}"


@dataclass(frozen=True, slots=True, kw_only=True)
class Network:
    network: str | None
    subnetwork: str | None
    external_ip: bool
    tags: tuple[str, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class HealthGoal:
    """The condition for serving: a real answer within `timeout_seconds` of the grant."""

    timeout_seconds: float
    via: Via
    prompt: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Lifecycle:
    """Rules for changes.

    `blue_green`: a change of the server starts on a second slice. `renew`: a successor replaces a slice before its
    run ends. `max_unavailable` is the number of replicas that may not serve at one time because of a change.
    `drain_seconds` is the longest drain, or None for `Patience.drained`. `end`, `idle` and `hours` are None for a
    deployment without such an end.
    """

    prevent_destroy: bool
    create_before_destroy: bool
    ignore_changes: tuple[str, ...]
    blue_green: bool = False
    renew: bool = False
    max_unavailable: int = 1
    drain_seconds: float | None = None
    end: End | None = None
    idle: IdleLimit | None = None
    hours: Hours | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Scale:
    """The bounds within which `apply --watch` changes the number of replicas, and what it goes by.

    A replica is added where more than `waiting` requests wait for each replica on average, or where more than the share
    `kv_cache` of their KV caches is in use. `cooldown_seconds` lie between two steps. `max_usd_per_hour` is the list
    price of all slices and the router's VM together above which none is added, or None. `start` is the number that the
    profile says to begin with, or None.
    """

    min: int
    max: int
    waiting: float
    kv_cache: float
    cooldown_seconds: float
    max_usd_per_hour: float | None = None
    start: int | None = None


class Script:
    """A startup script: a text, or a function that renders it on first use. Scripts with the same text are equal."""

    __slots__ = ("_source",)

    def __init__(self, source: str | Callable[[], str]) -> None:
        self._source = source

    def __str__(self) -> str:
        if not isinstance(self._source, str):
            self._source = self._source()
        return self._source

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Script) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))

    def __reduce__(self) -> tuple[type[Script], tuple[str]]:
        """Return the text, for `copy` and `pickle`: the function that renders it is of this process."""
        return Script, (str(self),)

    @classmethod
    def __get_pydantic_core_schema__(cls, _source: Any, handler: Callable[[Any], Any]) -> Any:
        return read_with(cls, handler(str))


@dataclass(frozen=True, slots=True, kw_only=True)
class Deployment:
    """The desired state. Durations are in seconds and sizes in bytes unless a name says otherwise.

    `attributes` is the resolved profile as dotted path to JSON value, defaults included. Plans, state and fingerprints
    use these paths. `origins` says where each path was written; it is for display only. `budget` is the memory use of
    its chips, or why that is unknown. `runtimes` is the software of its machines by the API that they are requested
    from, the preferred API first. `router_machine` is the VM of its router, as a deployment of its own that the state
    has beside the replicas (node/router_machine.py). `indexes` are those of its replicas where the state decides them,
    and `on_demand_floor` of the replicas have their slices in one of `floor_candidates`: see reconcile/replicas.py.
    `task` is what its server does with a prompt, and what decided that. `engine` is that of its image, and
    `checkpoint` what the hub said of its model, for one that the catalogue does not know.
    `ended` says that its end has come: it has no replicas then (reconcile/ends.py). `written` is a fingerprint of what
    its profile says, whatever defaults and pins add to that; "" without an end.
    At most `max_parallel_requests` of one replica exist at the same time, and their slices cost at most
    `search_usd_per_hour` together, if that is not None. A search begins with `first_requests` (None: all of them): see
    reconcile/prices.py and reconcile/placement.py. `cost_budget` is what it may cost, or
    None for no limit: see reconcile/cost_wall.py. `notify` are those that its runs tell what becomes of it.
    """

    name: str
    replicas: int
    project: str | None
    model_id: str
    accelerator: AcceleratorType
    runtimes: Mapping[Backend, str]
    boot_disk_gib: int
    candidates: tuple[Candidate, ...]
    max_parallel_requests: int
    first_requests: int | None = None
    search_usd_per_hour: float | None = None
    reservation: str | None
    max_run_seconds: float | None
    valid_until_seconds: float
    network: Network
    service_account: str | None
    labels: Mapping[str, str]
    container: Container
    health: HealthGoal
    lifecycle: Lifecycle
    compile_cache: CompileCache | None = None
    mirror: Mirror | None = None
    own_files: tuple[OwnFile, ...] = ()
    router: Router | None = None
    router_machine: Deployment | None = None
    scale: Scale | None = None
    cost_budget: CostBudget | None = None
    notify: Notify = field(default=Notify())
    on_demand_floor: int = 0
    floor_candidates: tuple[Candidate, ...] = ()
    indexes: tuple[int, ...] | None = None
    ended: PastEnd | None = None
    written: str = ""
    task: TaskOrigin = field(default=TaskOrigin(task=Task.GENERATE, because=""))
    engine: Engine = field(default=NO_ENGINE, compare=False)
    checkpoint: Checkpoint | None = field(default=None, compare=False, repr=False)
    startup_script: Script = field(repr=False)
    attributes: Mapping[str, Json]
    origins: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)
    budget: HbmBudget | Unsized = field(default=Unsized(because="it was not requested"), compare=False, repr=False)

    @property
    def replica_indexes(self) -> tuple[int, ...]:
        """Return the indexes of its replicas."""
        return tuple(range(self.replicas)) if self.indexes is None else self.indexes

    @property
    def backends(self) -> tuple[Backend, ...]:
        """Return the APIs from which its slices may be requested, the preferred one first."""
        return tuple(self.runtimes)

    def of_replica(self, replica: int) -> Deployment | None:
        """Return what the replica of this index is made from: for the router's VM another deployment, or None."""
        if replica != ROUTER:
            return self
        return self.router_machine if self.ended is None else None

    def attributes_at(self, backend: Backend) -> Mapping[str, Json]:
        """Return the attributes of a slice at this API, or at the preferred one where the profile does not allow it.

        With `placement.backend: auto`, the API and the software of its machines are decided by the request.
        """
        if self.attributes.get("placement.backend") != AUTO:
            return self.attributes
        actual = backend if backend in self.runtimes else self.backends[0]
        own = {"placement.backend": actual.value, "tpu.runtime_version": self.runtimes[actual]}
        return {
            path: value
            for path, value in {**self.attributes, **own}.items()
            if path != MACHINE_IMAGE or actual.boots_image
        }

    def origin(self, path: str) -> Location | None:
        """Return where this attribute or its first entry was written, or None for a default."""
        return next(self.origins_of((path,)))

    def origins_of(self, paths: Iterable[str]) -> Iterator[Location | None]:
        """Yield the origin of each attribute."""
        origins = self.origins
        return map(origins.first if isinstance(origins, AttributeOrigins) else partial(first_place, origins), paths)


class AttributeOrigins(Mapping[str, Location]):
    """The origins of the attributes of a plan, also of defaults, which the profile does not contain."""

    @abstractmethod
    def first(self, path: str) -> Location | None:
        """Return what `first_place` does for any mapping."""


def first_place(origins: Mapping[str, Location], path: str) -> Location | None:
    """Return where a path was written or, of a path that only has entries, the first of them; None for neither."""
    if path in origins:
        return origins[path]
    entries = [at for other, at in origins.items() if other.startswith((f"{path}.", f"{path}["))]
    return min(entries, key=lambda at: (at.file, at.line, at.column), default=None)
