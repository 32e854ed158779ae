"""The last start of each machine of a deployment, as its log and its own account tell it."""

from __future__ import annotations

from dataclasses import replace

from tpudeploy.boot_log import starts
from tpudeploy.boot_log.start_timeline import timeline
from tpudeploy.domain import errors
from tpudeploy.domain.benchmark import Start
from tpudeploy.domain.names import address
from tpudeploy.domain.state import Attempt
from tpudeploy.domain.status import Timeline
from tpudeploy.domain.together import together
from tpudeploy.engine.retry import looking_again
from tpudeploy.ports import Logs, World


def timelines(world: World, source: Logs, name: str) -> tuple[Timeline, ...]:
    """Of those that were granted and say anything. Raise `errors.StateError`, `errors.Fault` or `errors.Denied`."""
    state = world.state.read(name).state
    granted = [] if state is None else [(r.index, a) for r in state.records for a in r.attempts]
    up = [(address(name, index), attempt) for index, attempt in granted if attempt.granted_at is not None]
    found = together(world.threads, lambda one: _timeline(world, source, *one), up)
    return tuple(each for each in found if each is not None)


def last_start(world: World, source: Logs, attempt: Attempt) -> Start | None:
    """Return how the server that runs on this machine came up, by its log, else by the machine's own report.

    None where neither tells. Raise `errors.Fault` or `errors.Denied` where the machine cannot be asked.
    """
    logged = starts.last_start(_log(source, attempt))
    if logged is not None and logged.programs is not None:
        return logged
    where, budget = attempt.name, world.patience.faults_at_plan
    report = looking_again(world, where, lambda: world.cloud.report(attempt.ref), budget=budget)
    reported = None if report is None else starts.reported_start(report)
    if logged is None or reported is None:
        return logged or reported
    return replace(logged, programs_cached=reported.programs_cached, programs=reported.programs)


def _timeline(world: World, source: Logs, where: str, attempt: Attempt) -> Timeline | None:
    report = looking_again(world, where, lambda: world.cloud.report(attempt.ref), budget=world.patience.faults_at_plan)
    return timeline(where, attempt.name, _log(source, attempt), report)


def _log(source: Logs, attempt: Attempt) -> str:
    """Empty where it cannot be read: the machine's own account is enough to draw."""
    try:
        return "\n".join(source.lines(attempt.ref))
    except (errors.Denied, errors.Fault, errors.CloudError):
        return ""
