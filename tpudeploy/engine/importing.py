"""Taking a queued resource that stands in the cloud into the state, at the address that a person gives it."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import replace
from functools import partial

from tpudeploy.domain import errors, events
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.found import CloudResource, Mark
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Address, Zone
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.about import about
from tpudeploy.engine.look import observe
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import open_session
from tpudeploy.orphans.adopt import adopted
from tpudeploy.ports import World
from tpudeploy.reconcile.remember import remember

_FULL = re.compile(r"projects/(?P<project>[^/]+)/locations/(?P<zone>[^/]+)/queuedResources/(?P<name>[^/]+)")
_SHORT = re.compile(r"(?:(?:(?P<project>[^/]+)/)?(?P<zone>[^/]+)/)?(?P<name>[^/]+)")
_GOING = {Phase.SUSPENDING, Phase.LEAVING, Phase.HUSK, Phase.REFUSED}


@frozen
class Wanted:
    """A queued resource as a person names it; None for what they leave out."""

    name: str
    zone: Zone | None = None
    project: str | None = None

    @classmethod
    def parse(cls, text: str) -> Wanted:
        """Every form that Terraform takes. Raise `errors.UsageError` for another."""
        match = _FULL.fullmatch(text) or _SHORT.fullmatch(text)
        if match is None:
            raise errors.UsageError(
                f"`{text}` names no queued resource.",
                hint="Write projects/P/locations/Z/queuedResources/N, P/Z/N, Z/N or N.",
            )
        try:
            zone = None if match["zone"] is None else Zone.parse(match["zone"])
        except ValueError as cause:
            raise errors.UsageError(f"{cause}.") from cause
        return cls(name=match["name"], zone=zone, project=match["project"])


def find(world: World, wanted: Wanted, project: str, zones: Iterable[Zone]) -> CloudResource:
    """What stands under that name, its machine looked at.

    Raise `errors.StateError` where there is none, or are several; `errors.Fault` and `errors.Denied`.
    """
    look = partial(world.cloud.list_named, project, wanted.name, tuple(zones), zone=wanted.zone)
    listing = retry_on_fault(world, project, look)
    where = wanted.zone or "any zone"
    if not listing.found:
        silent = f"No answer from {', '.join(listing.unreachable)}. " if listing.unreachable else ""
        raise errors.StateError(
            f"There is no queued resource {wanted.name} in {where} of {project}.",
            hint=f"{silent}See: gcloud compute tpus queued-resources list --project={project} --zone=ZONE",
        )
    if len(listing.found) > 1:
        paths = ", ".join(found.path for found in listing.found)
        raise errors.StateError(f"{wanted.name} stands in several zones: {paths}.", hint="Name one of these.")
    (found,) = listing.found
    shown = retry_on_fault(world, project, lambda: world.cloud.slices([found.ref]))
    return replace(found, slice=shown[0]) if shown else found


def check(world: World, address: Address, found: CloudResource, *, foreign: bool) -> None:
    """Raise `errors.StateError` where it cannot be taken in, or is somebody's and `foreign` does not say so."""
    state = world.state.read(address.deployment).state
    _check_slice(found)
    _check_free(state, address)
    for name in world.state.names():
        known = world.state.read(name).state
        for record in () if known is None else known.records:
            if any((a.project, a.zone, a.name) == _place(found) for a in record.attempts):
                where = Address(deployment=name, replica=record.index)
                raise errors.StateError(
                    f"{found.ref.name} is remembered as {where} already.",
                    hint=f"To move it: tpudeploy state mv {where} {address}",
                )
    _check_lineage(state, found, foreign=foreign)


def bring_in(world: World, address: Address, deployment: Deployment, found: CloudResource, *, foreign: bool) -> Attempt:
    """Remember it. What cannot be seen of its server is not known, so that the next plan restarts it in place.

    Raise as `check` does; `errors.Fault` where it cannot be looked at.
    """
    if deployment.project != found.ref.project:
        raise errors.StateError(
            f"{found.ref.name} stands in the project {found.ref.project}; the profile is for {deployment.project}.",
            hint=f"Set placement.project: {found.ref.project}",
        )
    check(world, address, found, foreign=foreign)
    looked_at = retry_on_fault(
        world,
        address.deployment,
        lambda: _looked_at(world, address, deployment, found),
        budget=world.patience.faults_at_plan,
    )
    with open_session(world, address.deployment, "import") as held:
        _check_free(held.state, address)
        (attempt,) = looked_at.attempts
        state = replace(held.state, next_attempt=max(held.state.next_attempt, looked_at.next_attempt))
        held.save(state.with_record(state.record(address.replica or 0).with_attempt(attempt)))
    world.emit(events.Adopted(**about(attempt, str(address), at=world.clock.now())))
    return attempt


def _looked_at(world: World, address: Address, deployment: Deployment, found: CloudResource) -> State:
    """It alone, as a state remembers it after one look: what serves already need not be waited for again."""
    report = world.cloud.report(found.ref) if found.slice.phase is Phase.UP else None
    reports = {} if report is None else {found.ref.name: report}
    mark = Mark(deployment=address.deployment, lineage=found.mark.lineage, replica=address.replica or 0)
    alone = State(deployment=address.deployment, lineage="")
    state = adopted(alone, deployment, [replace(found, mark=mark)], reports, world.clock.now())
    return remember(state, observe(world, state, deployment))


def _check_slice(found: CloudResource) -> None:
    if found.slice.phase in _GOING:
        raise errors.StateError(
            f"{found.ref.name} is {found.slice.raw_state}: nothing of it will serve.",
            hint="`tpudeploy apply` asks for another.",
        )
    if found.asked.nodes not in {(), (found.ref.name,)}:
        raise errors.StateError(
            f"{found.ref.name} is for {', '.join(found.asked.nodes)}; a slice of ours is one machine of its own name.",
            hint="It cannot be taken in. `tpudeploy apply` asks for one that can.",
        )


def _check_free(state: State | None, address: Address) -> None:
    held = () if state is None else state.record(address.replica or 0).attempts
    if held:
        raise errors.StateError(
            f"{address} has a slice already: {', '.join(attempt.name for attempt in held)}.",
            hint=f"Take another index, or: tpudeploy state mv {address} {address.deployment}[INDEX]",
        )


def _check_lineage(state: State | None, found: CloudResource, *, foreign: bool) -> None:
    lineage = found.mark.lineage
    if lineage and not foreign and (state is None or state.lineage[:8] != lineage):
        raise errors.StateError(
            f"{found.ref.name} is tied to another lineage ({lineage}, of {found.mark.deployment}).",
            hint="The state of that lineage, if anybody still has it, would go on to manage it too.\n"
            "-foreign takes it all the same, once you know that nobody does.",
        )


def _place(found: CloudResource) -> tuple[str, str, str]:
    return (found.ref.project, found.ref.zone, found.ref.name)
