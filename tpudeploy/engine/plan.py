"""State and world, looked at once, against what is wanted: a Plan."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace

from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, errors_in
from tpudeploy.domain.errors import CloudError, ConfigError, StateError, TpudeployError
from tpudeploy.domain.facts import Facts
from tpudeploy.domain.found import CloudResource
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action, Change, Goal, Mode, Plan, Reason
from tpudeploy.domain.slices import Observed
from tpudeploy.domain.state import State
from tpudeploy.domain.together import together
from tpudeploy.engine.contention import name_left_locks
from tpudeploy.engine.look import Sight, look_at_all_or_each, readable_states
from tpudeploy.engine.lost import Lost, remembered, search
from tpudeploy.engine.refresh import observation
from tpudeploy.engine.scope import Extent, Scope, extents_of
from tpudeploy.node.fingerprint import aim_print
from tpudeploy.orphans.adopt import adoptable
from tpudeploy.orphans.lost import unremembered
from tpudeploy.planning.deltas import weighed
from tpudeploy.planning.diff import changes, removals
from tpudeploy.planning.drift import drift, refreshed, told
from tpudeploy.planning.quota import Book
from tpudeploy.planning.renamed import renamed
from tpudeploy.planning.room import asks_for_both, no_room
from tpudeploy.planning.seen import seen
from tpudeploy.planning.targets import Targets, marked, partial, within
from tpudeploy.ports import Witnesses, World
from tpudeploy.reconcile.fate import Moment
from tpudeploy.reconcile.handover import due, ending
from tpudeploy.reconcile.lifecycle import prevented
from tpudeploy.reconcile.luck import acquisition
from tpudeploy.reconcile.presume import presumed
from tpudeploy.reconcile.remember import remember
from tpudeploy.sizing.checks import check

_ON_RUN_END, _RENEW = "lifecycle.on_run_end", "renew"
_MOST_OTHERS = 20  # states that are read on the chance that one of them was renamed


def plan(
    world: World,
    deployments: Iterable[Deployment],
    scope: Scope | None = None,
    *,
    invalid: Mapping[str, ConfigError] | None = None,
    facts: Callable[[str | None], Facts] | None = None,
    witnesses: Witnesses | None = None,
) -> Plan:
    """With `adopt`, slices that no state remembers are taken over; without, they are an error among the diagnostics.

    What stops one of several deployments alone is among the `errors` of its goal: a state that cannot be read, and
    slices that cannot be looked at, too. `invalid` are profiles that cannot be used, by name, or by file where nobody
    can say which deployment a file is about: each has a goal with its problems.

    `facts` tells the quota of a project; it is asked only where a slice and its replacement are to stand side by side.
    `witnesses` are asked where the plan is to touch nothing: what serves otherwise than it was told is drift.

    Raise `errors.Fault` or `errors.Denied` where the cloud answers for none, `errors.StateError` where no state can be
    read, and `errors.UsageError` for an address that none has.

    A plan that a lifecycle rule forbids is a plan with an error among its diagnostics.
    """
    known, asked = tuple(deployments), scope if scope is not None else Scope()
    all_states, unreadable = readable_states(world, [d.name for d in known])
    is_one_of_several = len(unreadable) < len(known) and not asked.target
    if unreadable and not is_one_of_several:
        raise next(iter(unreadable.values()))
    names = {d.name for d in known}
    states = {name: state for name, state in all_states.items() if state is not None}
    broken = [_unknown(asked, d, unreadable[d.name]) for d in known if d.name in unreadable]
    broken += [_invalid(name, error) for name, error in (invalid or {}).items()]
    known = tuple(d for d in known if d.name not in unreadable)
    extents = extents_of(asked, known, states)
    known = tuple(d for d in known if d.name in extents)
    found = search(world, [d for d in known if d.name not in states]) if asked.refresh else Lost(found={})
    parts = [_part(world, d, states.get(d.name), extents[d.name], found.found.get(d.name, ()), asked) for d in known]
    if asked.mode is Mode.REFRESH_ONLY:
        goals = tuple(_observations(world, [part for part, _ in parts], witnesses))
    else:
        goals = tuple(_goals(world, [part for part, _ in parts], refresh=asked.refresh))
    warnings = {d.name: check([d]) if asked.mode is Mode.NORMAL else () for d in known}
    unseen = {goal.name: goal.errors for goal in goals}
    goals = tuple(
        _with_errors(d, goal, (*stray, *warnings[d.name]))
        for d, goal, (_, stray) in zip(known, goals, parts, strict=True)
    )
    stray = (said for _, diagnostics in parts for said in diagnostics)
    now = world.clock.now()
    made = [*name_left_locks(world, [d.name for d in known]), *([partial()] if asked.target else [])]
    if asked.refresh and facts is not None:
        crowded = tuple(_crowded(known, goals, states, facts, now))
        goals = tuple(
            replace(g, errors=(*g.errors, *errors_in(found for n, found in crowded if n == g.name))) for g in goals
        )
        made += [found for _, found in crowded]
    if asked.mode is Mode.NORMAL and not invalid:
        # A profile that cannot be used may be the one of a state that seems to have none.
        made += _renamed(world, [d for d in known if d.name not in states], names)
    return Plan(
        goals=(*goals, *broken),
        diagnostics=(
            *(e for g in broken for e in g.errors),
            *(e for g in goals for e in g.errors if e in unseen.get(g.name, ())),
            *prevented(known, goals),
            *stray,
            *found.diagnostics,
            *made,
            *(diagnostic for each in warnings.values() for diagnostic in each),
        ),
        mode=asked.mode,
        made_at=now,
    )


def _unknown(scope: Scope, deployment: Deployment, error: TpudeployError) -> Goal:
    """Return the goal of a deployment of which nothing can be known: nothing is planned for it, and nothing done."""
    aim = None if scope.mode is Mode.DESTROY else deployment
    return _not_planned(
        _Part(name=deployment.name, aim=aim, known=State(deployment=deployment.name, lineage="")), error
    )


def _invalid(name: str, error: ConfigError) -> Goal:
    """Return the goal of a profile that cannot be used, with its problems: nothing is planned for it."""
    itself = Diagnostic(code=error.code, message=error.message, hint=error.hint)
    return Goal(
        name=name,
        deployment=None,
        fingerprint="",
        lineage="",
        serial=0,
        resumes=False,
        changes=(),
        errors=errors_in(error.diagnostics) or (itself,),
    )


def _not_planned(part: _Part, error: TpudeployError) -> Goal:
    message = error.message if part.name in error.message else f"{part.name}: {error.message}"
    return Goal(
        name=part.name,
        deployment=part.aim,
        fingerprint=aim_print(part.aim, part.targets),
        lineage=part.known.lineage,
        serial=part.known.serial,
        resumes=False,
        changes=(),
        targets=part.targets,
        errors=(Diagnostic(code=error.code, message=message, hint=error.hint),),
    )


def _with_errors(deployment: Deployment, goal: Goal, found: Iterable[Diagnostic]) -> Goal:
    """Return the goal with the errors that are about its deployment alone."""
    return replace(goal, errors=(*goal.errors, *errors_in((*prevented([deployment], [goal]), *found))))


def _crowded(
    known: tuple[Deployment, ...],
    goals: tuple[Goal, ...],
    states: Mapping[str, State],
    facts: Callable[[str | None], Facts],
    now: float,
) -> Iterator[tuple[str, Diagnostic]]:
    """Replacements for which there is known to be no room beside what they replace, each with its deployment."""
    asking = [(d, g) for d, g in zip(known, goals, strict=True) if d.name in states and asks_for_both(g)]
    told = {project: facts(project) for project in dict.fromkeys(d.project for d, _ in asking)}
    for each, its_goal in asking:
        book = Book.of(told[each.project], each.accelerator.generation)
        yield from ((each.name, found) for found in no_room(each, its_goal, states[each.name], book, now))


def _renamed(world: World, fresh: Iterable[Deployment], named: Collection[str]) -> Iterator[Diagnostic]:
    """For deployments without a state: are their slices another's, of which no profile was named?"""
    asking = tuple(fresh)
    others = [name for name in world.state.names() if name not in named] if asking else []
    if 0 < len(others) <= _MOST_OTHERS:
        states, _ = readable_states(world, others)  # what another deployment remembers stops none of these
        for each in asking:
            yield from renamed(each, [state for state in states.values() if state is not None])


def renewal(
    world: World, goal: Goal, applied: Callable[[Deployment, Mapping[str, Json]], Deployment | None]
) -> Goal | None:
    """Return what the profile as it was last applied asks for where runs end, where `goal` mixes that with a change.

    `applied` resolves a slice's own attributes. None where there is nothing to renew, nothing is mixed with it, or this
    version cannot resolve what the slice was given. Raise `errors.Fault` or `errors.StateError`.
    """
    if goal.deployment is None or goal.resumes or goal.is_renewal:
        return None
    state = world.state.read(goal.name).state
    if state is None:
        return None
    for spec in _renewed_specs(state):
        deployment = applied(goal.deployment, spec)
        if deployment is None:
            continue
        indexes = tuple(r.index for r in state.records if any(a.spec == spec for a in r.attempts))
        deployment = replace(deployment, replicas=max(indexes) + 1)
        for targets in _renewal_targets(world, deployment, state, indexes):
            found = _goal_of(world, deployment, state, targets)
            if found.is_renewal or found.resumes:
                return found
    return None


def _renewed_specs(state: State) -> list[Mapping[str, Json]]:
    """The different attributes of the slices that are to have successors before their runs end."""
    specs: list[Mapping[str, Json]] = []
    for attempt in state.attempts:
        if attempt.releasing_at is None and attempt.spec.get(_ON_RUN_END) == _RENEW and attempt.spec not in specs:
            specs.append(attempt.spec)
    return specs


def _renewal_targets(world: World, deployment: Deployment, state: State, indexes: tuple[int, ...]) -> Iterator[Targets]:
    """The replicas whose runs end now; and those that an earlier run began to renew, whatever has become of them."""
    whole = _goal_of(world, deployment, state, indexes)
    ending = {record.index for record in state.records for a in record.attempts if a.name in whole.renews}
    if ending:
        yield tuple(sorted(ending))
    begun = "" if state.goal is None else state.goal.fingerprint
    for targets in (indexes, *((index,) for index in indexes)):
        if begun and aim_print(deployment, targets) == begun:
            yield targets


def _goal_of(world: World, deployment: Deployment, state: State, targets: Targets) -> Goal:
    return goal(world, deployment.name, deployment, state, targets=targets)


@frozen
class _Part:
    """One deployment before the look: what is aimed at, what is remembered. `adopts` are the slices it begins with.

    `targets` and `replaces` as in `Goal`.
    """

    name: str
    aim: Deployment | None
    known: State
    adopts: tuple[str, ...] = ()
    targets: Targets = None
    replaces: tuple[str, ...] = ()


def _part(  # noqa: PLR0917 - what is known of one deployment, each of another kind
    world: World,
    deployment: Deployment,
    state: State | None,
    extent: Extent,
    found: tuple[CloudResource, ...],
    scope: Scope,
) -> tuple[_Part, tuple[Diagnostic, ...]]:
    """Its part, and what is to be said of slices that its goal leaves alone."""
    is_removal = scope.mode is Mode.DESTROY
    name, aim = deployment.name, None if is_removal else deployment
    fresh = _Part(name=name, aim=aim, known=State(deployment=name, lineage=""), targets=extent.targets)
    if state is None and found:
        state = world.state.read(name).state  # remembered by now, perhaps, whatever was found before
    if state is not None:
        return replace(fresh, known=state, replaces=extent.to_go(state)), ()
    if not found or scope.mode is Mode.REFRESH_ONLY:
        return fresh, ()
    chosen = adoptable(found) if scope.adopt and not is_removal else ()
    left = tuple(unremembered(deployment, [f for f in found if f not in chosen], destroy=is_removal))
    if not chosen:
        return fresh, left
    known = remembered(world, fresh.known, deployment, chosen)
    return replace(fresh, known=known, adopts=tuple(f.ref.name for f in chosen)), left


def _observations(world: World, parts: Sequence[_Part], witnesses: Witnesses | None) -> Iterator[Goal]:
    """Return what is different in each, and nothing that would be done; where it cannot be looked at, why."""
    existing = [(part, part.aim) for part in parts if part.aim is not None and part.known.lineage]
    observed = look_at_all_or_each(world, [Sight(state=part.known, deployment=aim) for part, aim in existing])

    def observe(each: tuple[tuple[_Part, Deployment], Observed | CloudError]) -> Goal:
        (part, aim), shown = each
        if isinstance(shown, CloudError):
            return _not_planned(part, shown)
        return observation(world, aim, part.known, part.targets, shown, witnesses=witnesses)

    pairs = list(zip(existing, observed, strict=True))
    goals = {goal.name: goal for goal in together(world.threads, observe, pairs)}
    for part in parts:
        yield goals[part.name] if part.name in goals else _without_state(part)


def _without_state(part: _Part) -> Goal:
    """Return the goal of a deployment that was never applied: nothing of it can be different."""
    return Goal(
        name=part.name,
        deployment=part.aim,
        fingerprint=aim_print(part.aim, part.targets),
        lineage="",
        serial=0,
        resumes=False,
        changes=(),
        targets=part.targets,
    )


def goal(
    world: World,
    name: str,
    deployment: Deployment | None,
    state: State | None,
    *,
    adopts: tuple[str, ...] = (),
    targets: Targets = None,
    replaces: tuple[str, ...] = (),
    refresh: bool = True,
) -> Goal:
    """One deployment's part, from one look. `deployment` is None where it is to be removed."""
    known = state if state is not None else State(deployment=name, lineage="")
    part = _Part(name=name, aim=deployment, known=known, adopts=adopts, targets=targets, replaces=replaces)
    return next(_goals(world, [part], refresh=refresh))


def _goals(world: World, parts: list[_Part], *, refresh: bool) -> Iterator[Goal]:
    """From one look at all of them."""
    if not parts:
        return
    if not refresh:
        now = world.clock.now()
        yield from (_goal(world, part, presumed(part.known, now), refresh=False) for part in parts)
        return
    sights = [Sight(state=part.known, deployment=part.aim) for part in parts]
    for part, observed in zip(parts, look_at_all_or_each(world, sights, anew=False), strict=True):
        if isinstance(observed, CloudError):
            yield _not_planned(part, observed)
        else:
            yield _goal(world, part, observed, refresh=True)


def _goal(world: World, part: _Part, observed: Observed, *, refresh: bool) -> Goal:
    deployment, targets = part.aim, part.targets
    whole = aim_print(deployment, None)
    aim = whole if targets is None else aim_print(deployment, targets)
    known = marked(part.known, part.replaces, {aim, whole})
    if part.adopts:
        known = remember(known, observed)  # else a slice that serves would have yet to come up
    moment = Moment(observed=observed, patience=world.patience)
    outside = within(targets, drift(known, moment)) if refresh else ()
    known = refreshed(known, outside)
    renews: tuple[str, ...] = ()
    if deployment is not None and deployment.lifecycle.renew:
        moment = replace(moment, acquisition=_acquisition(world, deployment))
        renews = due(deployment, known, moment)
        known = ending(known, renews)
    all_of_it = removals(part.name, known, moment) if deployment is None else changes(deployment, known, moment)
    would = within(targets, all_of_it)
    would = tuple(_adopting(change) if change.slice_name in part.adopts else change for change in would)
    would = tuple(told(change, outside) for change in would)
    if deployment is not None:
        would = tuple(weighed(change, deployment, world.patience) for change in would)
    # A plan without changes needs no yes, but it does end what an earlier yes began.
    is_covered = known.goal is not None and (known.goal.fingerprint in {aim, whole} or not any(map(_is_change, would)))
    return Goal(
        name=part.name,
        deployment=part.aim,
        fingerprint=aim,
        lineage=known.lineage,
        serial=known.serial,
        resumes=is_covered,
        changes=would,
        adopts=part.adopts,
        seen=seen(known, moment, would) if refresh else (),
        drift=outside,
        replaces=part.replaces,
        targets=targets,
        renews=renews,
        to_verify=_to_verify(part, known),
        begun=known.begun,
        approval=known.goal.approval if is_covered and known.goal is not None else "",
    )


def _to_verify(part: _Part, state: State) -> tuple[str, ...]:
    """The slices that an apply has to verify again. The state knows them: a plan asks no engine."""
    if part.aim is None:
        return ()
    records = [r for r in state.records if part.targets is None or r.index in part.targets]
    return tuple(a.name for r in records for a in r.attempts if a.not_in_effect and a.releasing_at is None)


def _acquisition(world: World, deployment: Deployment) -> float:
    """The longest that a grant took lately, in seconds."""
    try:
        return acquisition(deployment, world.state.history(), world.clock.now())
    except StateError:
        return 0.0


def _adopting(change: Change) -> Change:
    """To be remembered is a change, if nothing else is."""
    action = Action.UPDATE if change.action is Action.NO_OP else change.action
    return replace(change, action=action, reason=Reason.ADOPTED)


def _is_change(change: Change) -> bool:
    return change.action is not Action.NO_OP
