"""One look at the world: every slice a state remembers, what its machine says, whether it serves."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace

from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import BootPhase, BootReport, Health, Observed, Phase, Slice, SliceRef
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.together import together
from tpudeploy.engine.retry import looking_again
from tpudeploy.node.node import SPEC_KEY
from tpudeploy.ports import World


@frozen
class Sight:
    """What is to be looked at: all that a state remembers; its endpoints too where a deployment is given."""

    state: State
    deployment: Deployment | None = None


def states_of(world: World, names: Iterable[str]) -> dict[str, State | None]:
    """What is remembered of each, None where nothing is. Raise `errors.StateError`."""
    asked = list(dict.fromkeys(names))
    return dict(zip(asked, together(world.threads, lambda name: world.state.read(name).state, asked), strict=True))


def readable_states(
    world: World, names: Iterable[str]
) -> tuple[dict[str, State | None], dict[str, errors.TpudeployError]]:
    """Return the states that can be read, None where there is none, and why each of the others cannot be.

    A state in a bucket that does not answer, or that may not be read, is one of the others.
    """

    def read(name: str) -> State | errors.TpudeployError | None:
        try:
            return world.state.read(name).state
        except (errors.StateError, errors.CloudError) as error:
            return error

    wanted = list(dict.fromkeys(names))
    states: dict[str, State | None] = {}
    unreadable: dict[str, errors.TpudeployError] = {}
    for name, state in zip(wanted, together(world.threads, read, wanted), strict=True):
        if isinstance(state, errors.TpudeployError):
            unreadable[name] = state
        else:
            states[name] = state
    return states, unreadable


def look(world: World, state: State, deployment: Deployment | None = None, *, patient: bool = False) -> Observed:
    """Raise `errors.Fault` or `errors.Denied`. Endpoints are probed where a deployment is given.

    `patient`: a request in a zone that does not answer is `unseen`, as long as others can be looked at.
    """
    sight = Sight(state=state, deployment=deployment)
    if not patient:
        return look_at_all(world, [sight])[0]
    slices, unseen = _answered(world, state.attempts)
    return replace(_heard(world, [sight], [slices], anew=True)[0], unseen=unseen)


def look_at_all(world: World, sights: Sequence[Sight], *, anew: bool = True) -> tuple[Observed, ...]:
    """One look at many, of one moment. Raise `errors.Fault` or `errors.Denied`.

    `anew` False: what has served before is not asked again whether it does; nor is its machine, whose own word could
    only be news where it was booted with other metadata than the state remembers. Whether it still answers is for
    `status` to say, which looks anew.
    """
    by_project: dict[str, list[SliceRef]] = {}
    for sight in sights:
        for attempt in sight.state.attempts:
            by_project.setdefault(attempt.project, []).append(attempt.ref)
    found = {(project, s.zone, s.name): s for project, refs in by_project.items() for s in world.cloud.slices(refs)}
    shown = [
        {a.name: found[key] for a in sight.state.attempts if (key := (a.project, a.zone, a.name)) in found}
        for sight in sights
    ]
    return _heard(world, sights, shown, anew=anew)


def look_at_all_or_each(
    world: World, sights: Sequence[Sight], *, anew: bool = True
) -> tuple[Observed | errors.CloudError, ...]:
    """Return what one look at all of them shows; where that fails, what a look at each shows, or why it cannot be had.

    Raise `errors.Fault` or `errors.Denied` where none can be looked at.
    """
    if not sights:
        return ()
    name = sights[0].state.deployment if len(sights) == 1 else f"{len(sights)} deployments"
    budget = world.patience.faults_at_plan
    try:
        return looking_again(world, name, lambda: look_at_all(world, sights, anew=anew), budget=budget)
    except errors.CloudError:
        if len(sights) == 1:
            raise
        observed = look_at_each(world, sights, anew=anew)
        if all(isinstance(each, errors.CloudError) for each in observed):
            raise
        return observed


def look_at_each(
    world: World, sights: Sequence[Sight], *, anew: bool = True
) -> tuple[Observed | errors.CloudError, ...]:
    """Look at each by itself, once; of each that cannot be looked at, return why.

    Where a zone left one without an answer, only one more of those in the same zones is looked at: each such look may
    last a minute.
    """
    zones = [frozenset((a.project, a.zone) for a in sight.state.attempts) for sight in sights]
    faults: dict[frozenset[tuple[str, Zone]], list[errors.Fault]] = {}

    def observe(number: int) -> Observed | errors.CloudError:
        silent = faults.get(zones[number], [])
        if len(silent) > 1:
            return silent[0]
        try:
            return look_at_all(world, [sights[number]], anew=anew)[0]
        except errors.Fault as fault:
            faults.setdefault(zones[number], []).append(fault)
            return fault
        except errors.CloudError as error:
            return error

    return tuple(together(world.threads, observe, range(len(sights))))


def _heard(
    world: World, sights: Sequence[Sight], shown: Sequence[Mapping[str, Slice]], *, anew: bool
) -> tuple[Observed, ...]:
    """What the machines of these slices say of themselves, and whether they serve."""
    standing = [
        (number, attempt, slices[attempt.name])
        for number, (sight, slices) in enumerate(zip(sights, shown, strict=True))
        for attempt in sight.state.attempts
        if attempt.name in slices and slices[attempt.name].phase is Phase.UP
    ]
    asked = [(number, a.ref) for number, a, found in standing if anew or not _is_known(a, found)]
    said = together(world.threads, lambda each: world.cloud.report(each[1]), asked)
    reports: dict[int, dict[str, BootReport]] = {}
    for (number, ref), report in zip(asked, said, strict=True):
        if report is not None:
            reports.setdefault(number, {})[ref.name] = report
    health = _probed(world, sights, [s for s in standing if anew or not s[1].served], reports)
    running = _running(world, sights, standing) if anew else {}
    now = world.clock.now()
    return tuple(
        Observed(
            at=now,
            slices=slices,
            reports=reports.get(number, {}),
            health=health.get(number, {}),
            running=running.get(number, {}),
        )
        for number, slices in enumerate(shown)
    )


def _is_known(attempt: Attempt, found: Slice) -> bool:
    """Whether it has served, and its machine would boot the same server again."""
    return attempt.served and found.metadata.get(SPEC_KEY) == attempt.booted


def _probed(
    world: World,
    sights: Sequence[Sight],
    standing: Sequence[tuple[int, Attempt, Slice]],
    reports: Mapping[int, Mapping[str, BootReport]],
) -> Mapping[int, Mapping[str, Health]]:
    """Each that may serve by now, by the number of its sight."""

    def probe(each: tuple[int, Deployment, Slice]) -> Health:
        number, deployment, found = each
        return world.probe.health(deployment, found, reports.get(number, {}).get(found.name))

    todo: list[tuple[int, Deployment, Slice]] = []
    for number, attempt, found in standing:
        deployment = sights[number].deployment
        if deployment is not None and _may_serve(reports.get(number, {}).get(attempt.name)):
            todo.append((number, deployment, found))
    health: dict[int, dict[str, Health]] = {}
    for (number, _, found), answer in zip(todo, together(world.threads, probe, todo), strict=True):
        health.setdefault(number, {})[found.name] = answer
    return health


def _running(
    world: World, sights: Sequence[Sight], standing: Sequence[tuple[int, Attempt, Slice]]
) -> Mapping[int, Mapping[str, int]]:
    """What each that clients have left still works at, by the number of its sight."""
    found: dict[int, dict[str, int]] = {}
    for number, attempt, shown in standing:
        deployment = sights[number].deployment
        if deployment is not None and attempt.draining_at is not None:
            told = world.probe.running(deployment, shown)
            if told is not None:
                found.setdefault(number, {})[attempt.name] = told
    return found


def _answered(world: World, attempts: tuple[Attempt, ...]) -> tuple[dict[str, Slice], dict[str, str]]:
    """The slices, and of each that could not be looked at, why.

    One zone's trouble stops no hunt in the others. Where nothing answers it is ours, or Google's, as a whole; and of a
    slice that was granted all must be known.
    """
    slices: dict[str, Slice] = {}
    silent: dict[Zone, errors.Fault] = {}
    unseen: dict[str, str] = {}
    for number, attempt in enumerate(attempts, start=1):
        try:
            if attempt.zone in silent:
                raise silent[attempt.zone]
            slices |= {s.name: s for s in world.cloud.slices([attempt.ref])}
        except errors.Fault as fault:
            silent[attempt.zone] = fault
            unseen[attempt.name] = fault.message
            regions = {zone.region for zone in silent}
            is_no_answer = len(unseen) == number and (number == len(attempts) or len(regions) > 1)
            if attempt.granted_at is not None or is_no_answer:
                raise
    return slices, unseen


def _may_serve(report: BootReport | None) -> bool:
    """A machine that says it is still booting need not be knocked at; one that says nothing must be."""
    return report is None or report.phase in {BootPhase.SERVING, BootPhase.FAILED}
