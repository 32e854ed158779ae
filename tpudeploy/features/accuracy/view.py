"""Format an answer sheet and a verdict as text: accuracy, changed answers, and the power of the comparison."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.features.accuracy.judgement import Judgement, SheetComparison
from tpudeploy.features.accuracy.sheet import Sheet
from tpudeploy.features.accuracy.verdict import POWER
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import plain


def sheet(sheet: Sheet) -> str:
    """Return the score on one line, then a line for unanswered questions and one for truncated answers."""
    score = f"{sheet.right} of {len(sheet.answers)} right ({sheet.share:.1%})"
    lines = [f"{sheet.deployment or sheet.url}  {score}  {sheet.terms.questions}"]
    if sheet.unanswered:
        lines.append(f"  {sheet.unanswered} have no answer")
    if sheet.cut:
        lines.append(f"  {sheet.cut} were cut off at {sheet.terms.max_tokens} tokens")
    return plain("\n".join(lines))


def verdict(verdict: SheetComparison, before: Sheet, after: Sheet, paint: Paint) -> str:
    return "\n".join(_lines(verdict, before, after, paint))


def _lines(verdict: SheetComparison, before: Sheet, after: Sheet, paint: Paint) -> Iterator[str]:
    counts = verdict.counts
    yield plain(f"before  {counts.before:6.1%} right  {before.id}")
    yield plain(f"after   {counts.after:6.1%} right  {after.id}")
    yield f"  {counts.questions} questions in both: {counts.lost} lost, {counts.gained} gained"
    yield (
        f"  probability of this many losses by chance alone: {verdict.chance:.2g} (McNemar, exact, one-sided); "
        f"a fall of up to {max(verdict.most, 0):.1%} cannot be excluded"
    )
    for power in verdict.powers:
        yield (
            f"  a fall of {power.fall:.0%} would be detected {power.found:.0%} of the time; "
            f"{power.needed:,} questions detect it {POWER:.0%}"
        )
    for remark in verdict.remarks:
        yield f"  {remark}"
    summary = verdict.judgement.sentence
    yield paint.red(summary) if verdict.judgement is not Judgement.HELD else paint.green(summary)
    if verdict.because:
        yield plain(f"  {verdict.because}.")
