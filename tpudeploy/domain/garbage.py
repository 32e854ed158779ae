"""Garbage: the resources that `gc` found in the cloud, their owners, and which of them it would delete."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.found import CloudResource
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import address


class Claim(StrEnum):
    """The relation of a resource to the states of this project.

    needed: a state names it.  leftover: its deployment's state has its lineage, and does not name it.
    no state, another lineage: foreign. Its owner may need it, so it is deleted only if the user requests it.
    """

    NEEDED = "needed"
    LEFTOVER = "leftover"
    NO_STATE = "no state"
    OTHER_LINEAGE = "another lineage"


@frozen
class Stray:
    """One resource that no state here needs. `goes`: it will be deleted, under the lock of `deployment`.

    `age` is in seconds. `usd_per_hour` is its present cost at list price; `chips` is its use of a quota. Both are None
    where the catalogue does not have them.
    """

    found: CloudResource
    deployment: str
    claim: Claim
    goes: bool
    age: float | None
    usd_per_hour: float | None
    chips: int | None

    @property
    def address(self) -> str:
        return address(self.found.mark.deployment, self.found.mark.replica)

    def to_dict(self) -> dict[str, object]:
        resource = self.found
        return {
            "address": self.address,
            "deployment": self.deployment,
            "name": resource.ref.name,
            "project": resource.ref.project,
            "zone": resource.ref.zone,
            "kind": "node" if resource.ref.is_bare else "queued-resource",
            "lineage": resource.mark.lineage,
            "is_signed": resource.is_signed,
            "accelerator_type": resource.asked.accelerator_type,
            "provisioning": resource.asked.provisioning,
            "state": resource.slice.raw_state,
            "age": self.age,
            "usd_per_hour": self.usd_per_hour,
            "chips": self.chips,
            "claim": self.claim,
            "goes": self.goes,
        }


@frozen
class Garbage:
    """The result of `gc`. `needed` counts the resources that are not shown. `unreachable` PROJECT/ZONEs did not answer.

    `looked_in` names the zones if a project could not be listed at once; else it is empty. `foreign`: foreign resources
    are to be deleted too.
    """

    projects: tuple[str, ...]
    strays: tuple[Stray, ...]
    needed: int
    foreign: bool
    unreachable: tuple[str, ...] = ()
    looked_in: tuple[str, ...] = ()

    @property
    def going(self) -> tuple[Stray, ...]:
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
        }
