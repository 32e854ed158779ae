"""Found against remembered: what is garbage, and whose. What a state names is needed, whatever else is said of it."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpudeploy import catalog
from tpudeploy.domain.found import CloudResource, Listing
from tpudeploy.domain.garbage import Claim, Garbage, Stray
from tpudeploy.domain.life import Queued
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import Attempt, Boot, State
from tpudeploy.reconcile import prices


def garbage(listings: Iterable[Listing], states: Mapping[str, State], *, foreign: bool, now: float) -> Garbage:
    """`states` by deployment. They must be read after the listings were made: intents are written before requests."""
    looked = tuple(listings)
    found = [f for listing in looked for f in listing.found]
    strays = (_stray(f, states, foreign=foreign, now=now) for f in found)
    kept = tuple(s for s in strays if s.claim is not Claim.NEEDED)
    return Garbage(
        projects=tuple(listing.project for listing in looked),
        strays=tuple(sorted(kept, key=lambda s: (list(Claim).index(s.claim), s.found.path))),
        needed=len(found) - len(kept),
        foreign=foreign,
        unreachable=tuple(f"{listing.project}/{zone}" for listing in looked for zone in listing.unreachable),
        looked_in=tuple(dict.fromkeys(zone for listing in looked for zone in listing.looked_in)),
    )


def claim(found: CloudResource, states: Mapping[str, State]) -> Claim:
    ref = found.ref
    named = ((a.project, a.zone, a.name) for state in states.values() for a in state.attempts)
    if (ref.project, ref.zone, ref.name) in named:
        return Claim.NEEDED
    if _heir(found, states) is not None:
        return Claim.LEFTOVER
    return Claim.NO_STATE if found.mark.deployment not in states else Claim.OTHER_LINEAGE


def _heir(found: CloudResource, states: Mapping[str, State]) -> str | None:
    """The deployment whose state has its lineage: that of its name, or what that one is called now."""
    return next((name for name, state in states.items() if state.lineage[:8] == found.mark.lineage), None)


def goes(found: CloudResource, states: Mapping[str, State], *, foreign: bool) -> bool:
    """Whether it may be removed. What only its name gives the look of ours may be a stranger's: never."""
    whose = claim(found, states)
    return whose is Claim.LEFTOVER or (foreign and whose is not Claim.NEEDED and found.is_signed)


def as_attempt(found: CloudResource, name: str, now: float) -> Attempt:
    """It as a state would remember it, so that the same decisions serve for it. `name` is what it goes by in them."""
    return Attempt(
        name=name,
        project=found.ref.project,
        zone=found.ref.zone,
        provisioning=found.asked.provisioning,
        spec={"tpu.type": found.asked.accelerator_type},
        asked_at=found.asked_at if found.asked_at is not None else now,
        boot=Boot(server=""),
        life=Queued(),
    )


def _stray(found: CloudResource, states: Mapping[str, State], *, foreign: bool, now: float) -> Stray:
    kind = catalog.accelerator_type(found.asked.accelerator_type)
    is_billed = found.slice.phase is Phase.UP  # nothing is before the grant, nor once the node is gone
    return Stray(
        found=found,
        deployment=_heir(found, states) or found.mark.deployment,
        claim=claim(found, states),
        goes=goes(found, states, foreign=foreign),
        age=None if found.asked_at is None else max(0.0, now - found.asked_at),
        usd_per_hour=prices.usd_per_hour(as_attempt(found, found.ref.name, now)) if is_billed else 0.0,
        chips=None if kind is None else kind.chips,
    )
