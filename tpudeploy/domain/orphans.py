"""Orphans: the resources in the cloud that carry our mark, the states' claims on them, and what `gc` would delete.

What is ours: a resource with our labels, or whose machine has them, or whose metadata have the fingerprint of a server.
A name alone, even one in the form that we derive, is no evidence: such a resource is listed, and never deleted.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import DEPLOYMENT_NAME, SliceName, Zone, address, parse_replica, replica_word
from tpudeploy.domain.slices import Slice, SliceRef

_DEPLOYMENT = "tpudeploy-deployment"
LINEAGE_LABEL = "tpudeploy-lineage"
_REPLICA = "tpudeploy-replica"
_LINEAGE_FORM = re.compile(r"[0-9a-f]{8}")


@dataclass(frozen=True, slots=True, kw_only=True)
class OwnerMark:
    """The owner of a resource by its name or labels. `lineage` is the first eight hex digits of a state's, or ""."""

    deployment: str
    lineage: str
    replica: int


UNMARKED = OwnerMark(deployment="", lineage="", replica=0)


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceRequest:
    """The request of a resource, as far as the cloud still shows it; unknown fields are None or empty. Seconds, GiB.

    `nodes` are the requested names of its machines: for our own requests one, the name of the resource.
    """

    accelerator_type: str
    provisioning: Provisioning
    nodes: tuple[str, ...] = ()
    runtime_version: str | None = None
    boot_disk_gib: int | None = None
    network: str | None = None
    subnetwork: str | None = None
    external_ip: bool | None = None
    service_account: str | None = None
    reservation: str | None = None
    max_run_seconds: float | None = None
    tags: tuple[str, ...] = ()
    labels: Mapping[str, str] = field(default_factory=dict)
    metadata: Mapping[str, str] = field(default_factory=dict, repr=False)


@dataclass(frozen=True, slots=True, kw_only=True)
class CloudResource:
    """One queued resource, or a bare node (`ref.is_bare`), whose queued resource no longer exists.

    `is_signed` False: only the form of its name suggests that it is ours, so it may belong to someone else.
    `requested_at` is when it was created, in seconds since the epoch.
    """

    ref: SliceRef
    mark: OwnerMark
    is_signed: bool
    slice: Slice
    request: ResourceRequest
    requested_at: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class Listing:
    """The result of one search of a project. An `unreachable` zone is never taken for empty.

    `searched_zones` names the zones if they were searched one by one; it is empty if all were listed at once.
    """

    project: str
    resources: tuple[CloudResource, ...]
    unreachable: tuple[Zone, ...] = ()
    searched_zones: tuple[Zone, ...] = ()


def labels_of(name: SliceName) -> Mapping[str, str]:
    """Return the mark as labels of a node. Queued resources have no labels."""
    return {_DEPLOYMENT: name.deployment, LINEAGE_LABEL: name.lineage, _REPLICA: replica_word(name.replica)}


def is_label_of_ours(key: str) -> bool:
    return key in {_DEPLOYMENT, LINEAGE_LABEL, _REPLICA}


def mark_of(name: str, labels: Mapping[str, str]) -> OwnerMark | None:
    """Return the mark in a derived name, else in the labels, or None for a resource without either.

    Labels of another lineage win: another state tracks the resource by now.
    """
    mark, parsed = mark_in(labels), SliceName.parse(name)
    if parsed is None or not DEPLOYMENT_NAME.fullmatch(parsed.deployment):
        return mark
    if mark is not None and mark.lineage != parsed.lineage:
        return mark
    return OwnerMark(deployment=parsed.deployment, lineage=parsed.lineage, replica=parsed.replica)


def mark_in(labels: Mapping[str, str]) -> OwnerMark | None:
    """Return the mark in the labels, or None."""
    deployment, lineage, replica = (labels.get(key, "") for key in (_DEPLOYMENT, LINEAGE_LABEL, _REPLICA))
    if not (DEPLOYMENT_NAME.fullmatch(deployment) and _LINEAGE_FORM.fullmatch(lineage)):
        return None
    try:
        return OwnerMark(deployment=deployment, lineage=lineage, replica=parse_replica(replica))
    except ValueError:
        return None


class Claim(StrEnum):
    """The relation of a resource to the states of this project.

    needed: a state names it.  leftover: its deployment's state has its lineage, and does not name it.
    no state, another lineage: foreign. Its owner may need it, so it is deleted only if the user requests it.
    """

    NEEDED = "needed"
    LEFTOVER = "leftover"
    NO_STATE = "no state"
    OTHER_LINEAGE = "another lineage"


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphan:
    """One resource that no state here needs. `goes`: it will be deleted, under the lock of `deployment`.

    `age` is in seconds. `usd_per_hour` is its present cost at list price; `chips` is its use of a quota. Both are None
    where the catalogue does not have them.
    """

    resource: CloudResource
    deployment: str
    claim: Claim
    goes: bool
    age: float | None
    usd_per_hour: float | None
    chips: int | None

    @property
    def address(self) -> str:
        return address(self.resource.mark.deployment, self.resource.mark.replica)

    def to_dict(self) -> dict[str, object]:
        resource = self.resource
        return {
            "address": self.address,
            "deployment": self.deployment,
            "name": resource.ref.name,
            "project": resource.ref.project,
            "zone": resource.ref.zone,
            "kind": "node" if resource.ref.is_bare else str(resource.ref.backend),
            "lineage": resource.mark.lineage,
            "is_signed": resource.is_signed,
            "accelerator_type": resource.request.accelerator_type,
            "provisioning": resource.request.provisioning,
            "state": resource.slice.raw_state,
            "age": self.age,
            "usd_per_hour": self.usd_per_hour,
            "chips": self.chips,
            "claim": self.claim,
            "goes": self.goes,
        }


@dataclass(frozen=True, slots=True, kw_only=True)
class NotSearched:
    """An API that could not be searched in a project, although nothing here is known to use it there, and why."""

    project: str
    backend: Backend
    reason: str

    def to_dict(self) -> dict[str, object]:
        return {"project": self.project, "backend": self.backend, "reason": self.reason}


@dataclass(frozen=True, slots=True, kw_only=True)
class Orphans:
    """The result of `gc`. `needed` counts the resources that are not shown. `unreachable` PROJECT/ZONEs did not answer.

    `looked_in` names the zones if a project could not be listed at once; else it is empty. `foreign`: foreign resources
    are to be deleted too.
    """

    projects: tuple[str, ...]
    strays: tuple[Orphan, ...]
    needed: int
    foreign: bool
    unreachable: tuple[str, ...] = ()
    looked_in: tuple[str, ...] = ()
    not_searched: tuple[NotSearched, ...] = ()

    @property
    def going(self) -> tuple[Orphan, ...]:
        return tuple(s for s in self.strays if s.goes)

    def to_dict(self) -> dict[str, object]:
        """Return the document of `gc --json` without the result of the deletions."""
        return {
            "format": "tpudeploy.gc/1",
            "type": "gc",
            "projects": list(self.projects),
            "strays": [stray.to_dict() for stray in self.strays],
            "needed": self.needed,
            "foreign": self.foreign,
            "unreachable": list(self.unreachable),
            "looked_in": list(self.looked_in),
            "not_searched": [each.to_dict() for each in self.not_searched],
        }
