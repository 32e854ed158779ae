"""Garbage: what `gc` found in the cloud, whose it is, and what of it would be removed."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.found import Found
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import address


class Claim(StrEnum):
    """What the states here say of something found.

    needed: one of them names it.  leftover: its deployment's state has its lineage, and does not name it.
    no state, another lineage: foreign. Whoever made it may need it: it is removed only where a person says so.
    """

    NEEDED = "needed"
    LEFTOVER = "leftover"
    NO_STATE = "no state"
    OTHER_LINEAGE = "another lineage"


@frozen
class Stray:
    """One thing that no state here needs. `goes`: it is to be removed, under the lock of `deployment`.

    `age` is in seconds. `usd_per_hour` is what it costs now, at list price; `chips` what it holds of a quota. Both are
    None where the catalogue does not know.
    """

    found: Found
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
        found = self.found
        return {
            "address": self.address,
            "deployment": self.deployment,
            "name": found.ref.name,
            "project": found.ref.project,
            "zone": found.ref.zone,
            "kind": "node" if found.ref.is_bare else "queued-resource",
            "lineage": found.mark.lineage,
            "is_signed": found.is_signed,
            "accelerator_type": found.asked.accelerator_type,
            "provisioning": found.asked.provisioning,
            "state": found.slice.raw_state,
            "age": self.age,
            "usd_per_hour": self.usd_per_hour,
            "chips": self.chips,
            "claim": self.claim,
            "goes": self.goes,
        }


@frozen
class Garbage:
    """`needed` counts what is not shown. `unreachable` are PROJECT/ZONE that did not answer: not known to be empty.

    `looked_in` names the zones where no project could be listed at once, and is empty for all there are. `foreign`:
    what is not ours was to be removed too.
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
        """What `gc --json` prints, beside what came of it."""
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
