"""Plan, apply and destroy in one call, for scripts of three lines. `Workspace` has every operation and every option."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any, Unpack

from tpudeploy import loading
from tpudeploy.adapters.project import folder_of
from tpudeploy.domain.events import Event
from tpudeploy.domain.report import Wait
from tpudeploy.loading import Profiles
from tpudeploy.plans import Plan, Report
from tpudeploy.text.paint import Paint
from tpudeploy.views.events import Repeats
from tpudeploy.wiring import WorkspaceOptions
from tpudeploy.workspace import Workspace


def plan(profiles: Profiles, **options: Unpack[WorkspaceOptions]) -> Plan:
    """Return what `apply` would change for these profiles, at what price. Changes nothing.

    The states are those of the profiles' project folder, as on the command line. `options` are those of `Workspace`.

    Raise `errors.ProfileInvalid` with all problems of an invalid profile, and what `Workspace.plan` raises.
    """
    with _workspace(profiles, options) as workspace:
        return workspace.plan(profiles)


def apply(
    profiles: Profiles,
    *,
    on_event: Callable[[Event], None] | None = None,
    wait: Wait | str = "serving",
    timeout: float | str | None = None,
    max_cost: float | None = None,
    **options: Unpack[WorkspaceOptions],
) -> Report:
    """Create or update these deployments without asking, wait until they serve, and return the report.

    `timeout` is in seconds, or "90m". `max_cost` is the most that they may cost from now on, in USD.

    Raise the error of the first deployment that failed (`errors.TpudeployError`; the others continue first), and what
    `plan` and `Workspace.apply` raise.
    """
    with _workspace(profiles, options) as workspace:
        changes = workspace.plan(profiles, on_event=on_event)
        return _without_error(
            workspace.apply(changes, on_event=on_event, wait=wait, timeout=timeout, max_cost=max_cost)
        )


def destroy(
    profiles: Profiles, *, on_event: Callable[[Event], None] | None = None, **options: Unpack[WorkspaceOptions]
) -> Report:
    """Delete these deployments without asking, wait until they are gone, and return the report.

    Raise the error of the first deployment that failed, and what `Workspace.destroy` raises.
    """
    with _workspace(profiles, options) as workspace:
        return _without_error(workspace.destroy(profiles, on_event=on_event))


def progress(write: Callable[[str], object] = print) -> Callable[[Event], None]:
    """Return a listener for `on_event` that writes one line for each event worth one: for notebooks and logs.

    It leaves out repetitions, as the command line does. `write` gets each line without its end.
    """
    repeats, plain = Repeats(), Paint()

    def listen(event: Event) -> None:
        line = repeats.line(event, plain)
        if line is not None:
            write(line)

    return listen


def _without_error(report: Report) -> Report:
    if report.error is not None:
        raise report.error
    return report


@contextmanager
def _workspace(profiles: Profiles, options: Mapping[str, Any]) -> Iterator[Workspace]:
    """Yield the workspace of the profiles' project."""
    here = Path.cwd()
    paths = [here / one for one in loading.each(profiles) if isinstance(one, str | Path)]
    with Workspace(folder_of(here, paths), **options) as workspace:
        yield workspace
