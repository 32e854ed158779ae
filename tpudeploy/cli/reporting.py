"""A run's report, gathered and written: the page, and the same figures as CSV and Vega-Lite beside it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.domain.errors import UsageError

if TYPE_CHECKING:
    from tpudeploy.config.profile import Profile
    from tpudeploy.domain.benchmark import Run
    from tpudeploy.workspace import Workspace


def written(
    workspace: Workspace, first: str, others: Sequence[str], *, profile: Profile | None, out: Path
) -> tuple[Path, ...]:
    """The files of the run `first`, held against `others`: each by its id, or the name of a published table.

    With `profile`, also how its machines hold their memory and how they started. Raise `errors.UsageError` for a run
    that there is not, or a file that cannot be written.
    """
    from tpudeploy.core.bench.compare import compare
    from tpudeploy.core.bench.operating import operating_points
    from tpudeploy.core.bench.runfile import digest
    from tpudeploy.views.report.exports import to_csv, to_vega_lite
    from tpudeploy.views.report.page import Report, page

    run = named(workspace, first)
    against = [named(workspace, other) for other in others]
    report = Report(
        run=run,
        digest=digest(run),
        points=operating_points(run),
        comparison=compare([run, *against]) if against else None,
        details=() if profile is None else workspace.details(profile),
        timelines=() if profile is None else workspace.timelines(profile.spec.name),
    )
    files = {out: page(report), out.with_suffix(".csv"): to_csv(run), out.with_suffix(".vl.json"): to_vega_lite(run)}
    for path, content in files.items():
        write(path, content)
    return tuple(files)


def write(path: Path, content: str) -> None:
    """Raise `errors.UsageError` where that cannot be."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror or cause}.") from cause


def named(workspace: Workspace, name: str) -> Run:
    """A published table by its name, else a run by its id. Raise as `ports.Runs.find`."""
    from tpudeploy.core.bench.published import published

    known = published().get(name)
    return known if known is not None else workspace.runs.find(name)
