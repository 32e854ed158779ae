"""Checks of durations against each other and against a start: what ends, drains or repeats too soon to be of use."""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.patience import Patience
from tpudeploy.sizing.checks.check import bounded, check_for, error, warning
from tpudeploy.text import words

_FASTEST_START = 60.0  # seconds: no published boot of vLLM on a TPU took less
_RUN = "placement.max_run_duration"
_DRAIN = "lifecycle.drain_timeout"


@dataclass(frozen=True, slots=True, kw_only=True)
class LeastStart:
    """The least that is known of a start. `words` say it as the end of a sentence, `noun` as a part of one."""

    seconds: float
    noun: str
    words: str


def least_start(deployment: Deployment) -> LeastStart:
    """Return the least time that a start of this deployment takes."""
    budget = bounded(deployment)
    seconds, noun = _FASTEST_START, "a start"
    if budget is not None and deployment.compile_cache is not None:
        seconds, noun = max(seconds, budget.start.warm_seconds), "a start with a warm compile cache"
    elif budget is not None:
        seconds, noun = max(seconds, budget.start.cold_seconds), "a cold start"
    takes = f"{noun} takes {'about' if budget else 'more than'} {words.minutes(seconds)}"
    return LeastStart(seconds=seconds, noun=noun, words=takes)


def _drain_seconds(deployment: Deployment) -> float:
    """Return the longest drain, with the time for which clients may use an endpoint that they have read."""
    seconds, patience = deployment.lifecycle.drain_seconds, Patience()
    return (patience.drained if seconds is None else seconds) + patience.drain


@check_for(
    "TPU2005",
    "A duration that is shorter than a start",
    "Chips are billed from the grant, but the server serves only after the image pull, the weights and the "
    "compilation. A shorter run costs money without serving; a health.timeout below the start time reports every "
    "start as failed. `tpudeploy size` shows how long a start takes.",
    "placement: {max_run_duration: 12h}\nhealth: {timeout: 45m}",
)
def too_short(deployment: Deployment) -> Iterator[Diagnostic]:
    start = least_start(deployment)
    enough = words.minutes(2 * start.seconds)
    run, timeout = deployment.max_run_seconds, deployment.health.timeout_seconds
    if run is not None and run < start.seconds:
        message = f"Google ends the run after {words.duration(run)}, before the server serves: {start.words}."
        yield error(deployment, message, path=_RUN, hint=f"Write more than {enough}.")
    end = deployment.lifecycle.end
    if end is not None and end.after_seconds is not None and end.after_seconds < start.seconds:
        message = f"lifecycle.end comes {words.duration(end.after_seconds)} after it first serves, and {start.words}."
        hint = f"Most of what is paid for would be the start. Write {enough} or more."
        yield error(deployment, message, path="lifecycle.end", hint=hint)
    hours = deployment.lifecycle.hours
    if hours is not None and hours.seconds < start.seconds:
        message = f"lifecycle.hours closes {words.duration(hours.seconds)} after it opens, and {start.words}."
        yield error(deployment, message, path="lifecycle.hours", hint=f"Write {enough} or more.")
    if timeout < start.seconds:
        message = f"health.timeout is over after {words.duration(timeout)}, before the server serves: {start.words}."
        make = error if timeout < _FASTEST_START else warning
        yield make(deployment, message, path="health.timeout", hint=f"Write {enough} or more, or leave it out.")


@check_for(
    "TPU2004",
    "lifecycle.on_run_end has no run to renew",
    "With lifecycle.on_run_end: renew, a second slice takes over before Google ends the run of the first. Without "
    "placement.max_run_duration no run ends by itself. (`apply -watch`, or the next apply, replaces a preempted "
    "slice in any case.)",
    "placement: {max_run_duration: 12h}",
)
def nothing_to_renew(deployment: Deployment) -> Iterator[Diagnostic]:
    if deployment.lifecycle.renew and deployment.max_run_seconds is None:
        message = f"{deployment.name} renews runs that end, and none does: {_RUN} is not set."
        hint = f"Set {_RUN}, or leave lifecycle.on_run_end out."
        yield warning(deployment, message, path="lifecycle.on_run_end", hint=hint)


@check_for(
    "TPU2007",
    "A renewal that comes too late",
    "With lifecycle.on_run_end: renew, the successor of a slice is requested before the end of its run: as early "
    "as a grant (an hour, or the longest recent one), a start and a drain take together, but not before half of "
    "the run. If the successor doesn't serve by the end, there's a gap. If it's granted late, the drain is cut "
    "short.",
    "placement: {max_run_duration: 12h}\nlifecycle: {on_run_end: renew}",
)
def late_renewal(deployment: Deployment) -> Iterator[Diagnostic]:
    run, start = deployment.max_run_seconds, least_start(deployment)
    # A run that is shorter than a start has an error of its own.
    if not deployment.lifecycle.renew or run is None or run < start.seconds:
        return
    drain, grant = _drain_seconds(deployment), Patience().acquisition
    half, lead = run / 2, grant + start.seconds + drain
    if half >= lead:
        return
    moment = f"The successor is requested {words.duration(half)} before the end of a run of {words.duration(run)}"
    hint = f"Write {words.minutes(2 * lead)} or more in {_RUN}."
    if half < start.seconds:
        message = f"{moment}, too late to serve by then even if it is granted at once: {start.words}."
        yield error(deployment, message, path=_RUN, hint=hint)
        return
    message = (
        f"{moment}. A grant ({words.duration(grant)}), {start.noun} ({words.minutes(start.seconds)}) and a drain "
        f"({words.duration(drain)}) may take {words.minutes(lead)}."
    )
    yield warning(deployment, message, path=_RUN, hint=hint)


@check_for(
    "TPU2008",
    "A drain that leaves no time to serve",
    "Before its run ends, a slice stops accepting requests for the drain (lifecycle.drain_timeout, default 15m) "
    "plus the time clients may use a stale endpoint (1m), if another replica or a successor serves. If start and "
    "drain fill the run, you pay for a slice without serving a request.",
    "placement: {max_run_duration: 12h}\nlifecycle: {drain_timeout: 15m}",
)
def endless_drain(deployment: Deployment) -> Iterator[Diagnostic]:
    run, start, drain = deployment.max_run_seconds, least_start(deployment), _drain_seconds(deployment)
    if run is None or run < start.seconds:
        return
    path = _RUN if deployment.lifecycle.drain_seconds is None else _DRAIN
    has_another = deployment.replicas > 1 or deployment.scale is not None or deployment.lifecycle.renew
    room = run - start.seconds
    if has_another and drain >= room:
        message = (
            f"A run of {words.duration(run)} has no time to serve: {start.words}, and the last {words.duration(drain)} "
            "are for the drain."
        )
        hint = f"Write {words.minutes(2 * (start.seconds + drain))} or more in {_RUN}, or a shorter {_DRAIN}."
        yield error(deployment, message, path=path, hint=hint)
    elif path == _DRAIN and drain >= run:
        message = f"Google ends a run after {words.duration(run)}, before a drain of {words.duration(drain)} is over."
        yield warning(deployment, message, path=path, hint=f"Write a {_DRAIN} below {words.minutes(room)}.")


@check_for(
    "TPU2009",
    "scale.cooldown is shorter than a start",
    "The cooldown starts when a replica is requested, but the replica takes load only once it serves. If the "
    "cooldown is over by then, the same load can request yet another replica.",
    "scale: {max: 4, cooldown: 20m}",
)
def short_cooldown(deployment: Deployment) -> Iterator[Diagnostic]:
    scale, start = deployment.scale, least_start(deployment)
    # Nobody has to write the default, which is about the shortest start.
    is_written = "scale.cooldown" in deployment.origins
    if scale is None or not is_written or scale.cooldown_seconds >= start.seconds:
        return
    message = (
        f"The cool-down of {words.duration(scale.cooldown_seconds)} is over before an added replica takes its share: "
        f"{start.words}."
    )
    hint = f"Write {words.minutes(start.seconds * 1.5)} or more in scale.cooldown."
    yield warning(deployment, message, path="scale.cooldown", hint=hint)
