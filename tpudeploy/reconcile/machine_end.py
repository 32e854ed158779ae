"""When the machine of a request deletes itself, by `lifecycle` as its deployment was applied."""

from __future__ import annotations

from math import inf

from tpudeploy.config.scalars import Duration, Moment
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.hours import Hours, closing_after, current_span, last_closing
from tpudeploy.domain.state import Attempt, State

# Seconds after the end of a deployment in which its machine is deleted: the machine itself looks every minute.
LATE = 120.0


def longest_seconds(attempt: Attempt) -> float:
    """Return how long a machine runs at most from its grant on, by an end that counts from when it first serves."""
    end = _end(attempt)
    return _start_seconds(attempt) + end + LATE if isinstance(end, Duration) else inf


def next_deletion(attempt: Attempt, state: State, now: float) -> float:
    """Return when the machine is deleted because its deployment ends, as far as that is known; infinite if it is not.

    It is in the past for one whose end has come.
    """
    hours, ends = _hours(attempt), [_deployment_end(attempt, state)]
    if hours is not None:
        since = attempt.asked_at if attempt.granted_at is None else attempt.granted_at
        closed = None if current_span(hours, now) is not None else last_closing(hours, now)
        ends.append(closing_after(hours, now) if closed is None or since >= closed else closed)
    return min(ends) + LATE


def past_deletion(attempt: Attempt, state: State, now: float) -> float:
    """Return when a machine that is gone by `now` was deleted at the latest, by its own end; `now` without one before.

    Of several nights, the last one counts: nothing tells in which of them it went.
    """
    hours, ends = _hours(attempt), [_deployment_end(attempt, state)]
    if hours is not None:
        ends.append(last_closing(hours, now))
    # An end before its grant is not why it went.
    since = now if attempt.granted_at is None else attempt.granted_at
    return min([now, *(end + LATE for end in ends if end > since)])


def earliest_deletion(attempt: Attempt, state: State, now: float) -> float:
    """Return when its machine may have deleted itself at the earliest; infinite without an end of its own."""
    granted = attempt.asked_at if attempt.granted_at is None else attempt.granted_at
    ends, end, hours, idle = (
        [_deployment_end(attempt, state)],
        _end(attempt),
        _hours(attempt),
        attempt.spec.get(EndCause.IDLE),
    )
    if isinstance(end, Duration) and state.serving_since is None:
        ends.append(granted + end)
    if idle is not None:
        ends.append(max(granted, state.serving_since or 0.0, state.used_at or 0.0) + Duration.parse(str(idle)))
    if hours is not None:
        closed = last_closing(hours, now)
        ends.append(closed if closed >= granted else closing_after(hours, now))
    return min(ends)


def _deployment_end(attempt: Attempt, state: State) -> float:
    end = _end(attempt)
    if isinstance(end, Moment):
        return float(end)
    if isinstance(end, Duration) and state.serving_since is not None:
        return state.serving_since + end
    # Once it has ended, the state no longer has since when it served. When it was idle, only its machine knew.
    past = state.ended
    return past.at if past is not None and past.cause is EndCause.END else inf


def _hours(attempt: Attempt) -> Hours | None:
    text = attempt.spec.get(EndCause.HOURS)
    return None if text is None else Hours.parse(str(text))


def _end(attempt: Attempt) -> Duration | Moment | None:
    text = attempt.spec.get(EndCause.END)
    return None if text is None else parse_end(str(text))


def parse_end(text: str) -> Duration | Moment:
    """Return a `lifecycle.end`: a time, or how long after it first serves."""
    try:
        return Duration.parse(text)
    except ValueError:
        return Moment.parse(text)


def _start_seconds(attempt: Attempt) -> float:
    """Return the time in which it must serve: without an answer, its end counts from there."""
    return Duration.parse(str(attempt.spec.get("health.timeout", "45m")))
