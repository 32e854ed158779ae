"""Import a queued resource or an instance of the cloud into a state, at the address that the user gives."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable
from dataclasses import dataclass, replace
from functools import partial

from tpudeploy.catalog.backends import BACKENDS, import_id
from tpudeploy.domain import errors, events
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import Address, Zone
from tpudeploy.domain.orphans import CloudResource, OwnerMark
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.observe import observe
from tpudeploy.engine.request_events import about
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.engine.session import open_session, states_by_name
from tpudeploy.orphans.adoption import adopt
from tpudeploy.ports import World
from tpudeploy.reconcile.merge_observation import merge_observation

_SHORT = re.compile(r"(?:(?:(?P<project>[^/]+)/)?(?P<zone>[^/]+)/)?(?P<name>[^/]+)")
_FIELD = re.compile(r"\{(\w+)\}")
_ENDING = {Phase.SUSPENDING, Phase.LEAVING, Phase.HUSK, Phase.REFUSED}


@dataclass(frozen=True, slots=True, kw_only=True)
class ResourceId:
    """A queued resource, an instance or a group of instances as the user names it; None for what they leave out."""

    name: str
    zone: Zone | None = None
    project: str | None = None
    backend: Backend | None = None

    @classmethod
    def parse(cls, text: str) -> ResourceId:
        """Parse every form that Terraform accepts. Raise `errors.UsageError` for any other."""
        for backend, row in BACKENDS.items():
            for path in row.paths:
                match = re.fullmatch(_FIELD.sub(r"(?P<\1>[^/]+)", path), text)
                if match is not None:
                    return cls._from_match(match, backend)
        match = _SHORT.fullmatch(text)
        if match is None:
            raise errors.UsageError(f"`{text}` is not the name of {_any_form()}.", hint=f"Use {_every_path()}.")
        return cls._from_match(match, None)

    @classmethod
    def _from_match(cls, match: re.Match[str], backend: Backend | None) -> ResourceId:
        # The description of a group names its zone. Its path has the region alone.
        zone_name = match.groupdict().get("zone")
        try:
            zone = None if zone_name is None else Zone.parse(zone_name)
        except ValueError as cause:
            raise errors.UsageError(f"{cause}.") from cause
        return cls(name=match["name"], zone=zone, project=match["project"], backend=backend)


def _any_form() -> str:
    """Return `a queued resource, an instance or a group of instances`."""
    *forms, last = (form for row in BACKENDS.values() for form in row.forms)
    return f"{', '.join(forms)} or {last}"


def _every_path() -> str:
    """Return the forms of an id, with the first letter of each part: `projects/P/zones/Z/instances/N`."""
    paths = (path for row in BACKENDS.values() for path in row.paths)
    letters = (_FIELD.sub(lambda field: field[1][0].upper(), path) for path in paths)
    return f"{', '.join(letters)}, P/Z/N, Z/N or N"


def find_resource(
    world: World, id_: ResourceId, project: str, zones: Iterable[Zone], backends: Collection[Backend]
) -> CloudResource:
    """Return the resource with its machine. Raise `errors.StateError` unless there is one, which is no bare node.

    It is searched at the backend in its name, or at `backends` if the name has none.
    Raise `errors.Fault` or `errors.Denied` if it cannot be searched for.
    """
    if id_.backend is not None:
        backends = (id_.backend,)
    list_zones = partial(world.cloud.list_named, project, id_.name, tuple(zones), zone=id_.zone, backends=backends)
    listing = retry_on_fault(world, project, list_zones)
    if not listing.resources:
        unreachable = f"No answer from {', '.join(listing.unreachable)}. " if listing.unreachable else ""
        rows = [row for backend, row in BACKENDS.items() if backend in backends]
        kinds = " or ".join(row.resource for row in rows)
        commands = ", or ".join(row.list_command.format(project=project) for row in rows)
        raise errors.StateError(
            f"There is no {kinds} {id_.name} in {id_.zone or 'any zone'} of {project}.",
            hint=f"{unreachable}See: {commands}",
        )
    if len(listing.resources) > 1:
        paths = ", ".join(import_id(resource.ref) for resource in listing.resources)
        raise errors.StateError(f"{id_.name} exists in several zones: {paths}.", hint="Specify one of these.")
    (resource,) = listing.resources
    if resource.ref.is_bare:
        describe = f"gcloud compute tpus tpu-vm describe {id_.name} --zone={resource.ref.zone} --project={project}"
        raise errors.StateError(
            f"{id_.name} in {resource.ref.zone} is a TPU VM, and no queued resource of this name exists. tpudeploy"
            " manages only queued resources for one node of the same name.",
            hint=f"It cannot be imported. See which queued resource created it, if any: {describe}",
        )
    return resource


def check_import(world: World, address: Address, resource: CloudResource, *, foreign: bool) -> None:
    """Raise `errors.StateError` if the resource cannot be imported, or has another owner and not `foreign`."""
    state = world.state.read(address.deployment).state
    _check_slice(resource)
    _check_free(state, address)
    place = (resource.ref.project, resource.ref.zone, resource.ref.name)
    for name, other in states_by_name(world.state).items():
        for index, attempt in other.indexed_slice_attempts:
            if (attempt.project, attempt.zone, attempt.name) == place:
                where = Address(deployment=name, replica=index)
                raise errors.StateError(
                    f"{resource.ref.name} is already tracked as {where}.",
                    hint=f"To move it: tpudeploy state mv {where} {address}",
                )
    _check_lineage(state, resource, foreign=foreign)


def import_resource(
    world: World, address: Address, deployment: Deployment, resource: CloudResource, *, foreign: bool
) -> Attempt:
    """Track the resource in the state. The unknown parts of its server differ, so the next plan restarts it in place.

    Raise as `check_import` does, and `errors.Fault` if the resource cannot be observed.
    """
    if deployment.project != resource.ref.project:
        raise errors.StateError(
            f"{resource.ref.name} is in the project {resource.ref.project}, but the profile is for"
            f" {deployment.project}.",
            hint=f"Set placement.project: {resource.ref.project}",
        )
    check_import(world, address, resource, foreign=foreign)
    observed_state = retry_on_fault(
        world, address.deployment, lambda: _observe_alone(world, address, deployment, resource)
    )
    with open_session(world, address.deployment, "import") as session:
        _check_free(session.state, address)
        (attempt,) = observed_state.attempts
        next_attempt = max(session.state.next_attempt, observed_state.next_attempt)
        state = replace(session.state, next_attempt=next_attempt)
        session.save(state.with_record(state.record(address.replica or 0).with_attempt(attempt)))
    world.emit(events.Adopted(**about(attempt, str(address), at=world.clock.now())))
    return attempt


def _observe_alone(world: World, address: Address, deployment: Deployment, resource: CloudResource) -> State:
    """Return a state of only this resource after one observation, so that a server that serves is not waited for."""
    report = world.cloud.report(resource.ref) if resource.slice.phase is Phase.UP else None
    reports = {} if report is None else {resource.ref.name: report}
    mark = OwnerMark(deployment=address.deployment, lineage=resource.mark.lineage, replica=address.replica or 0)
    empty = State(deployment=address.deployment, lineage="")
    state = adopt(empty, deployment, [replace(resource, mark=mark)], reports, world.clock.now())
    return merge_observation(state, observe(world, state, deployment))


def _check_slice(resource: CloudResource) -> None:
    if resource.slice.phase in _ENDING:
        raise errors.StateError(
            f"{resource.ref.name} is {resource.slice.raw_state}, so it will never serve.",
            hint="`tpudeploy apply` requests another one.",
        )
    if resource.request.nodes not in {(), (resource.ref.name,)}:
        raise errors.StateError(
            f"{resource.ref.name} is for {', '.join(resource.request.nodes)}. tpudeploy manages only queued resources "
            "for one node of the same name.",
            hint="It cannot be imported. `tpudeploy apply` requests one that can.",
        )


def _check_free(state: State | None, address: Address) -> None:
    attempts = () if state is None else state.record(address.replica or 0).attempts
    if attempts:
        raise errors.StateError(
            f"{address} already has a slice: {', '.join(attempt.name for attempt in attempts)}.",
            hint=f"Use another index, or run: tpudeploy state mv {address} {address.deployment}[INDEX]",
        )


def _check_lineage(state: State | None, resource: CloudResource, *, foreign: bool) -> None:
    lineage = resource.mark.lineage
    if lineage and not foreign and (state is None or state.lineage[:8] != lineage):
        raise errors.StateError(
            f"{resource.ref.name} belongs to another lineage ({lineage}, of {resource.mark.deployment}).",
            hint="The state of that lineage, if it still exists, would continue to manage it too.\n"
            "Use -foreign to import it anyway, once you know that no other state manages it.",
        )
