"""Whether the end of a deployment has come (`lifecycle.end`). Then it has no replicas: what it has is deleted.

An end stays: no later run starts the deployment again, however it is approved, until the profile changes or a user asks
for it (`apply -start`). The state keeps when the deployment first served, so neither a preemption nor a replacement of
its slice moves its end.

Why: decision 86 in docs/decisions.md.
"""

from __future__ import annotations

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.ending import PastEnd
from tpudeploy.domain.frozen import replace
from tpudeploy.domain.state import State
from tpudeploy.node.fingerprint import fingerprint


def end_time(deployment: Deployment, state: State) -> float | None:
    """Return when the deployment ends, in seconds since the epoch; None if it has no end, or nothing runs yet.

    One that has not served yet ends as if it had at the last moment that `health.timeout` allows: what it holds is
    billed in any case.
    """
    end = deployment.lifecycle.end
    if end is None or end.at is not None:
        return None if end is None else end.at
    since = state.serving_since
    if since is None:
        granted = [attempt.granted_at for attempt in state.slice_attempts if attempt.granted_at is not None]
        since = min(granted) + deployment.health.timeout_seconds if granted else None
    return None if since is None or end.after_seconds is None else since + end.after_seconds


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
    """Return the state that says that the deployment has ended. Once started again, it serves for the whole time."""
    return state if state.ended == ending else replace(state, ended=ending, serving_since=None)


def is_over(deployment: Deployment | None, state: State) -> bool:
    """Return whether the state still has an end that another profile had, or that of a removed deployment."""
    return deployment is None or (state.ended is not None and deployment.ended is None)


def started_again(state: State) -> State:
    """Return the state without an end that has come."""
    return (
        state if (state.ended, state.serving_since) == (None, None) else replace(state, ended=None, serving_since=None)
    )


def _ending(deployment: Deployment, state: State, now: float) -> PastEnd | None:
    end, own = deployment.lifecycle.end, fingerprint(deployment)
    if state.ended is not None and state.ended.fingerprint == own:
        return state.ended
    at = end_time(deployment, state)
    if end is None or at is None or now < at:
        return None
    why = f"lifecycle.end: {end.text}"
    return PastEnd(at=at, why=why, fingerprint=own)
