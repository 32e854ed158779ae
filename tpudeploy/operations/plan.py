"""Show what would change, why, and which line of which file caused it. Changes nothing, but for pins with -pin."""

from __future__ import annotations

import dataclasses
from collections.abc import Callable, Iterable, Mapping
from functools import partial
from pathlib import Path
from typing import Annotated

from tpudeploy import loading
from tpudeploy.config.profile import Profile
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.domain.events import Event
from tpudeploy.domain.facts import Facts
from tpudeploy.domain.pins import Pins
from tpudeploy.domain.plan import Mode
from tpudeploy.domain.router import RouterHost
from tpudeploy.engine import plan as engine
from tpudeploy.engine.cost_wall import ledger_warnings, planned_shortfalls
from tpudeploy.engine.observe import readable_states
from tpudeploy.engine.pins import PinLookup, complete, with_labels
from tpudeploy.engine.plan import PlanScope
from tpudeploy.loading import OneProfile, Profiles
from tpudeploy.operations.arguments import Agents, Arg, ValidProfiles
from tpudeploy.operations.declaration import Operation
from tpudeploy.pins import names, not_pinned, written_digests
from tpudeploy.planning.targets import parse_addresses
from tpudeploy.plans import Plan
from tpudeploy.ports import World
from tpudeploy.wiring import Adapters
from tpudeploy.workspace import Workspace, unique_names

_EXCLUSIVE = (
    ("destroy", "replace"),
    ("destroy", "adopt"),
    ("adopt", "replace"),
    ("refresh_only", "destroy"),
    ("refresh_only", "replace"),
    ("refresh_only", "adopt"),
    ("start", "destroy"),
    ("start", "refresh_only"),
)


def plan(
    workspace: Workspace,
    profiles: ValidProfiles,
    *,
    destroy: Annotated[
        bool, Arg("Plan the deletion.", agents=Agents("plan the removal, for the tool destroy"))
    ] = False,
    adopt: Annotated[bool, Arg("Adopt existing slices that no state tracks.", agents=None)] = False,
    replace: Annotated[
        Iterable[str],
        Arg(
            "Replace the slices of this deployment, NAME, or of this replica, NAME[0] (repeatable).",
            metavar="ADDR",
            agents=Agents("another slice for these: NAME, or NAME[0]"),
        ),
    ] = (),
    start: Annotated[bool, Arg("Start a deployment again that has ended (lifecycle.end).")] = False,
    refresh_only: Annotated[
        bool,
        Arg(
            "Only record in the state what changed outside; change nothing in the cloud.",
            agents=Agents("only record what changed outside, and change no resource"),
        ),
    ] = False,
    target: Annotated[
        Iterable[str],
        Arg(
            "Plan only this deployment, NAME, or this replica, NAME[0] (repeatable).",
            metavar="ADDR",
            agents=Agents("only these: NAME, or NAME[0] for one replica"),
        ),
    ] = (),
    refresh: Annotated[
        bool,
        Arg(
            "With `false`, plan from the states without looking at the cloud; apply looks in any case.",
            agents=None,
        ),
    ] = True,
    attest: bool = False,
    invalid: Mapping[str, ConfigError] | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Plan:
    """Show what would change, why, by which line, at what price. Changes nothing; pass plan_id to apply or destroy.

    `target` names what the plan is about, `replace` the slices to replace: addresses such as `gemma[0]`, or `gemma` for
    all replicas. With `adopt`, slices that no state tracks are taken over. Without `refresh`, the cloud is assumed to
    be as the states record it. With `start`, deployments that have ended (`lifecycle.end`) start again. With
    `refresh_only`, the plan only records what changed outside; with `attest` too, it shows servers that do not do what
    was applied.

    `invalid` are files that hold no valid profile, each with its error. They stop no other: each of them, and each
    profile that cannot be resolved, has a goal with its problems and without changes.

    Raise `errors.Fault` or `errors.Denied` if the cloud cannot be observed, `errors.UsageError` for an address that
    none of the profiles has and for arguments that exclude each other, `errors.ConfigError` if no profile can be used.
    """
    replaced, targets = tuple(replace), tuple(target)
    is_used = {
        "destroy": destroy,
        "adopt": adopt,
        "refresh_only": refresh_only,
        "replace": bool(replaced),
        "start": start,
    }
    _check_combination({name for name, value in is_used.items() if value}, refresh=refresh)
    mode = Mode.DESTROY if destroy else Mode.NORMAL
    scope = PlanScope(
        mode=Mode.REFRESH_ONLY if refresh_only else mode,
        adopt=adopt,
        refresh=refresh,
        replace=parse_addresses(replaced),
        target=parse_addresses(targets),
        start=start,
    )
    # Before pins are looked up, for a name that several have.
    unique, ambiguous = unique_names(_loaded(workspace, profiles, mode))
    adapters = workspace.adapters
    world = adapters.world(on_event)
    if scope.mode is Mode.NORMAL:
        pins = _pins(workspace, world, unique)
        unique, errors = _judge(unique, pins.pins)
        ambiguous = {**ambiguous, **errors}
    else:
        pins = PinLookup(pins=adapters.pins.read(), unknown={})
    deployments, unusable = workspace.resolve(unique, {**(invalid or {}), **ambiguous}, pins.pins)
    if scope.mode is Mode.NORMAL:
        deployments, unusable = _with_routers(adapters, deployments, unusable)
    new_plan = engine.plan(
        world,
        deployments,
        scope,
        invalid=unusable,
        facts=partial(_quota, adapters),
        sources=adapters.verify_sources if attest else None,
    )
    notify = {each.name: each.notify for each in deployments}
    goals = (dataclasses.replace(goal, notify=notify.get(goal.name, goal.notify)) for goal in new_plan.goals)
    new_plan = dataclasses.replace(new_plan, goals=tuple(goals))
    short = planned_shortfalls(world, new_plan.goals) if scope.mode is Mode.NORMAL else ()
    diagnostics = (*new_plan.diagnostics, *not_pinned(pins.unknown, deployments), *ledger_warnings(world), *short)
    return Plan.from_domain(dataclasses.replace(new_plan, diagnostics=diagnostics), backend=adapters.backend)


def _loaded(workspace: Workspace, profiles: Profiles, mode: Mode) -> tuple[Profile, ...]:
    """Return the profiles. For a removal, the name of a deployment is enough: what to delete is in its state.

    Raise `errors.UsageError` for a name without a state, and as `Profile.load` does.
    """

    def load(one: OneProfile) -> Profile:
        is_deployment = mode is Mode.DESTROY and loading.is_name(one) and not Path(str(one)).exists()
        return workspace.recorded_profile(str(one)) if is_deployment else loading.profile(one)

    return tuple(map(load, loading.each(profiles)))


def _with_routers(
    adapters: Adapters, deployments: Iterable[Deployment], unusable: Mapping[str, ConfigError]
) -> tuple[list[Deployment], Mapping[str, ConfigError]]:
    """Return the deployments whose router can run here, and an error for each other one besides those of `unusable`.

    Raise the first error if there is no deployment at all.
    """
    usable: list[Deployment] = []
    without_program: dict[str, ConfigError] = {}
    for deployment in deployments:
        try:
            if deployment.router is not None and deployment.router.host is RouterHost.LOCAL:
                adapters.routers.check(deployment.router)
            usable.append(deployment)
        except ConfigError as error:
            without_program[deployment.name] = error
    if without_program and not usable:
        raise next(iter(without_program.values()))
    return usable, {**unusable, **without_program}


def _quota(adapters: Adapters, project: str | None, backends: Iterable[Backend]) -> Facts:
    """Return the quota of a project. Its reader is only imported if a plan asks for it, which is seldom."""
    return adapters.survey.quota(project, backends)


def _check_combination(used: set[str], *, refresh: bool) -> None:
    """Raise `errors.UsageError` for arguments that exclude each other."""
    for one, other in _EXCLUSIVE:
        if {one, other} <= used:
            names = f"-{one.replace('_', '-')} and -{other.replace('_', '-')}"
            raise UsageError(f"{names} cannot be combined.", hint="Leave one out.")
    for name in ("refresh_only", "adopt"):
        if name in used and not refresh:
            option = f"-{name.replace('_', '-')}"
            raise UsageError(f"{option} needs to read the cloud.", hint="Leave out -refresh=false.")


def _judge(profiles: Iterable[Profile], pins: Pins) -> tuple[tuple[Profile, ...], Mapping[str, ConfigError]]:
    """Return the profiles as the releases of their engines judge them, and an error for each that is invalid.

    Raise the first error if there is no profile left.
    """
    valid: list[Profile] = []
    errors: dict[str, ConfigError] = {}
    for profile in profiles:
        try:
            valid.append(loading.judge(profile, pins))
        except ConfigError as error:
            errors[profile.name] = error
    if errors and not valid:
        raise next(iter(errors.values()))
    return tuple(valid), errors


def _pins(workspace: Workspace, world: World, profiles: Iterable[Profile]) -> PinLookup:
    """Return the pins of the names in profiles. Only names without a pin are looked up, first in the states."""
    adapters = workspace.adapters
    profiles = tuple(profiles)
    workspace.note_trust(profiles)
    pins = with_labels(adapters.pins.read(), written_digests(profiles), adapters.sources)
    unpinned = {}
    for profile in profiles:
        missing = tuple(name for name in names(profile) if pins.target_of(name) is None)
        if missing:
            unpinned[profile.name] = missing
    if not unpinned:
        return PinLookup(pins=pins, unknown={})
    states = [state for state in readable_states(world, list(unpinned))[0].values() if state is not None]
    missing_names = (name for missing in unpinned.values() for name in missing)
    return complete(pins, missing_names, states, adapters.sources, emulated=adapters.is_emulated)


OPERATION = Operation(
    run=plan,
    results=(Plan,),
    title="Plan",
    tool="plan",
    options=("parallelism", "backend"),
    takes_invalid=True,
    takes_events=True,
)
