"""The boot logs of a deployment's machines, and their last starts, by the log or by the machine's own report."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import replace
from functools import partial

from tpudeploy.boot_log import starts
from tpudeploy.boot_log.reading import Timeline
from tpudeploy.domain import errors
from tpudeploy.domain.names import address
from tpudeploy.domain.slices import BootReport
from tpudeploy.domain.starts import MeasuredStart
from tpudeploy.domain.state import Attempt
from tpudeploy.domain.together import together
from tpudeploy.engine.retry import retry_on_fault
from tpudeploy.ports import Logs, World


def read_logs(
    world: World, source: Logs, name: str, on_unreadable: Callable[[str, errors.CloudError], None] | None = None
) -> Mapping[str, tuple[str, ...]]:
    """Return the lines by slice that was granted. Raise `errors.StateError`, `errors.Fault` or `errors.Denied`.

    With `on_unreadable`, a log that cannot be read hides no other: it is reported, and raised only where none can be.
    """
    state = world.state.read(name).state
    granted = [] if state is None else [a for a in state.attempts if a.granted_at is not None]
    if not granted:
        raise errors.StateError(f"{name} has no machine with a log.", hint="`tpudeploy status` shows its progress.")
    budget = world.patience.faults_at_plan
    logs: dict[str, tuple[str, ...]] = {}
    unreadable: dict[str, errors.CloudError] = {}
    for attempt in granted:
        try:
            logs[attempt.name] = retry_on_fault(world, name, partial(source.lines, attempt.ref), budget=budget)
        except errors.CloudError as error:
            if on_unreadable is None:
                raise
            unreadable[attempt.name] = error
    if not logs:
        raise next(iter(unreadable.values()))
    for slice_name, cause in unreadable.items():
        assert on_unreadable is not None
        on_unreadable(slice_name, cause)
    return logs


def timelines(world: World, source: Logs, name: str) -> tuple[Timeline, ...]:
    """Return the last start of each granted machine whose log or report has one.

    Raise `errors.StateError`, `errors.Fault` or `errors.Denied`.
    """
    state = world.state.read(name).state
    attempts = [] if state is None else [(r.index, a) for r in state.records for a in r.attempts]
    machines = [(address(name, index), attempt) for index, attempt in attempts if attempt.granted_at is not None]

    def timeline(machine: tuple[str, Attempt]) -> Timeline | None:
        where, attempt = machine
        report = _report(world, where, attempt)
        return starts.timeline(where, attempt.name, _text(source, attempt), report)

    return tuple(each for each in together(world.threads, timeline, machines) if each is not None)


def last_start(world: World, source: Logs, attempt: Attempt) -> MeasuredStart | None:
    """Return how the server that runs on this machine came up, by its log, else by the machine's own report.

    None where neither has it. Raise `errors.Fault` or `errors.Denied` where the machine cannot be asked.
    """
    logged = starts.last_start(_text(source, attempt))
    if logged is not None and logged.programs is not None:
        return logged
    report = _report(world, attempt.name, attempt)
    reported = None if report is None else starts.reported_start(report)
    if logged is None or reported is None:
        return logged or reported
    return replace(logged, programs_cached=reported.programs_cached, programs=reported.programs)


def _report(world: World, where: str, attempt: Attempt) -> BootReport | None:
    return retry_on_fault(world, where, lambda: world.cloud.report(attempt.ref), budget=world.patience.faults_at_plan)


def _text(source: Logs, attempt: Attempt) -> str:
    """Return the log, or "" where it cannot be read: the machine's own report is enough to draw."""
    try:
        return "\n".join(source.lines(attempt.ref))
    except errors.CloudError:
        return ""
