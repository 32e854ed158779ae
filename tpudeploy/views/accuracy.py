"""A sheet and a verdict as text: what was right, what changed, and what so many questions can show."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.accuracy.paired import POWER
from tpudeploy.core.accuracy.sheet import Sheet
from tpudeploy.core.accuracy.verdict import Judgement, Verdict
from tpudeploy.views.paint import Paint
from tpudeploy.views.words import plain

WORDS = {
    Judgement.HELD: "No fall of quality was found.",
    Judgement.FELL: "Quality fell.",
    Judgement.CANNOT_TELL: "These questions cannot tell.",
}


def sheet(of: Sheet) -> str:
    """One line, and what is odd about it."""
    lines = [f"{of.deployment or of.url}  {of.right} of {len(of.answers)} right ({of.share:.1%})  {of.terms.questions}"]
    if of.unanswered:
        lines.append(f"  {of.unanswered} have no answer")
    if of.cut:
        lines.append(f"  {of.cut} were cut off at {of.terms.max_tokens} tokens")
    return plain("\n".join(lines))


def verdict(of: Verdict, before: Sheet, after: Sheet, paint: Paint) -> str:
    return "\n".join(_lines(of, before, after, paint))


def _lines(of: Verdict, before: Sheet, after: Sheet, paint: Paint) -> Iterator[str]:
    counts = of.counts
    yield plain(f"before  {counts.before:6.1%} right  {before.id}")
    yield plain(f"after   {counts.after:6.1%} right  {after.id}")
    yield f"  {counts.questions} questions of both: {counts.lost} lost, {counts.gained} gained"
    yield (
        f"  by chance alone so many lost: {of.chance:.2g} (McNemar, exact, one-sided); "
        f"a fall of up to {max(of.most, 0):.1%} cannot be excluded"
    )
    for power in of.powers:
        yield (
            f"  a fall of {power.fall:.0%} would be found {power.found:.0%} of the time; "
            f"{power.needed:,} questions find it {POWER:.0%}"
        )
    for remark in of.remarks:
        yield f"  {remark}"
    said = WORDS[of.judgement]
    yield paint.red(said) if of.judgement is not Judgement.HELD else paint.green(said)
    if of.because:
        yield plain(f"  {of.because}.")
