"""The last start of each machine of a deployment, as its log and its own account tell it."""

from __future__ import annotations

from tpudeploy.core.timeline import timeline
from tpudeploy.domain import errors
from tpudeploy.domain.names import address
from tpudeploy.domain.state import Attempt
from tpudeploy.domain.timeline import Timeline
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


def _timeline(world: World, source: Logs, where: str, attempt: Attempt) -> Timeline | None:
    report = looking_again(world, where, lambda: world.cloud.report(attempt.ref), budget=world.patience.faults_at_plan)
    return timeline(where, attempt.name, _log(source, attempt), report)


def _log(source: Logs, attempt: Attempt) -> str:
    """Empty where it cannot be read: the machine's own account is enough to draw."""
    try:
        return "\n".join(source.lines(attempt.ref))
    except (errors.Denied, errors.Fault, errors.CloudError):
        return ""
