"""Plan: the states and one observation of the world, compared with the profiles."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Severity, errors_in
from tpudeploy.domain.errors import CloudError, ConfigError, TpudeployError
from tpudeploy.domain.facts import Facts
from tpudeploy.domain.names import ROUTER, Address
from tpudeploy.domain.orphans import CloudResource
from tpudeploy.domain.plan import Action, Change, Goal, Mode, Plan, Reason, ScalePlan, SliceDrift
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import State
from tpudeploy.domain.together import together
from tpudeploy.engine.capacity_history import CapacityHistory
from tpudeploy.engine.observe import ObservationTarget, observe_all_or_each, readable_states
from tpudeploy.engine.orphans import SearchResult, adopt_all, search
from tpudeploy.engine.refresh import observation
from tpudeploy.engine.session import warnings_of_abandoned_locks
from tpudeploy.node.fingerprint import aim_print
from tpudeploy.orphans.adoption import adoptable
from tpudeploy.orphans.claims import nothing_to_adopt, untracked
from tpudeploy.planning.change_estimates import with_estimates
from tpudeploy.planning.diff import changes, removals
from tpudeploy.planning.drift import drift, mark_outside_changes, refreshed
from tpudeploy.planning.headroom import headroom_problems, needs_headroom
from tpudeploy.planning.plan_preconditions import preconditions
from tpudeploy.planning.plan_rules import forbidden_deletions, rename_warnings, started_only_here, unreachable_end
from tpudeploy.planning.quota import QuotaTable
from tpudeploy.planning.targets import (
    Targets,
    mark_replacements,
    only_targets,
    partial_plan_warning,
    replicas_by_deployment,
    require_names,
    slices_to_replace,
)
from tpudeploy.ports import VerifySources, World
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.cutover import mark_as_ending, slices_needing_successors, with_drain
from tpudeploy.reconcile.ends import started_again, until_end
from tpudeploy.reconcile.merge_observation import cached_observation, merge_observation
from tpudeploy.reconcile.replicas import with_replicas
from tpudeploy.sizing.checks import check, with_verdict

_MOST_OTHER_STATES = 20  # that are read to find one that was renamed

FactsOf = Callable[[str | None, Iterable[Backend]], Facts]
Diagnostics = Mapping[str, tuple[Diagnostic, ...]]  # by deployment


@dataclass(frozen=True, slots=True, kw_only=True)
class PlanScope:
    """The scope of a plan. Without `refresh`, the world is assumed to be as the states track it.

    With `start`, deployments whose end has come start again.
    """

    mode: Mode = Mode.NORMAL
    adopt: bool = False
    refresh: bool = True
    replace: tuple[Address, ...] = ()
    target: tuple[Address, ...] = ()
    start: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _DraftDeployment:
    """One deployment before its observation: the target, and the state. `deployment` is None if it is to be deleted.

    `adopts` are the slices that a new state begins with. `targets`, `replaces` and `starts` are as in `Goal`.
    """

    name: str
    deployment: Deployment | None
    state: State
    adopts: tuple[str, ...] = ()
    targets: Targets = None
    replaces: tuple[str, ...] = ()
    starts: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Selection:
    """The deployments of a plan, and the replicas of each that are its targets and that are to be replaced."""

    deployments: tuple[Deployment, ...]
    targets: Mapping[str, Targets]
    replacements: Mapping[str, Targets]
    states: Mapping[str, State]

    @property
    def new_deployments(self) -> list[Deployment]:
        return [deployment for deployment in self.deployments if deployment.name not in self.states]

    def without_slices(self, mode: Mode) -> list[Deployment]:
        """Return those of which the state shows nothing, although the project may have slices of theirs.

        A state that tracks no slice has nothing to remove. But a request that it has forgotten may have led to one.
        """
        emptied = [
            d for d in self.deployments if d.name in self.states and _has_forgotten_everything(self.states[d.name])
        ]
        return self.new_deployments + (emptied if mode is Mode.DESTROY else [])


def _has_forgotten_everything(state: State) -> bool:
    return not state.attempts and state.next_attempt > 0


def plan(
    world: World,
    deployments: Iterable[Deployment],
    scope: PlanScope | None = None,
    *,
    invalid: Mapping[str, ConfigError] | None = None,
    facts: FactsOf | None = None,
    sources: VerifySources | None = None,
) -> Plan:
    """Return the plan for these deployments.

    With `PlanScope.adopt`, slices that no state tracks are adopted; without it, they are an error in the diagnostics.
    An error that stops only one of several deployments is in the `errors` of its goal, for example a state that cannot
    be read, or slices that cannot be observed. A plan that a lifecycle rule forbids has an error in its diagnostics.

    `invalid` are the profiles that cannot be used, by deployment, or by file if the file does not say which deployment
    it describes: each has a goal with its problems. `facts` returns the quota of a project at some APIs, and is
    called only if a slice and its replacement are to exist side by side. `sources` are asked by a plan that changes
    nothing: a server with other settings than declared has drifted.

    Raise `errors.Fault` or `errors.Denied` if nothing can be observed, `errors.StateError` if no state can be read, and
    `errors.UsageError` for an address that does not exist.
    """
    scope = scope if scope is not None else PlanScope()
    everything = tuple(deployments)
    requested, unusable, target_warnings = _targeted(scope.target, everything, invalid or {})
    states, unreadable = _read_states(world, requested)
    failed_goals = _failed_goals(requested, scope, unreadable, unusable)
    selection = _select(requested, scope, states, unreadable)
    orphans = search(world, selection.without_slices(scope.mode)) if scope.refresh else SearchResult(resources={})
    parts, orphan_diagnostics = _parts(world, scope, selection, orphans)
    goals = _goals(world, scope, parts, sources)

    made_at = world.clock.now()
    targeted = selection.deployments
    rules = {
        d.name: (*forbidden_deletions([d], [goal]), *_unreachable_end(d, goal, selection.states, made_at))
        for d, goal in zip(targeted, goals, strict=True)
    }
    checks = {d.name: check([d]) for d in targeted} if scope.mode is Mode.NORMAL else {}
    headroom = _headroom_diagnostics(selection, goals, facts if scope.refresh else None, made_at)
    renames: tuple[Diagnostic, ...] = ()
    # A profile that cannot be used may be the one of a state that seems to have none.
    if scope.mode is Mode.NORMAL and not invalid:
        renames = tuple(_rename_warnings(world, selection.new_deployments, {d.name for d in everything}))
    return Plan(
        goals=(
            *(_with_errors(_with_verdict(goal, checks), rules, orphan_diagnostics, checks, headroom) for goal in goals),
            *failed_goals,
        ),
        diagnostics=(
            *(error for goal in (*failed_goals, *goals) for error in goal.errors),
            *_joined(rules),
            *_joined(orphan_diagnostics),
            *orphans.diagnostics,
            *warnings_of_abandoned_locks(world, [d.name for d in targeted]),
            *target_warnings,
            *_joined(headroom),
            *renames,
            *_mornings(world, scope, targeted),
            *_joined(checks),
        ),
        mode=scope.mode,
        made_at=made_at,
    )


def _mornings(world: World, scope: PlanScope, deployments: Iterable[Deployment]) -> tuple[Diagnostic, ...]:
    """Return a warning for each deployment with hours that only this computer can start in the morning."""
    if scope.mode is not Mode.NORMAL or world.state.is_shared:
        return ()
    return tuple(warning for deployment in deployments for warning in started_only_here(deployment))


def _targeted(
    addresses: Collection[Address], deployments: Sequence[Deployment], invalid: Mapping[str, ConfigError]
) -> tuple[tuple[Deployment, ...], dict[str, ConfigError], tuple[Diagnostic, ...]]:
    """Return the deployments and the invalid profiles that the addresses name, and warnings of what is left out.

    Without addresses, nothing is left out. The plan leaves the others alone, so their problems are warnings. Raise
    `errors.UsageError` for a name that does not exist.
    """
    if not addresses:
        return tuple(deployments), dict(invalid), ()
    names = {each.deployment for each in addresses}
    require_names(addresses, [deployment.name for deployment in deployments], invalid)
    others = [error for name, error in invalid.items() if name not in names]
    return (
        tuple(deployment for deployment in deployments if deployment.name in names),
        {name: error for name, error in invalid.items() if name in names},
        (
            partial_plan_warning(),
            *(replace(problem, severity=Severity.WARNING) for error in others for problem in error.problems),
        ),
    )


def _failed_goals(
    deployments: Iterable[Deployment],
    scope: PlanScope,
    unreadable: Mapping[str, TpudeployError],
    invalid: Mapping[str, ConfigError],
) -> list[Goal]:
    """Return the goals for which nothing is planned: of an unreadable state, and of a profile that cannot be used."""
    goals = [_goal_without_plan(_part(d, scope), unreadable[d.name]) for d in deployments if d.name in unreadable]
    return [*goals, *(_goal_of_invalid_profile(name, error) for name, error in invalid.items())]


def _select(
    requested: Iterable[Deployment], scope: PlanScope, states: Mapping[str, State], unreadable: Collection[str]
) -> _Selection:
    """Return what the scope selects of the deployments whose states can be read.

    Raise `errors.UsageError` for an address that does not exist.
    """
    deployments = [d for d in requested if d.name not in unreadable]
    targets: Mapping[str, Targets] = {d.name: None for d in deployments}
    if scope.target:
        addresses = [each for each in scope.target if each.deployment in targets]
        targets = replicas_by_deployment(addresses, deployments, states)
    targeted = tuple(d for d in deployments if d.name in targets)
    replacements = replicas_by_deployment(scope.replace, targeted, states)
    return _Selection(deployments=targeted, targets=targets, replacements=replacements, states=states)


def _parts(
    world: World, scope: PlanScope, selection: _Selection, orphans: SearchResult
) -> tuple[list[_DraftDeployment], Diagnostics]:
    """Return the parts of the plan with what they adopt, and the diagnostics of the orphans that they leave alone."""
    parts: list[_DraftDeployment] = []
    orphan_diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
    for deployment in selection.deployments:
        name = deployment.name
        resources, replacements = orphans.resources.get(name, ()), selection.replacements.get(name, ())
        part = replace(_part(deployment, scope), targets=selection.targets[name], starts=scope.start)
        part = _with_state(world, part, selection.states.get(name), resources, replacements)
        # Only a deployment without a state has orphans to adopt. A refresh compares existing states alone.
        is_emptied = scope.mode is Mode.DESTROY and _has_forgotten_everything(part.state)
        if (not part.state.lineage or is_emptied) and scope.mode is not Mode.REFRESH_ONLY:
            part, orphan_diagnostics[name] = _with_orphans(world, part, deployment, resources, scope)
        parts.append(part)
    return parts, orphan_diagnostics


def _goals(
    world: World, scope: PlanScope, parts: Sequence[_DraftDeployment], sources: VerifySources | None
) -> tuple[Goal, ...]:
    if scope.mode is Mode.REFRESH_ONLY:
        return tuple(_observed_goals(world, parts, sources))
    history = _history_for_renewals(world, (part.deployment for part in parts))
    return tuple(_planned_goals(world, history, parts, refresh=scope.refresh))


def _unreachable_end(
    deployment: Deployment, goal: Goal, states: Mapping[str, State], now: float
) -> Iterator[Diagnostic]:
    """Yield the error of an end before the start. What exists, or has ended already, is deleted or left instead."""
    state = states.get(deployment.name)
    is_new = state is None or (not state.attempts and state.ended is None)
    return unreachable_end(deployment, now) if is_new and goal.deployment is not None else iter(())


def _joined(diagnostics: Diagnostics) -> Iterator[Diagnostic]:
    return (diagnostic for group in diagnostics.values() for diagnostic in group)


def _with_verdict(goal: Goal, checks: Diagnostics) -> Goal:
    """Return the goal with the verdict of the checks on the memory of its deployment, as `size` gives it."""
    if goal.deployment is None:
        return goal
    deployment = with_verdict(goal.deployment, checks.get(goal.name, ()))
    return goal if deployment is goal.deployment else replace(goal, deployment=deployment)


def _with_errors(goal: Goal, *diagnostics: Diagnostics) -> Goal:
    """Return the goal with the errors that concern only its deployment."""
    errors = errors_in(diagnostic for group in diagnostics for diagnostic in group.get(goal.name, ()))
    return replace(goal, errors=(*goal.errors, *errors)) if errors else goal


def _read_states(world: World, deployments: Sequence[Deployment]) -> tuple[dict[str, State], dict[str, TpudeployError]]:
    """Return the existing states, and why others cannot be read. Raise that if nothing else can be planned."""
    states, unreadable = readable_states(world, [d.name for d in deployments])
    if unreadable and len(unreadable) == len(deployments):
        raise next(iter(unreadable.values()))
    return {name: state for name, state in states.items() if state is not None}, unreadable


def _part(deployment: Deployment, scope: PlanScope) -> _DraftDeployment:
    return _DraftDeployment(
        name=deployment.name,
        deployment=None if scope.mode is Mode.DESTROY else deployment,
        state=State(deployment=deployment.name, lineage=""),
    )


def _with_state(
    world: World, part: _DraftDeployment, state: State | None, resources: Sequence[CloudResource], replacements: Targets
) -> _DraftDeployment:
    """Return the part with its state, if it has one, and the slices in it that are to be replaced."""
    if state is None and resources:
        # Another run may have written the state since it was read: then these are its slices.
        state = world.state.read(part.name).state
    if state is None:
        return part
    records = state.records if replacements is None else [state.record(index) for index in replacements]
    return replace(part, state=state, replaces=tuple(name for r in records for name in slices_to_replace(r)))


def _with_orphans(
    world: World, part: _DraftDeployment, deployment: Deployment, resources: Sequence[CloudResource], scope: PlanScope
) -> tuple[_DraftDeployment, tuple[Diagnostic, ...]]:
    """Return the part with the orphans that it adopts, and the diagnostics of those that it leaves alone."""
    is_removal = scope.mode is Mode.DESTROY
    chosen = adoptable(resources) if scope.adopt and not is_removal else ()
    rest = [resource for resource in resources if resource not in chosen]
    diagnostics = tuple(untracked(deployment, rest, destroy=is_removal))
    if scope.adopt and not is_removal and not resources and scope.refresh:
        # The user expects a slice to be there. To request another one beside it could not be undone.
        diagnostics = (nothing_to_adopt(deployment),)
    if chosen:
        state = adopt_all(world, part.state, deployment, chosen)
        part = replace(part, state=state, adopts=tuple(resource.ref.name for resource in chosen))
    return part, diagnostics


def _goal_of_invalid_profile(name: str, error: ConfigError) -> Goal:
    """Return the goal of a profile that cannot be used, with its problems: nothing is planned for it."""
    part = _DraftDeployment(name=name, deployment=None, state=State(deployment=name, lineage=""))
    return replace(_empty_goal(part), fingerprint="", errors=error.problems)


def _goal_without_plan(part: _DraftDeployment, error: TpudeployError) -> Goal:
    """Return the goal of a deployment that cannot be observed: nothing is planned for it."""
    problem = Diagnostic(code=error.code, message=f"{part.name}: {error.message}", hint=error.hint)
    return replace(_empty_goal(part), errors=(problem,))


def _empty_goal(part: _DraftDeployment) -> Goal:
    return Goal(
        name=part.name,
        deployment=part.deployment,
        fingerprint=aim_print(part.deployment, part.targets),
        lineage=part.state.lineage,
        serial=part.state.serial,
        resumes=False,
        changes=(),
        targets=part.targets,
    )


def _headroom_diagnostics(
    selection: _Selection, goals: Sequence[Goal], facts: FactsOf | None, now: float
) -> Diagnostics:
    """Return the replacements for which there is certainly no room beside what they replace."""
    # Without the quota of the project, nothing is known about the room.
    if facts is None:
        return {}
    states = selection.states
    pairs = [
        (deployment, goal)
        for deployment, goal in zip(selection.deployments, goals, strict=True)
        if deployment.name in states and needs_headroom(goal)
    ]
    keys = dict.fromkeys((deployment.project, deployment.backends) for deployment, _ in pairs)
    facts_by_key = {(project, backends): facts(project, backends) for project, backends in keys}
    diagnostics: dict[str, tuple[Diagnostic, ...]] = {}
    for deployment, goal in pairs:
        apis = facts_by_key[deployment.project, deployment.backends].apis
        quotas = {
            backend: QuotaTable.from_facts(api, deployment.accelerator.generation) for backend, api in apis.items()
        }
        diagnostics[goal.name] = tuple(headroom_problems(deployment, goal, states[goal.name], quotas, now))
    return diagnostics


def _rename_warnings(
    world: World, new_deployments: Sequence[Deployment], names: Collection[str]
) -> Iterator[Diagnostic]:
    """Warn if the slices of a deployment without a state are those of another, for which there is no profile."""
    other_names = [name for name in world.state.names() if name not in names] if new_deployments else []
    if 0 < len(other_names) <= _MOST_OTHER_STATES:
        # An unreadable state of another deployment stops none of these.
        states, _ = readable_states(world, other_names)
        for deployment in new_deployments:
            yield from rename_warnings(deployment, [state for state in states.values() if state is not None])


def with_renewals(
    world: World, goals: Sequence[Goal], applied: Callable[[Deployment, Mapping[str, Json]], Deployment | None]
) -> tuple[Goal, ...]:
    """Return the goals, each that mixes a renewal with a change of the profile as that of the last applied profile.

    `applied` resolves a slice's own attributes. Raise `errors.Fault` or `errors.StateError`.
    """
    history = _history_for_renewals(world, (goal.deployment for goal in goals))
    return tuple(_renewal(world, history, goal, applied) or goal for goal in goals)


def _renewal(
    world: World,
    history: CapacityHistory,
    goal: Goal,
    applied: Callable[[Deployment, Mapping[str, Json]], Deployment | None],
) -> Goal | None:
    """Return the goal of the last applied profile, if there is something to renew and the profile has changed.

    Return None too if this version cannot resolve what the slice was given.
    """
    # A goal that resumes was approved, and one that only renews is not mixed.
    if goal.deployment is None or goal.resumes or goal.is_renewal:
        return None
    state = world.state.read(goal.name).state
    if state is None:
        return None
    for spec in _specs_with_renewal(state):
        deployment = applied(goal.deployment, spec)
        if deployment is None:
            continue
        indexes = tuple(record.index for record in state.records if any(a.spec == spec for a in record.attempts))
        deployment = replace(deployment, replicas=max(indexes) + 1, indexes=tuple(range(max(indexes) + 1)))
        for targets in _renewal_targets(world, history, deployment, state, indexes):
            candidate = plan_deployment(world, history, goal.name, deployment, state, targets=targets)
            if candidate.is_renewal or candidate.resumes:
                return candidate
    return None


def _specs_with_renewal(state: State) -> list[Mapping[str, Json]]:
    """Return the different attributes of the slices that are to have successors before their runs end."""
    specs: list[Mapping[str, Json]] = []
    for attempt in state.attempts:
        is_renewed = attempt.releasing_at is None and attempt.spec.get("lifecycle.on_run_end") == "renew"
        if is_renewed and attempt.spec not in specs:
            specs.append(attempt.spec)
    return specs


def _renewal_targets(
    world: World, history: CapacityHistory, deployment: Deployment, state: State, indexes: tuple[int, ...]
) -> Iterator[Targets]:
    """Yield the replicas whose runs end now, and those that an earlier run began to renew, in any case."""
    names = plan_deployment(world, history, deployment.name, deployment, state, targets=indexes).renews
    ending_replicas = {record.index for record in state.records for a in record.attempts if a.name in names}
    if ending_replicas:
        yield tuple(sorted(ending_replicas))
    approved = "" if state.goal is None else state.goal.fingerprint
    for targets in (indexes, *((index,) for index in indexes)):
        if approved and aim_print(deployment, targets) == approved:
            yield targets


def _observed_goals(world: World, parts: Sequence[_DraftDeployment], sources: VerifySources | None) -> Iterator[Goal]:
    """Yield the drift of each deployment, and no changes; or why it cannot be observed."""
    existing = [(part, part.deployment) for part in parts if part.deployment is not None and part.state.lineage]
    subjects = [ObservationTarget(state=part.state, deployment=deployment) for part, deployment in existing]

    def observed_goal(each: tuple[tuple[_DraftDeployment, Deployment], Observed | CloudError]) -> Goal:
        (part, deployment), observed = each
        if isinstance(observed, CloudError):
            return _goal_without_plan(part, observed)
        return observation(world, deployment, part.state, part.targets, observed, sources=sources)

    pairs = list(zip(existing, observe_all_or_each(world, subjects), strict=True))
    goals = {goal.name: goal for goal in together(world.threads, observed_goal, pairs)}
    for part in parts:
        # A deployment that was never applied cannot have drifted.
        yield goals[part.name] if part.name in goals else replace(_empty_goal(part), lineage="", serial=0)


def plan_deployment(
    world: World,
    history: CapacityHistory,
    name: str,
    deployment: Deployment | None,
    state: State | None,
    *,
    adopts: tuple[str, ...] = (),
    targets: Targets = None,
    replaces: tuple[str, ...] = (),
    starts: bool = False,
    refresh: bool = True,
) -> Goal:
    """Return one deployment's goal, from one observation. `deployment` is None if it is to be deleted."""
    known_state = state if state is not None else State(deployment=name, lineage="")
    part = _DraftDeployment(
        name=name,
        deployment=deployment,
        state=known_state,
        adopts=adopts,
        targets=targets,
        replaces=replaces,
        starts=starts,
    )
    return next(_planned_goals(world, history, [part], refresh=refresh))


def _planned_goals(
    world: World, history: CapacityHistory, parts: Sequence[_DraftDeployment], *, refresh: bool
) -> Iterator[Goal]:
    """Yield the goals of all deployments, from one observation of all."""
    if not refresh:
        now = world.clock.now()
        for part in parts:
            yield _planned_goal(world, history, part, cached_observation(part.state, now), refresh=False)
        return
    subjects = [ObservationTarget(state=part.state, deployment=part.deployment) for part in parts]
    for part, observed in zip(parts, observe_all_or_each(world, subjects, probe_again=False), strict=True):
        if isinstance(observed, CloudError):
            yield _goal_without_plan(part, observed)
        else:
            yield _planned_goal(world, history, part, observed, refresh=True)


def _planned_goal(
    world: World, history: CapacityHistory, part: _DraftDeployment, observed: Observed, *, refresh: bool
) -> Goal:
    has_ended = part.deployment is not None and until_end(part.deployment, part.state, observed).ended is not None
    starts = part.starts and has_ended
    part = _with_replicas_until_end(part, observed, starts=starts)
    goal, deployment, targets = _empty_goal(part), part.deployment, part.targets
    own_fingerprints = {goal.fingerprint, goal.fingerprint if targets is None else aim_print(deployment, None)}
    state = mark_replacements(part.state, part.replaces, own_fingerprints)
    if part.adopts:
        # Otherwise a slice that serves already would seem to be starting.
        state = merge_observation(state, observed)
    context = DecisionContext(observed=observed, patience=with_drain(world.patience, deployment, state))
    # A cached observation is the state itself, so it cannot show a change from outside.
    # A machine that deletes itself at its end does what was applied.
    is_compared = refresh and (deployment is None or deployment.ended is None)
    outside_changes = only_targets(targets, drift(state, context)) if is_compared else ()
    state = refreshed(state, outside_changes)
    all_changes, renews, state = _changes(part, state, context, history)
    own_changes = [_complete(change, part, outside_changes, world) for change in only_targets(targets, all_changes)]
    approval = state.goal
    has_changes = any(change.action is not Action.NO_OP for change in own_changes)
    # A plan without changes needs no approval, but it ends what an earlier approval began.
    resumes = approval is not None and (approval.fingerprint in own_fingerprints or not has_changes)
    return replace(
        goal,
        lineage=state.lineage,
        serial=state.serial,
        resumes=resumes,
        changes=tuple(own_changes),
        adopts=part.adopts,
        seen=preconditions(state, context, own_changes) if refresh else (),
        drift=outside_changes,
        replaces=part.replaces,
        starts=_starts_again(part, is_wanted=starts),
        forgets=_has_ended(part, own_changes),
        renews=renews,
        to_verify=_slices_to_verify(part, state),
        begun=state.begun,
        approval=approval.approval if resumes and approval is not None else "",
        scale=_scale_plan(deployment),
    )


def _starts_again(part: _DraftDeployment, *, is_wanted: bool) -> bool:
    """Return whether a deployment that has ended starts again: a user wants it, or its profile has changed since."""
    ended, deployment = part.state.ended, part.deployment
    if is_wanted or ended is None or ended.until is not None or part.targets is not None:
        return is_wanted
    return deployment is not None and deployment.ended is None


def _has_ended(part: _DraftDeployment, own_changes: Iterable[Change]) -> bool:
    """Return whether the state of a deployment that has ended still tracks slices, of which nothing is left."""
    if part.deployment is None or part.deployment.ended is None or part.targets is not None:
        return False
    return bool(part.state.attempts) and all(change.action is Action.NO_OP for change in own_changes)


def _with_replicas_until_end(part: _DraftDeployment, observed: Observed, *, starts: bool) -> _DraftDeployment:
    """Return the part with the indexes of its replicas: none once its end has come, unless it starts again."""
    state = started_again(part.state, observed.at) if starts else part.state
    if part.deployment is None:
        return replace(part, state=state)
    return replace(
        part, state=state, deployment=with_replicas(until_end(part.deployment, state, observed), state, observed)
    )


def _changes(
    part: _DraftDeployment, state: State, context: DecisionContext, history: CapacityHistory
) -> tuple[tuple[Change, ...], tuple[str, ...], State]:
    """Return the changes, the slices that get successors before their runs end, and the state that says so."""
    deployment, targets = part.deployment, part.targets
    if deployment is None:
        return removals(part.name, state, context, targets), (), state
    if deployment.ended is not None:
        return removals(part.name, state, context, targets, Reason.ENDED), (), state
    renews: tuple[str, ...] = ()
    if deployment.lifecycle.renew:
        context = replace(context, acquisition=history.acquisition(deployment))
        renews = slices_needing_successors(deployment, state, context)
        state = mark_as_ending(state, renews)
    return changes(deployment, _without_failures(state), context, targets), renews, state


def _without_failures(state: State) -> State:
    """Return the state as an apply begins with it: a change that failed at a replica is sent again."""
    for record in state.records:
        for attempt in record.attempts:
            if attempt.is_failed:
                state = state.with_record(state.record(record.index).with_attempt(replace(attempt, is_failed=False)))
    return state


def _scale_plan(deployment: Deployment | None) -> ScalePlan | None:
    """Return the bounds of a deployment that may be scaled, and the most that it may cost then."""
    scale = None if deployment is None else deployment.scale
    if deployment is None or scale is None or deployment.ended is not None:
        return None
    least = max(scale.min, deployment.on_demand_floor)
    most = prices.ceiling_of_replicas(deployment, scale.max)
    most_of_least = prices.ceiling_of_replicas(deployment, least)
    if scale.max_usd_per_hour is not None and most_of_least.is_known:
        # The ceiling lets no replica be added; the least number is there in any case.
        limit = min(most.usd_per_hour, scale.max_usd_per_hour) if most.is_known else scale.max_usd_per_hour
        most = Ceiling(usd_per_hour=max(most_of_least.usd_per_hour, limit), prices=most.prices)
    replicas = len(deployment.replica_indexes)
    return ScalePlan(
        min=least,
        max=scale.max,
        replicas=replicas,
        usd_per_hour_most=most.usd_per_hour if most.is_known else None,
        ceiling=most,
        ceiling_of_additions=prices.ceiling_of_acquisition(deployment)[1] * max(0, scale.max - replicas),
    )


def _complete(change: Change, part: _DraftDeployment, outside_changes: Sequence[SliceDrift], world: World) -> Change:
    """Return the change with what was changed outside tpudeploy, and with its estimates."""
    if change.slice_name in part.adopts:
        # To be tracked is a change, if nothing else is.
        action = Action.UPDATE if change.action is Action.NO_OP else change.action
        change = replace(change, action=action, reason=Reason.ADOPTED)
    change = mark_outside_changes(change, outside_changes)
    # The router's VM has no model to size.
    is_sized = part.deployment is not None and change.replica != ROUTER
    return with_estimates(change, part.deployment, world.patience) if part.deployment and is_sized else change


def _slices_to_verify(part: _DraftDeployment, state: State) -> tuple[str, ...]:
    """Return the slices that an apply has to verify again. The state tracks them: a plan asks no engine."""
    if part.deployment is None:
        return ()
    records = [record for record in state.records if part.targets is None or record.index in part.targets]
    return tuple(a.name for record in records for a in record.attempts if a.not_in_effect and a.releasing_at is None)


def _history_for_renewals(world: World, deployments: Iterable[Deployment | None]) -> CapacityHistory:
    """Return the history that a plan needs: it says how long before the end of a run its successor is requested."""
    return CapacityHistory(world, (each for each in deployments if each is not None and each.lifecycle.renew))
