"""Whether the end of a deployment has come (`lifecycle.end`, `.hours`). Then it has no replicas, and its slices go.

An end stays: no later run starts the deployment again, however it is approved, until the profile changes or a user asks
for it (`apply -start`). The state keeps when the deployment first served, so neither a preemption nor a replacement of
its slice moves its end. Only hours begin again by themselves.

Why: decision 86 in docs/decisions.md.
"""

from __future__ import annotations

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.ending import PastEnd
from tpudeploy.domain.frozen import replace
from tpudeploy.domain.hours import closing_after, current_span, last_closing, next_opening
from tpudeploy.domain.state import State


def next_end(deployment: Deployment, state: State, now: float) -> PastEnd | None:
    """Return the end that comes next by the clock, or has come; None without an end, or while nothing runs."""
    at, hours = _end_time(deployment, state), deployment.lifecycle.hours
    ends = [] if at is None else [_ended(deployment, at)]
    if hours is not None:
        is_open = current_span(hours, now) is not None
        ends.append(_closed(deployment, closing_after(hours, now) if is_open else last_closing(hours, now)))
    return min(ends, key=lambda end: end.at, default=None)


def until_end(deployment: Deployment, state: State, now: float) -> Deployment:
    """Return the deployment; from its end on, without replicas, and with the reason."""
    ending = _ending(deployment, state, now)
    if ending is None:
        return deployment if deployment.ended is None else replace(deployment, ended=None, indexes=None)
    return replace(deployment, ended=ending, indexes=())


def with_service(state: State, now: float) -> State:
    """Return the state with the time at which the deployment first served, once it does."""
    if state.serving_since is not None or not any(attempt.is_announced for attempt in state.slice_attempts):
        return state
    return replace(state, serving_since=now)


def with_ending(state: State, ending: PastEnd) -> State:
    """Return the state that says that the deployment has ended. Once started again, it serves for the whole time.

    The end of its hours does not count for that: `end: 7d` is a week with all its nights.
    """
    if state.ended == ending:
        return state
    return replace(state, ended=ending, serving_since=None if ending.until is None else state.serving_since)


def is_over(deployment: Deployment | None, state: State) -> bool:
    """Return whether the state still has an end that another profile had, or that of a removed deployment."""
    return deployment is None or (state.ended is not None and deployment.ended is None)


def started_again(state: State) -> State:
    """Return the state without an end that has come. One whose hours begin has served since it first did."""
    if state.ended is not None and state.ended.until is not None:
        return replace(state, ended=None)
    return (
        state if (state.ended, state.serving_since) == (None, None) else replace(state, ended=None, serving_since=None)
    )


def _ending(deployment: Deployment, state: State, now: float) -> PastEnd | None:
    earlier = state.ended
    if earlier is not None and earlier.profile == deployment.written and (earlier.until is None or now < earlier.until):
        return earlier
    at, hours = _end_time(deployment, state), deployment.lifecycle.hours
    if at is not None and now >= at:
        return _ended(deployment, at)
    if hours is not None and current_span(hours, now) is None:
        return _closed(deployment, last_closing(hours, now))
    return None


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
        granted = [attempt.granted_at for attempt in state.slice_attempts if attempt.granted_at is not None]
        since = min(granted) + deployment.health.timeout_seconds if granted else None
    return None if since is None or end.after_seconds is None else since + end.after_seconds


def _ended(deployment: Deployment, at: float) -> PastEnd:
    end = deployment.lifecycle.end
    return PastEnd(at=at, why=f"lifecycle.end: {end.text if end is not None else ''}", profile=deployment.written)


def _closed(deployment: Deployment, at: float) -> PastEnd:
    hours = deployment.lifecycle.hours
    assert hours is not None
    why = f"lifecycle.hours: {hours.text}"
    return PastEnd(at=at, why=why, profile=deployment.written, until=next_opening(hours, at))
