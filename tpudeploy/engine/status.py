"""State and world, looked at once, for a person who asks how things stand. Takes no lock and changes nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from dataclasses import replace

from tpudeploy.boot_log.stage import stage, unreported
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import CloudError, StateLocked
from tpudeploy.domain.names import address
from tpudeploy.domain.slices import Observed, Phase
from tpudeploy.domain.state import Attempt, Goal, State
from tpudeploy.domain.status import DeploymentStatus, ReplicaStatus, Stage
from tpudeploy.engine.contention import left_locks
from tpudeploy.engine.look import Sight, look_at_all_or_each, readable_states
from tpudeploy.ports import World
from tpudeploy.reconcile import prices
from tpudeploy.reconcile.fate import Fate, Judged, Moment, judge

_NOTHING = "nothing"
_UNKNOWN = Unsized(because="no profile was named")
_WAITING = {Fate.HIDDEN, Fate.WAITING}
_BILLED = {Fate.UP, Fate.LEAVING}  # nothing is billed before the grant


def statuses(world: World, wanted: Mapping[str, Deployment | None]) -> tuple[DeploymentStatus, ...]:
    """By name, from one look. Endpoints are probed where the profile is given: only it knows how.

    Of several deployments, one whose state cannot be read, or whose slices cannot be looked at, has an `error` instead
    of replicas. Raise `errors.Fault`, `errors.Denied` or `errors.StateError` where that is so of each.
    """
    states, unknown = readable_states(world, wanted)
    if unknown and len(unknown) == len(wanted):
        raise next(iter(unknown.values()))
    known = {name: state for name, state in states.items() if state is not None}
    sights = [Sight(state=state, deployment=wanted[name]) for name, state in known.items()]
    observed: dict[str, Observed] = {}
    for name, shown in zip(known, look_at_all_or_each(world, sights), strict=True):
        if isinstance(shown, CloudError):
            unknown[name] = shown
        else:
            observed[name] = shown
    locks = {name: _told(locked) for name, locked in left_locks(world, wanted).items()}
    found = (
        DeploymentStatus(name=name, replicas=(), error=unknown[name])
        if name in unknown
        else _status(world, name, states[name], observed.get(name), wanted[name])
        for name in wanted
    )
    return tuple(replace(each, lock=locks.get(each.name, "")) for each in found)


def _told(locked: StateLocked) -> str:
    return " ".join(f"{locked.message} {locked.hint}".split())


def _status(
    world: World, name: str, state: State | None, observed: Observed | None, deployment: Deployment | None
) -> DeploymentStatus:
    if state is None or observed is None:
        return DeploymentStatus(name=name, replicas=(ReplicaStatus(address=address(name, 0), state=_NOTHING),))
    replicas = tuple(_replicas(world, state, observed, deployment))
    at_once = _usd_at_once(replicas)
    if state.goal is None:
        return DeploymentStatus(name=name, replicas=replicas, usd_per_hour_at_once=at_once)
    underway, command = f"begun by {state.goal.who}", _continuation(state, state.goal)
    return DeploymentStatus(
        name=name, replicas=replicas, underway=underway, continue_with=command, usd_per_hour_at_once=at_once
    )


def _usd_at_once(replicas: tuple[ReplicaStatus, ...]) -> float | None:
    """Return the price per hour of everything that stands or is asked for, where a request may be granted beside it."""
    waiting = [r for r in replicas if r.usd_per_hour_granted is not None]
    billed = [r.usd_per_hour for r in replicas if r.usd_per_hour is not None]
    if not waiting or len(waiting) + len(billed) <= 1:
        return None
    return sum(billed) + sum(r.usd_per_hour_granted or 0.0 for r in waiting)


def _continuation(state: State, goal: Goal) -> str:
    """Return the command that finishes what `goal` began: after an interrupted `destroy`, `apply` would buy slices."""
    if not goal.is_removal:
        return "tpudeploy apply"
    if not goal.fingerprint:
        return "tpudeploy destroy"
    # A part was to go. The goal holds only the hash of its addresses; the replicas that were given up are among them.
    indexes = [r.index for r in state.records if any(a.releasing_at is not None for a in r.attempts)]
    targets = [f"-target={address(state.deployment, index)}" for index in indexes] or ["-target=..."]
    return " ".join(["tpudeploy destroy", *targets])


def _replicas(world: World, state: State, observed: Observed, deployment: Deployment | None) -> Iterator[ReplicaStatus]:
    moment = Moment(observed=observed, patience=world.patience)
    wanted = deployment.replicas if deployment is not None else 0
    for index in sorted({r.index for r in state.records if r.attempts} | set(range(wanted))):
        where = address(state.deployment, index)
        attempts = state.record(index).attempts
        if not attempts:
            yield ReplicaStatus(address=where, state=_NOTHING)
        budget = _UNKNOWN if deployment is None else deployment.budget
        yield from (_one(where, judge(a, moment), observed, budget, _undo(state, a, observed)) for a in attempts)


def _undo(state: State, attempt: Attempt, observed: Observed) -> str:
    """Return why a node goes back from a change that a run has not ended yet, "" where it does not."""
    report = observed.reports.get(attempt.name)
    if state.goal is None or report is None or not attempt.change or report.undone != attempt.change:
        return ""
    return report.cause


def _one(where: str, judged: Judged, observed: Observed, budget: HbmBudget | Unsized, undo: str) -> ReplicaStatus:
    attempt, found = judged.attempt, judged.slice
    report, health = observed.reports.get(attempt.name), observed.health.get(attempt.name)
    waits = judged.fate in _WAITING
    began = attempt.granted_at if attempt.granted_at is not None else attempt.asked_at
    return ReplicaStatus(
        address=where,
        state=_word(judged, serving=health.serving if health is not None else None),
        slice_name=attempt.name,
        zone=attempt.zone,
        provisioning=attempt.provisioning,
        accelerator_type=str(attempt.spec.get("tpu.type", "")),
        cloud=found.raw_state if found is not None else "not found",
        boot=report.phase if report is not None else "",
        boot_detail=report.detail if report is not None else "",
        stage=_stage(judged, observed, budget),
        undo=undo,
        serving=None if health is None else health.serving,
        detail=health.detail if health is not None else "",
        url=health.url if health is not None else "",
        age=observed.at - began,
        ends_in=None if found is None or found.ends_at is None else found.ends_at - observed.at,
        usd_per_hour=prices.of_attempt(attempt) if judged.fate in _BILLED else None,
        lapses_in=_lapses_in(judged, observed),
        usd_per_hour_granted=prices.of_attempt(attempt) if waits else None,
        usd_most=prices.most_of_attempt(attempt) if waits else None,
    )


def _stage(judged: Judged, observed: Observed, budget: HbmBudget | Unsized) -> Stage | None:
    """How far its boot is: by its own word, else by the plan for as long as it does not serve."""
    attempt = judged.attempt
    report, health = observed.reports.get(attempt.name), observed.health.get(attempt.name)
    if report is not None:
        return stage(report, budget, now=observed.at)
    if judged.fate is not Fate.UP or attempt.granted_at is None or health is None or health.serving:
        return None
    return unreported(budget, granted_at=attempt.granted_at, now=observed.at)


def _lapses_in(judged: Judged, observed: Observed) -> float | None:
    """A request that Google has begun to fulfil lapses no more."""
    queues = judged.slice is None or judged.slice.phase in {Phase.CREATING, Phase.QUEUED}
    ends = judged.attempt.expires_at
    return ends - observed.at if ends is not None and queues and judged.fate in _WAITING else None


def _word(judged: Judged, *, serving: bool | None) -> str:
    if judged.fate is not Fate.UP:
        return judged.fate
    if judged.attempt.draining_at is not None:
        return "draining"
    return {True: "serving", False: "up, not serving", None: "up"}[serving]
