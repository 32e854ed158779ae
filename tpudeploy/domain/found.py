"""Found: what stands in the cloud under our mark, whether or not any state remembers it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import field

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import DEPLOYMENT_NAME, SliceName, Zone
from tpudeploy.domain.slices import Slice, SliceRef

_DEPLOYMENT = "tpudeploy-deployment"
_LINEAGE = "tpudeploy-lineage"
_REPLICA = "tpudeploy-replica"
_LINEAGE_FORM = re.compile(r"[0-9a-f]{8}")


@frozen
class Mark:
    """Whose something says it is. `lineage` is the first eight hex digits of a state's, "" for nobody's."""

    deployment: str
    lineage: str
    replica: int


UNMARKED = Mark(deployment="", lineage="", replica=0)


@frozen
class Asked:
    """What a request was for, as far as the cloud still says: None (or nothing) where it does not. Seconds, GiB.

    `nodes` are the names that its machines were to have: one, its own, unless somebody else asked for it.
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


@frozen
class Found:
    """One queued resource, or a bare node (`ref.is_bare`): one whose queued resource is gone.

    `is_signed` False: its name has the form of ours, and nothing on it says more. It may be a stranger's.
    `asked_at` is when it was created, in seconds since the epoch.
    """

    ref: SliceRef
    mark: Mark
    is_signed: bool
    slice: Slice
    asked: Asked
    asked_at: float | None

    @property
    def path(self) -> str:
        """PROJECT/ZONE/NAME: a name alone can stand in two zones."""
        return f"{self.ref.project}/{self.ref.zone}/{self.ref.name}"


@frozen
class Listing:
    """One look through a project. What may be in an `unreachable` zone is not known: it is never taken for empty.

    `looked_in` names the zones where they were looked through one by one, and is empty for all there are.
    """

    project: str
    found: tuple[Found, ...]
    unreachable: tuple[Zone, ...] = ()
    looked_in: tuple[Zone, ...] = ()


def labels_of(name: SliceName) -> Mapping[str, str]:
    """The mark as labels of a node. Queued resources have none of their own."""
    return {_DEPLOYMENT: name.deployment, _LINEAGE: name.lineage, _REPLICA: str(name.replica)}


def is_label_of_ours(key: str) -> bool:
    return key in {_DEPLOYMENT, _LINEAGE, _REPLICA}


def mark_of(name: str, labels: Mapping[str, str]) -> Mark | None:
    """The mark in a derived name, else in labels; None for what is not ours."""
    parsed = SliceName.parse(name)
    if parsed is not None and DEPLOYMENT_NAME.fullmatch(parsed.deployment):
        return Mark(deployment=parsed.deployment, lineage=parsed.lineage, replica=parsed.replica)
    return mark_in(labels)


def mark_in(labels: Mapping[str, str]) -> Mark | None:
    """The mark in labels that form one."""
    deployment, lineage, replica = (labels.get(key, "") for key in (_DEPLOYMENT, _LINEAGE, _REPLICA))
    if not (DEPLOYMENT_NAME.fullmatch(deployment) and _LINEAGE_FORM.fullmatch(lineage) and replica.isdecimal()):
        return None
    return Mark(deployment=deployment, lineage=lineage, replica=int(replica))
