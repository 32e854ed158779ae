"""Which resources of ours no state needs, and what is reported of those that a deployment without a state has.

What a state names is needed, whatever else is known about it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence

from tpudeploy import catalog
from tpudeploy.catalog.backends import import_id
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import CodePage, Diagnostic, Severity
from tpudeploy.domain.life import Queued
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.orphans import Claim, CloudResource, Listing, NotSearched, Orphan, Orphans
from tpudeploy.domain.slices import Phase
from tpudeploy.domain.state import Attempt, Boot, State
from tpudeploy.reconcile import prices
from tpudeploy.text import words

UNTRACKED = "TPU3010"
NOT_SEARCHED = "TPU3011"
EXPLANATIONS: Mapping[str, CodePage] = {
    UNTRACKED: CodePage(
        "Slices of this deployment that no state tracks",
        "The deployment has no state here, but the project has slices with its name. The state was lost, or it's "
        "in another folder, in a bucket or with a colleague. apply stops instead of creating more slices beside "
        "them. Use the state that tracks them (--chdir, or -backend and backend in tpudeploy.toml). A fresh clone"
        " has no local states, nor the marker of `state migrate`; two states of one slice undo each other's "
        "changes. Only if the state is lost, adopt the slices (apply -adopt writes a new state) or remove them "
        "(gc -foreign). If they belong to someone else, choose another name in the profile. With -adopt, a "
        "deployment without such slices is an error and no slice is requested.",
        "tpudeploy apply -adopt PROFILE\ntpudeploy gc -foreign PROFILE",
    ),
    NOT_SEARCHED: CodePage(
        "Slices without a state could not be searched for",
        "If the deployment's state was lost, its slices may still exist. Google Cloud didn't answer the search "
        "for them, or left out a zone. The plan assumes there are none. `tpudeploy gc` searches again.",
        "tpudeploy gc PROFILE",
    ),
}
_DEAD = {Phase.HUSK, Phase.SUSPENDING, Phase.LEAVING, Phase.REFUSED}
_REMOVE = "`tpudeploy gc -foreign`, with this profile, removes them."
_LOOK = """They have the name of a slice of this deployment, and none of the labels that tpudeploy sets, so nothing here
deletes them. If they are yours, delete them with `gcloud`, or import them with `tpudeploy import`.
Otherwise use another name for the deployment."""
_ADOPT = """This plan would request more slices beside them. Look for their state first: in a bucket (-backend),
in another folder (--chdir), or with a colleague. A fresh clone has no local states, and does not see that
`tpudeploy state migrate` moved one. Two states of one slice undo each other's changes.
Only if the state is lost: `tpudeploy apply -adopt` adopts them;
`tpudeploy gc -foreign`, with this profile, removes them.
If they belong to someone else, use their state or another name."""


def find_orphans(
    listings: Iterable[Listing],
    states: Mapping[str, State],
    *,
    foreign: bool,
    now: float,
    not_searched: Sequence[NotSearched] = (),
) -> Orphans:
    """Return what no state needs. `states` by deployment, read after the listings: intents precede requests."""
    searched = tuple(listings)
    resources = [resource for listing in searched for resource in listing.resources]
    every = (_orphan(resource, states, foreign=foreign, now=now) for resource in resources)
    orphans = [orphan for orphan in every if orphan.claim is not Claim.NEEDED]
    return Orphans(
        projects=tuple(dict.fromkeys(listing.project for listing in searched)),
        strays=tuple(
            sorted(orphans, key=lambda orphan: (list(Claim).index(orphan.claim), import_id(orphan.resource.ref)))
        ),
        needed=len(resources) - len(orphans),
        foreign=foreign,
        unreachable=tuple(
            dict.fromkeys(f"{listing.project}/{zone}" for listing in searched for zone in listing.unreachable)
        ),
        looked_in=tuple(dict.fromkeys(zone for listing in searched for zone in listing.searched_zones)),
        not_searched=tuple(not_searched),
    )


def _orphan(resource: CloudResource, states: Mapping[str, State], *, foreign: bool, now: float) -> Orphan:
    kind = catalog.accelerator_type(resource.request.accelerator_type)
    is_billed = _is_billed(resource)
    return Orphan(
        resource=resource,
        deployment=_owner(resource, states) or resource.mark.deployment,
        claim=_claim(resource, states),
        goes=is_removable(resource, states, foreign=foreign),
        age=None if resource.requested_at is None else max(0.0, now - resource.requested_at),
        usd_per_hour=prices.usd_per_hour(as_attempt(resource, resource.ref.name, now)) if is_billed else 0.0,
        chips=None if kind is None else kind.chips,
    )


def _claim(resource: CloudResource, states: Mapping[str, State]) -> Claim:
    ref = resource.ref
    places = ((a.backend, a.project, a.zone, a.name) for state in states.values() for a in state.attempts)
    if (ref.backend, ref.project, ref.zone, ref.name) in places:
        return Claim.NEEDED
    owner = _owner(resource, states)
    if owner is not None:
        # What was moved away is tracked where it is now.
        return Claim.NEEDED if states[owner].moved_to else Claim.LEFTOVER
    return Claim.NO_STATE if resource.mark.deployment not in states else Claim.OTHER_LINEAGE


def _owner(resource: CloudResource, states: Mapping[str, State]) -> str | None:
    """Return the deployment whose state has its lineage: that of its name, or the present name of a renamed one."""
    return next((name for name, state in states.items() if state.lineage[:8] == resource.mark.lineage), None)


def is_removable(resource: CloudResource, states: Mapping[str, State], *, foreign: bool) -> bool:
    """Return whether it may be removed. A resource that is ours by its name alone may be a stranger's: never."""
    claim = _claim(resource, states)
    return resource.is_signed and (claim is Claim.LEFTOVER or (foreign and claim is not Claim.NEEDED))


def is_adoptable(resource: CloudResource) -> bool:
    """Return whether a state can track it: with evidence that it is ours, and with one machine of its own name."""
    return resource.is_signed and not resource.ref.is_bare and resource.request.nodes in {(), (resource.ref.name,)}


def as_attempt(resource: CloudResource, name: str, now: float) -> Attempt:
    """Return it as a state would track it under `name`, so that the same decisions serve for it."""
    return Attempt(
        name=name,
        project=resource.ref.project,
        zone=resource.ref.zone,
        provisioning=resource.request.provisioning,
        spec={
            "vm.machine" if resource.mark.replica == ROUTER else "tpu.type": resource.request.accelerator_type,
            "placement.backend": resource.ref.backend,
        },
        asked_at=resource.requested_at if resource.requested_at is not None else now,
        boot=Boot(server=""),
        life=Queued(),
    )


def untracked(deployment: Deployment, resources: Sequence[CloudResource], *, destroy: bool) -> Iterator[Diagnostic]:
    """Yield an error if one of them runs or may still be granted, and a warning if they only use quota."""
    alive = [resource for resource in resources if resource.slice.phase not in _DEAD or _is_billed(resource)]
    descriptions = ", ".join(map(_describe, alive or resources))
    if alive:
        count = f"{len(alive)} slice{'' if len(alive) == 1 else 's'}"
        yield Diagnostic(
            code=UNTRACKED,
            message=f"{deployment.name} has {count} that no state here tracks: {descriptions}.",
            hint=_hint(alive, destroy=destroy),
        )
    elif resources:
        yield Diagnostic(
            code=UNTRACKED,
            message=f"{deployment.name} has slices that no state here tracks. They no longer run, and still use quota:"
            f" {descriptions}.",
            severity=Severity.WARNING,
            hint=_REMOVE,
        )


def nothing_to_adopt(deployment: Deployment) -> Diagnostic:
    """Return the error of a plan that is to adopt slices, where none has the labels of its deployment."""
    return Diagnostic(
        code=UNTRACKED,
        message=f"{deployment.name} has no state and no slice with its labels, so -adopt has nothing to adopt.",
        hint="To request a slice, leave out -adopt. A slice without labels, for example one that was imported and not"
        f" changed since, is tracked by its name: tpudeploy import '{deployment.name}[0]' ZONE/NAME PROFILE",
    )


def _hint(alive: Iterable[CloudResource], *, destroy: bool) -> str:
    """Return what can be done about slices that no state tracks: only what works for all of them."""
    if not all(resource.is_signed for resource in alive):
        return _LOOK
    if destroy or not all(map(is_adoptable, alive)):
        return _REMOVE
    return _ADOPT


def not_searched(names: Iterable[str], because: str) -> Diagnostic:
    return Diagnostic(
        code=NOT_SEARCHED,
        message=f"{words.some(names)} may have slices that no state here tracks: {because}",
        severity=Severity.WARNING,
        hint="`tpudeploy gc` searches again.",
    )


def _is_billed(resource: CloudResource) -> bool:
    """Return whether its machine runs, or some of several: not before the grant, nor once the node is gone."""
    return resource.slice.phase is Phase.UP or resource.slice.machines_running > 0


def _describe(resource: CloudResource) -> str:
    cost = ""
    if _is_billed(resource):
        usd = prices.usd_per_hour(as_attempt(resource, resource.ref.name, 0.0))
        cost = ", price unknown" if usd is None else f", ${usd:.2f}/h"
    return f"{resource.ref.name} ({resource.ref.zone}, {resource.slice.raw_state}{cost})"
