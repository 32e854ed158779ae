"""Deployment: the desired state with every default decided. Made by core/resolve.py, never by hand."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum
from typing import TypeAlias

from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.bucket import BucketFolder
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.diagnostics import Location
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone
from tpudeploy.domain.script import Script

Json: TypeAlias = "bool | int | float | str | list[Json] | dict[str, Json] | None"


class Provisioning(StrEnum):
    """How a slice is paid for and kept, in Google's words."""

    FLEX_START = "flex-start"
    SPOT = "spot"
    ON_DEMAND = "on-demand"
    RESERVED = "reserved"


class Via(StrEnum):
    """From where an endpoint is looked at."""

    AUTO = "auto"
    EXTERNAL = "external"
    INTERNAL = "internal"
    IAP = "iap"
    NODE = "node"


@frozen
class Candidate:
    """One pair that may be asked. `usd_per_chip_hour` is None where no list price is known."""

    zone: Zone
    provisioning: Provisioning
    usd_per_chip_hour: float | None


@frozen
class SecretRef:
    """Where a secret lives; never its value. `secret` is an id or a full resource name with version."""

    variable: str
    secret: str


@frozen
class Container:
    """What docker gets. `serve` is the argument list from `vllm` on; `environment` holds plain values only."""

    name: str
    image: str
    serve: tuple[str, ...]
    setup: tuple[str, ...]
    environment: Mapping[str, str]
    secrets: tuple[SecretRef, ...]
    volumes: tuple[tuple[str, str], ...]
    shm_size: str | None
    port: int


@frozen
class CompileCache:
    """Where compiled programs outlive their machine. `folder` is the machine's, which the container compiles into.

    `key` stands for all they were compiled for but the image; `digest` is the image's sha256, "" where it is a tag.
    """

    bucket: BucketFolder
    key: str
    digest: str
    folder: str


@frozen
class Mirror:
    """A bucket's copy of the weights, and the folder of the machine that it is fetched into."""

    bucket: BucketFolder
    folder: str


@frozen
class Network:
    network: str | None
    subnetwork: str | None
    external_ip: bool
    tags: tuple[str, ...]


@frozen
class HealthGoal:
    """When a deployment counts as serving: a real completion within `timeout_seconds` of the grant."""

    timeout_seconds: float
    via: Via
    prompt: str


@frozen
class Lifecycle:
    """`blue_green`: a serving change is brought up on a second slice. `renew`: a run that ends is taken over before."""

    prevent_destroy: bool
    create_before_destroy: bool
    ignore_changes: tuple[str, ...]
    blue_green: bool = False
    renew: bool = False


@frozen
class Deployment:
    """Everything that must be true. Durations in seconds, sizes in bytes unless a name says otherwise.

    `attributes` is the resolved profile, flat: dotted path to JSON value, defaults included. Plans, state and
    fingerprints speak of these paths. `origins` says where each written path came from; display only. `budget` is what
    its chips will hold, or why that is not known.
    """

    name: str
    replicas: int
    project: str | None
    model_id: str
    accelerator: AcceleratorType
    runtime_version: str
    boot_disk_gib: int
    candidates: tuple[Candidate, ...]
    max_parallel_requests: int
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
    startup_script: Script = field(repr=False)
    attributes: Mapping[str, Json]
    origins: Mapping[str, Location] = field(default_factory=dict, compare=False, repr=False)
    budget: HbmBudget | Unsized = field(default=Unsized(because="nobody asked"), compare=False, repr=False)

    def origin(self, path: str) -> Location | None:
        """Where this attribute was written: its own place, or that of its first entry. None for a default."""
        own = self.origins.get(path)
        if own is not None:
            return own
        entries = (o for p, o in self.origins.items() if p.startswith((f"{path}.", f"{path}[")))
        return min(entries, key=lambda at: (at.file, at.line, at.column), default=None)
