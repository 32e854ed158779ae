"""One replica, one moment: every step that is right now, in an order that is safe to stop after any of them.

`decide` aims at a deployment, `remove` at nothing. Both see only data.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from tpudeploy.core.fate import Fate, Judged, Moment, judge
from tpudeploy.core.fingerprint import slice_print
from tpudeploy.core.placement import allows, is_closed, next_candidate, opens_at
from tpudeploy.core.serve import Standing, serve
from tpudeploy.core.wanted import wanted
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import Denied
from tpudeploy.domain.slices import Phase, Scope
from tpudeploy.domain.state import Attempt, Record
from tpudeploy.domain.step import Done, Forget, GiveUp, Release, Request, Step, Wait


def decide(deployment: Deployment, record: Record, moment: Moment) -> tuple[Step, ...]:
    """The steps towards `deployment` for one replica. Never empty."""
    judged = [judge(a, moment) for a in record.attempts]
    return (*_clear(record, judged, moment), *_aim(deployment, record, judged, moment))


def remove(record: Record, moment: Moment) -> tuple[Step, ...]:
    """The steps towards nothing; empty once nothing is left."""
    judged = [judge(a, moment) for a in record.attempts]
    unwanted = [j for j in judged if j.fate in {Fate.UP, Fate.WAITING}]
    waits = [j for j in judged if j.fate is not Fate.GONE]
    return (
        *_clear(record, judged, moment),
        *(_release(record, j, "no longer wanted") for j in unwanted),
        *(_hold(record, j, moment) for j in waits),
    )


def matches(deployment: Deployment, attempt: Attempt) -> bool:
    """Whether this attempt's slice can be what `deployment` wants without being replaced."""
    same = slice_print(attempt.spec) == slice_print(wanted(deployment, attempt))
    return same and allows(deployment, attempt)


def _clear(record: Record, judged: Iterable[Judged], moment: Moment) -> Iterator[Step]:
    """Forget what is gone, release what is dead (it eats quota), ask again for deletions that did not take."""
    for j in judged:
        match j.fate:
            case Fate.GONE:
                yield Forget(replica=record.index, name=j.attempt.name, reason=j.reason, refusal=j.refusal)
            case Fate.DEAD:
                yield _release(record, j, j.reason)
            case Fate.LEAVING if _did_not_take(j, moment):
                yield _release(record, j, j.attempt.release_reason)
            case _:
                pass


def _aim(deployment: Deployment, record: Record, judged: list[Judged], moment: Moment) -> Iterator[Step]:
    fitting = [j for j in judged if matches(deployment, j.attempt)]
    outdated = [j for j in judged if j.fate in {Fate.UP, Fate.WAITING} and j not in fitting]
    up = sorted((j for j in fitting if j.fate is Fate.UP), key=_seniority)
    if up:
        keep, *surplus = up
        yield from (_release(record, j, "another slice is kept") for j in surplus)
        yield from (_release(record, j, "another slice is kept") for j in fitting if j.fate is Fate.WAITING)
        standing = Standing(deployment=deployment, replica=record.index, attempt=keep.attempt, moment=moment)
        if standing.is_serving:
            yield from (_release(record, j, "its replacement serves") for j in outdated)
        step = serve(standing)
        yield step
        # It serves, but the end is reached only when nothing else of ours is left, or can still appear.
        others = [j for j in judged if j is not keep and j.fate is not Fate.GONE]
        if others and isinstance(step, Done):
            yield _hold(record, others[0], moment)
        return
    # A waiting request for what is no longer wanted holds nothing that serves; neither does a slice that
    # must go first.
    first = [j for j in outdated if j.fate is Fate.WAITING or not deployment.lifecycle.create_before_destroy]
    yield from (_release(record, j, "the profile asks for another slice") for j in first)
    pending = [j for j in judged if j.fate in {Fate.HIDDEN, Fate.WAITING} and j not in first]
    pending += [j for j in judged if j.fate is Fate.DEAD or (j.fate is Fate.LEAVING and _blocks(j))]
    if pending or first:
        yield from (_hold(record, j, moment) for j in (*pending, *first))
        return
    yield _ask(deployment, record, judged, moment)


def _ask(deployment: Deployment, record: Record, judged: list[Judged], moment: Moment) -> Step:
    # What this very look refused is written down first, then counts.
    if any(j.fate is Fate.GONE and j.refusal is not None for j in judged):
        return Wait(replica=record.index, why="choosing the next place", seconds=0.0)
    denied = _denied(deployment, record, moment)
    if denied is not None:
        left = [j for j in judged if j.fate is not Fate.GONE]
        return _hold(record, left[0], moment) if left else GiveUp(replica=record.index, error=denied)
    candidate = next_candidate(deployment.candidates, record.refusals, moment.now)
    if candidate is not None:
        return Request(replica=record.index, candidate=candidate)
    opens = opens_at(deployment.candidates, record.refusals, moment.now)
    return Wait(replica=record.index, why="refused everywhere", seconds=max(0.0, opens - moment.now))


def _denied(deployment: Deployment, record: Record, moment: Moment) -> Denied | None:
    """Why waiting is no use, or None."""
    if not deployment.candidates:
        hint = "Widen placement.zones, placement.provisioning or placement.max_price_per_chip_hour."
        return Denied("No place is left that the profile allows to ask.", hint=hint)
    standing = [r for r in record.refusals if r.until > moment.now]
    stop = next((r for r in standing if r.scope is Scope.PROJECT), None)
    if stop is not None:
        return Denied(stop.message, hint=f"`tpudeploy explain {stop.kind}` says what to do.")
    if is_closed(deployment.candidates, standing, moment.now, moment.patience):
        said = "\n".join(f"{r.zone}, {r.provisioning}: {r.message}" for r in standing)
        hint = f"{said}\nAsk for quota, or widen placement.zones; `tpudeploy apply` then asks everywhere anew."
        return Denied("Every place that the profile allows has refused, and waiting will not change that.", hint=hint)
    return None


def _hold(record: Record, judged: Judged, moment: Moment) -> Wait:
    if judged.fate is Fate.HIDDEN:
        left = judged.attempt.asked_at + moment.patience.grace - moment.now
        return Wait(replica=record.index, why=judged.reason, seconds=max(0.0, left))
    state = judged.slice.raw_state if judged.slice is not None else judged.reason
    if judged.slice is not None and judged.slice.undeleted is not None:
        state = f"{state}; its deletion failed: {judged.slice.undeleted.message}"
    going = judged.fate in {Fate.LEAVING, Fate.DEAD}
    return Wait(replica=record.index, why=f"for {judged.attempt.name} to be gone ({state})" if going else state)


def _release(record: Record, judged: Judged, reason: str) -> Release:
    return Release(replica=record.index, name=judged.attempt.name, reason=reason, refusal=judged.refusal)


def _did_not_take(judged: Judged, moment: Moment) -> bool:
    """Whether a deletion must be asked for again. Never while Google itself is deleting (AXLearn was told so)."""
    asked, found = judged.attempt.releasing_at, judged.slice
    if asked is None or found is None or found.phase is Phase.LEAVING:
        return False
    return moment.now - asked >= moment.patience.release_again


def _blocks(judged: Judged) -> bool:
    """Whether to wait for a leaving slice: granted, it holds quota; going by itself, it has yet to say why."""
    return judged.attempt.granted_at is not None or judged.attempt.releasing_at is None


def _seniority(judged: Judged) -> tuple[float, str]:
    return (judged.attempt.granted_at or float("inf"), judged.attempt.name)
