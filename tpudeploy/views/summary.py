"""What a run came to, a line for each of its deployments."""

from __future__ import annotations

from collections import Counter

from tpudeploy.domain.report import Report, Result, Summary
from tpudeploy.views.paint import Paint
from tpudeploy.views.words import plain


def summary(report: Report, paint: Paint) -> str:
    """Counted at the top; a failure with the first line of its error."""
    told = report.deployments
    counts = Counter(each.result for each in told)
    counted = ", ".join(f"{counts[result]} {result}" for result in Result if counts[result])
    width = max(len(each.name) for each in told)
    rows = (f"  {each.name.ljust(width)}  {_word(each, paint)}" for each in told)
    return "\n".join([f"\nDeployments: {counted}.\n", *rows])


def _word(of: Summary, paint: Paint) -> str:
    match of.result:
        case Result.FAILED if of.error is not None:
            first = plain(of.error.message).partition("\n")[0]
            return f"{paint.red(of.result)}: {first} {paint.dim(f'[{of.error.code}]')}"
        case Result.SERVED:
            return paint.green(of.result)
        case Result.UNCHANGED:
            return paint.dim(of.result)
        case _:
            return str(of.result)
