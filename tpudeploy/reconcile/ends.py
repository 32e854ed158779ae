"""Whether the end of a deployment has come, by `lifecycle`: then it has no replicas, and its slices are deleted.

An end stays: no later run starts the deployment again, however it is approved, until the profile changes or a user asks
for it (`apply -start`). The state keeps when the deployment first served, so neither a preemption nor a replacement of
its slice moves its end. Only hours begin again by themselves: what is closed or idle within them starts at their next
opening, no matter which run saw it end, and when.

Why: decision 86 in docs/decisions.md.
"""

from __future__ import annotations

from dataclasses import replace
from datetime import UTC, datetime

from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.deployment import Deployment, Provisioning
from tpudeploy.domain.ending import EndCause, IdleLimit, PastEnd
from tpudeploy.domain.hours import closing_after, current_span, last_closing, next_opening
from tpudeploy.domain.slices import BootPhase, BootReport, Observed
from tpudeploy.domain.state import Attempt, State
from tpudeploy.node.fingerprint import server_print
from tpudeploy.node.own_end import END_KEY, counts_from_service, sees_all_requests
from tpudeploy.reconcile.decide import fits

_NEWS = 0.25  # of `lifecycle.idle`: the state is not written for each request
_FRESH = 900.0  # seconds; a machine reports at least every five minutes


def next_end(deployment: Deployment, state: State, now: float) -> PastEnd | None:
    """Return the end that comes next by the clock, or has come; None without an end, or while nothing runs."""
    at, hours = _end_time(deployment, state), deployment.lifecycle.hours
    ends = [] if at is None else [_ended(deployment, at)]
    if hours is not None:
        is_open = current_span(hours, now) is not None
        ends.append(_closed(deployment, state, closing_after(hours, now) if is_open else last_closing(hours, now)))
    return min(ends, key=lambda end: end.at, default=None)


def until_end(deployment: Deployment, state: State, observed: Observed) -> Deployment:
    """Return the deployment; from its end on, without replicas, and with the reason."""
    ending = _ending(deployment, state, observed)
    if ending is None:
        return deployment if deployment.ended is None else replace(deployment, ended=None, indexes=None)
    return replace(deployment, ended=ending, indexes=())


def with_service(state: State, observed: Observed, now: float) -> State:
    """Return the state with the time at which the deployment first served, once it does.

    Its machine counts its end from when it served itself. If no run saw that, its report says when it was.
    """
    announced = [attempt for attempt in state.slice_attempts if attempt.is_announced]
    if state.serving_since is not None or not announced:
        return state
    return replace(state, serving_since=min(_first_service(each, state, observed, now) for each in announced))


def _first_service(attempt: Attempt, state: State, observed: Observed, now: float) -> float:
    report, slice_ = observed.reports.get(attempt.name), observed.slices.get(attempt.name)
    at = None if report is None else report.served_at
    # What was imported, or started again, has served for longer than its end counts.
    if at is None or slice_ is None or not counts_from_service(slice_.metadata.get(END_KEY, "")):
        return now
    return at if (state.started_at or 0.0) <= at <= now else now


def with_ending(state: State, ending: PastEnd) -> State:
    """Return the state that says that the deployment has ended. Once started again, it serves for the whole time.

    The end of its hours does not count for that: `end: 7d` is a week with all its nights.
    """
    if state.ended == ending:
        return state
    serving_since = None if ending.until is None else state.serving_since
    return replace(state, ended=ending, serving_since=serving_since, used_at=None)


def with_use(deployment: Deployment, state: State, observed: Observed) -> State:
    """Return the state with the last request that a machine reports, where that is news by a part of `lifecycle.idle`.

    Once a machine has deleted itself, nothing else tells for how long it had been idle.
    """
    idle = deployment.lifecycle.idle
    used = [report.used_at for report in observed.reports.values() if report.used_at is not None]
    if idle is None or not used or max(used) < (state.used_at or 0.0) + idle.seconds * _NEWS:
        return state
    return replace(state, used_at=max(used))


def is_over(deployment: Deployment | None, state: State) -> bool:
    """Return whether the state still has an end that another profile had, or that of a removed deployment."""
    return deployment is None or (state.ended is not None and deployment.ended is None)


def started_again(state: State, now: float) -> State:
    """Return the state of a deployment that a user starts again: it serves for the whole time."""
    return replace(state, ended=None, serving_since=None, used_at=None, started_at=now)


def without_ending(state: State, now: float) -> State:
    """Return the state without an end that is over. One whose hours begin has served since it first did."""
    if state.ended is not None and state.ended.until is not None:
        return replace(state, ended=None, used_at=None)
    return started_again(state, now)


def _ending(deployment: Deployment, state: State, observed: Observed) -> PastEnd | None:
    earlier, now = state.ended, observed.at
    if earlier is not None and earlier.profile != deployment.written:
        earlier = None
    if earlier is not None and earlier.until is None:
        return earlier
    at, hours = _end_time(deployment, state), deployment.lifecycle.hours
    if at is not None and now >= at:
        return _idle_before(deployment, state, observed, at) or _with_record(_ended(deployment, at), state, observed)
    if earlier is not None and earlier.until is not None and now < earlier.until:
        return earlier
    idle = deployment.lifecycle.idle
    if hours is not None and current_span(hours, now) is None:
        closing = last_closing(hours, now)
        early = _idle_before(deployment, state, observed, closing)
        return early or _with_record(_closed(deployment, state, closing), state, observed)
    return None if idle is None else _idle(deployment, idle, state, observed)


def _idle_before(deployment: Deployment, state: State, observed: Observed, end: float) -> PastEnd | None:
    """Return that it was idle before its end by the clock, if Google has a time for the end of its machines."""
    idle = deployment.lifecycle.idle
    ending = None if idle is None or not observed.ends else _idle(deployment, idle, state, observed)
    return ending if ending is not None and ending.at < end else None


def _with_record(ending: PastEnd, state: State, observed: Observed) -> PastEnd:
    """Return the end with what Google's record says of the machines, if no run deleted them."""
    ends = [observed.ends[attempt.name] for attempt in state.slice_attempts if attempt.name in observed.ends]
    if not ends:
        return ending
    last = max(ends, key=lambda end: end.at)
    how = (
        f"its machine deleted itself at {_clock(last.at)}"
        if last.cause is not None
        else f"gone at {_clock(last.at)} by Google's times"
    )
    return replace(ending, why=f"{ending.why}; {how}")


def _clock(at: float) -> str:
    return f"{datetime.fromtimestamp(at, UTC):%H:%M} UTC"


def _idle(deployment: Deployment, idle: IdleLimit, state: State, observed: Observed) -> PastEnd | None:
    """Return that no replica had a request for so long: by what the machines report, or by that they are gone."""
    attempts = state.slice_attempts
    if not attempts or not all(attempt.is_announced and attempt.releasing_at is None for attempt in attempts):
        return None  # it starts, or one slice takes over from another
    if not any(_is_there(attempt, observed) for attempt in attempts):
        return _gone_when_idle(deployment, idle, state, observed)
    if not all(fits(deployment, attempt) and _serves(attempt, deployment) for attempt in attempts):
        return None  # a change is on its way, or will be
    uses = [_use_in(observed.reports.get(attempt.name), observed.at) for attempt in attempts]
    used_at = max(observed.at if use is None else use for use in uses)
    since = max(used_at, _opening_before(deployment, observed.at))
    if observed.at < since + idle.seconds:
        return None
    how = f"idle for {round((observed.at - used_at) / 60)} min"
    return _idle_end(deployment, state, observed, since + idle.seconds, how)


def _opening_before(deployment: Deployment, now: float) -> float:
    """Return when the current hours began, or 0: a machine that outlived the night has its whole idle time then."""
    hours = deployment.lifecycle.hours
    span = None if hours is None else current_span(hours, now)
    return 0.0 if span is None else span.begins


def _is_there(attempt: Attempt, observed: Observed) -> bool:
    """Return whether a machine may be left. One whose request was not observed may be."""
    current = observed.slices.get(attempt.name)
    return attempt.name in observed.unseen or (current is not None and not current.is_remainder)


def _serves(attempt: Attempt, deployment: Deployment) -> bool:
    return server_print(attempt.spec) == server_print(deployment.attributes_at(attempt.backend))


def _use_in(report: BootReport | None, now: float) -> float | None:
    """Return when a server last had a request; None where a machine does not say, or has not for a while."""
    if report is None or report.phase is not BootPhase.SERVING or report.at is None or report.at < now - _FRESH:
        return None
    return report.used_at


def _gone_when_idle(deployment: Deployment, idle: IdleLimit, state: State, observed: Observed) -> PastEnd | None:
    """Return that the machine deleted itself; None if it may have been lost in another way, and is to be replaced.

    Compute Engine records why a machine deleted itself. The TPU API only records when one was deleted, and keeps a
    preempted or ended queued resource in sight: one that is gone was deleted by its machine, or by a person.
    """
    ends = [observed.ends[attempt.name] for attempt in state.slice_attempts if attempt.name in observed.ends]
    was_declared = any(attempt.spec.get(EndCause.IDLE) == idle.text for attempt in state.slice_attempts)
    own = next((end for end in ends if end.cause is EndCause.IDLE and was_declared), None)
    if own is not None and own.at >= (state.started_at or 0.0):
        how = f"idle for {own.idle_minutes} min; its machine deleted itself"
        return _idle_end(deployment, state, observed, own.at, how)
    # The record would say that it was idle.
    if any(end.names_cause for end in ends):
        return None
    return _deduced_idle(deployment, idle, state, observed, max((end.at for end in ends), default=None))


def _deduced_idle(
    deployment: Deployment, idle: IdleLimit, state: State, observed: Observed, deleted_at: float | None
) -> PastEnd | None:
    """Return the end by when it was to come, and by when its machine was deleted, if Google has a time for that."""
    attempts, now = state.slice_attempts, observed.at
    if not sees_all_requests(deployment) or not all(_was_deleted(a, deployment, observed) for a in attempts):
        return None
    since = max((a.granted_at for a in attempts if a.granted_at is not None), default=now)
    at = max(since, state.serving_since or 0.0, state.used_at or 0.0, state.started_at or 0.0) + idle.seconds
    if deleted_at is None:
        return None if now < at else _idle_end(deployment, state, observed, at, "deduced, because its machine is gone")
    # A run saw it serve, and saw its last request, somewhat later than the machine did.
    if deleted_at < at - idle.seconds * _NEWS:
        return None
    how = f"deduced, because its machine was deleted at {_clock(deleted_at)} by Google's times"
    return _idle_end(deployment, state, observed, deleted_at, how)


def _was_deleted(attempt: Attempt, deployment: Deployment, observed: Observed) -> bool:
    """Return whether Google cannot have ended the slice: an instance leaves no trace of a preemption or its end.

    A group outlives its instances, whatever becomes of them, so one that is gone was deleted.
    """
    now = observed.at
    if BACKENDS[attempt.backend].has_end_states or attempt.name in observed.slices:
        return True
    most = deployment.max_run_seconds
    is_over = most is not None and attempt.granted_at is not None and now >= attempt.granted_at + most
    return attempt.provisioning is not Provisioning.SPOT and not is_over


def _idle_end(deployment: Deployment, state: State, observed: Observed, at: float, how: str) -> PastEnd | None:
    """Return the end of what was idle, or None once its hours have begun again since."""
    idle, until = deployment.lifecycle.idle, _opening_after(deployment, state, at)
    if until is not None and until <= observed.at:
        return None
    why = f"{EndCause.IDLE}: {idle.text if idle is not None else ''}; {how}"
    return PastEnd(at=at, cause=EndCause.IDLE, why=why, profile=deployment.written, until=until)


def _opening_after(deployment: Deployment, state: State, at: float) -> float | None:
    """Return when its hours begin next after this time; None without hours, or if its end comes before."""
    hours, end = deployment.lifecycle.hours, _end_time(deployment, state)
    opening = None if hours is None else next_opening(hours, at)
    return None if opening is None or (end is not None and end <= opening) else opening


def _end_time(deployment: Deployment, state: State) -> float | None:
    """Return when `lifecycle.end` comes, in seconds since the epoch; None without one, or if nothing runs yet.

    A deployment that has not served yet ends as if it had at the last moment that `health.timeout` allows: what it
    holds is billed in any case.
    """
    end = deployment.lifecycle.end
    if end is None or end.at is not None:
        return None if end is None else end.at
    since = state.serving_since
    if since is None:
        times = (attempt.granted_at for attempt in state.slice_attempts if attempt.granted_at is not None)
        # One that was started again has nothing to do with the slices that ended before.
        granted = [at for at in times if at >= (state.started_at or 0.0)]
        since = min(granted) + deployment.health.timeout_seconds if granted else None
    return None if since is None or end.after_seconds is None else since + end.after_seconds


def _ended(deployment: Deployment, at: float) -> PastEnd:
    end = deployment.lifecycle.end
    why = f"{EndCause.END}: {end.text if end is not None else ''}"
    return PastEnd(at=at, cause=EndCause.END, why=why, profile=deployment.written)


def _closed(deployment: Deployment, state: State, at: float) -> PastEnd:
    hours = deployment.lifecycle.hours
    assert hours is not None
    why, until = f"{EndCause.HOURS}: {hours.text}", _opening_after(deployment, state, at)
    return PastEnd(at=at, cause=EndCause.HOURS, why=why, profile=deployment.written, until=until)
