"""Write a benchmark run's report: the page, and the same figures as CSV and Vega-Lite."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.domain.errors import UsageError

if TYPE_CHECKING:
    from tpudeploy.config.profile import Profile
    from tpudeploy.domain.benchmark import Run
    from tpudeploy.workspace import Workspace


def write_report(
    workspace: Workspace, first: str, others: Sequence[str], *, profile: Profile | None, out: Path
) -> tuple[Path, ...]:
    """Write the report of the run `first`, compared with `others`, and return its files.

    Each run is an id or the name of a published table. With `profile`, the report also shows the memory and the start
    of its machines. Raise `errors.UsageError` for an unknown run, or for a file that cannot be written.
    """
    from tpudeploy.benchmark.compare import compare
    from tpudeploy.benchmark.operating import operating_points
    from tpudeploy.benchmark.runfile import digest
    from tpudeploy.views.report.exports import to_csv, to_vega_lite
    from tpudeploy.views.report.page import Report, page

    run = find_run(workspace, first)
    against = [find_run(workspace, other) for other in others]
    report = Report(
        run=run,
        digest=digest(run),
        points=operating_points(run),
        comparison=compare([run, *against]) if against else None,
        details=() if profile is None else workspace.details(profile).details,
        timelines=() if profile is None else workspace.timelines(profile.spec.name),
    )
    files = {out: page(report), out.with_suffix(".csv"): to_csv(run), out.with_suffix(".vl.json"): to_vega_lite(run)}
    for path, content in files.items():
        write(path, content)
    return tuple(files)


def write(path: Path, content: str) -> None:
    """Write a file. Raise `errors.UsageError` if it cannot be written."""
    try:
        path.write_text(content, encoding="utf-8")
    except OSError as cause:
        raise UsageError(f"{path} cannot be written: {cause.strerror or cause}.") from cause


def find_run(workspace: Workspace, name: str) -> Run:
    """Return a published table by its name, else a run by its id. Raise as `ports.Runs.find`."""
    from tpudeploy.benchmark.published import published

    table = published().get(name)
    return table if table is not None else workspace.adapters.runs.find(name)
