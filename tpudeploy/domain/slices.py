"""What the world shows, in our words. Google's states become these in adapters/google and nowhere else."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone


class Phase(StrEnum):
    """Where a slice is in its life.

    creating ─▶ queued ─▶ provisioning ─▶ up ─▶ leaving ─▶ husk ─▶ (absent)
        └─────────┴───────────┴────────────────────▲
    refused: the request failed and nothing was made.  lost: Google still lists it, but its machine is gone.
    """

    CREATING = "creating"
    QUEUED = "queued"
    PROVISIONING = "provisioning"
    UP = "up"
    LEAVING = "leaving"
    HUSK = "husk"
    LOST = "lost"
    REFUSED = "refused"


@frozen
class SliceRef:
    """Enough to find a slice, and to read a refusal of it. `operation` is the create operation, where its name is
    still known, `deletion` the last delete operation; `provisioning` the model that it was asked for under.

    `is_bare`: a node alone is meant, whose queued resource is gone.
    """

    name: str
    project: str
    zone: Zone
    operation: str | None = None
    provisioning: Provisioning | None = None
    deletion: str | None = None
    is_bare: bool = False


class Remedy(StrEnum):
    LOOK_AGAIN = "look again"
    NEXT_ZONE = "next zone"
    DROP_ZONE = "drop zone"
    STOP = "stop"


class Scope(StrEnum):
    """What a refusal speaks of: this pair of zone and provisioning model, the zone, its region, the project.

    The quotas: the pool that this provisioning model draws from (core/placement.py), in the zone or in its region.
    """

    PAIR = "pair"
    ZONE = "zone"
    ZONE_QUOTA = "zone quota"
    REGION = "region"
    REGION_QUOTA = "region quota"
    PROJECT = "project"


@frozen
class Refusal:
    """Why something was not given: Google's words and what they mean for the next choice.

    `kind` is the row of the error table (adapters/google/refusals/), for display. `limit` is the chips that the text
    of a quota says may be held there; None where it says none. `is_known` False: neither the text nor its code says
    what it means, so the remedy is a guess, to be tried a bounded number of times.
    """

    kind: str
    message: str
    remedy: Remedy
    scope: Scope
    holds_seconds: float
    limit: int | None = None
    is_known: bool = True


@frozen
class Slice:
    """One slice as the cloud lists it now. `raw_state` is Google's word, for display only.

    `created_at` is its machine's, `ends_at` where its run is limited; seconds since the epoch. `undeleted` is why its
    last deletion failed, where that is known. `tags` None: nobody looked.
    """

    name: str
    zone: Zone
    phase: Phase
    raw_state: str = ""
    refusal: Refusal | None = None
    undeleted: Refusal | None = None
    created_at: float | None = None
    ends_at: float | None = None
    provisioning: Provisioning | None = None
    accelerator_type: str = ""
    external_ip: str | None = None
    internal_ip: str | None = None
    port: int | None = None
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)
    tags: tuple[str, ...] | None = None


class BootPhase(StrEnum):
    """What the machine itself last said, in the order it happens."""

    BOOTED = "booted"
    DOCKER = "docker"
    IMAGE = "image"
    SECRETS = "secrets"
    STARTING = "starting"
    SERVING = "serving"
    FAILED = "failed"


@frozen
class BootReport:
    """The node's own word, from its guest attributes. `spec` is the fingerprint of the server it runs.

    `started`: when its container was, in seconds since the epoch; None before, and by scripts of before. `pulled`: per
    cent of the image's layers that are here; None where nobody says.
    `change` is the change that it took over last, by the name that its metadata give it; `undone` one that failed, for
    `cause`, after which it went back to the server before.
    `timeline` and `cache` are its account of its last start, for display only: core/timeline.py reads the one.
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


@frozen
class SliceRequest:
    """Everything a request for one slice says. Durations in seconds."""

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


@frozen
class NodeUpdate:
    """All of what a running node can be given anew: each replaces what is there, whole."""

    metadata: Mapping[str, str]
    labels: Mapping[str, str]
    tags: tuple[str, ...]


@frozen
class Health:
    """What one look at an endpoint gave. `door` is the way that answered; `answer` the completion's text.

    `node_only`: the machine completed a prompt by its own word, but nothing we tried from here reached it.
    """

    serving: bool
    detail: str
    door: str = ""
    url: str = ""
    answer: str = ""
    node_only: bool = False


@frozen
class Observed:
    """One moment: every slice that a state remembers, and what the serving ones answer. Absent means 404.

    `unseen` are those that could not be looked at, and why: of them nothing is known. `running` are the requests that
    a slice which clients have left still works at or has waiting, where it tells.
    """

    at: float
    slices: Mapping[str, Slice]
    reports: Mapping[str, BootReport] = field(default_factory=dict)
    health: Mapping[str, Health] = field(default_factory=dict)
    unseen: Mapping[str, str] = field(default_factory=dict)
    running: Mapping[str, int] = field(default_factory=dict)
