"""Format the result of a run, one line per deployment."""

from __future__ import annotations

from collections import Counter

from tpudeploy.domain.report import Report, Result, Summary
from tpudeploy.views.paint import Paint
from tpudeploy.views.words import plain


def summary(report: Report, paint: Paint) -> str:
    """Return the counts, then one line per deployment; a failure shows the first line of its error."""
    deployments = report.deployments
    counts = Counter(deployment.result for deployment in deployments)
    counted = ", ".join(f"{counts[result]} {result}" for result in Result if counts[result])
    width = max(len(deployment.name) for deployment in deployments)
    rows = (f"  {deployment.name.ljust(width)}  {_result(deployment, paint)}" for deployment in deployments)
    return "\n".join([f"\nDeployments: {counted}.\n", *rows])


def _result(summary: Summary, paint: Paint) -> str:
    match summary.result:
        case Result.FAILED if summary.error is not None:
            first = plain(summary.error.message).partition("\n")[0]
            return f"{paint.red(summary.result)}: {first} {paint.dim(f'[{summary.error.code}]')}"
        case Result.SERVED:
            return paint.green(summary.result)
        case Result.UNCHANGED:
            return paint.dim(summary.result)
        case _:
            return str(summary.result)
