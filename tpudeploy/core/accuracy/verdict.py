"""Verdict: whether quality fell from one sheet to the other, or that these questions cannot tell."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from tpudeploy.core.accuracy.paired import ALPHA, Paired, chance, most_that_fell, needed, power
from tpudeploy.core.accuracy.sheet import Sheet
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.tree import tree

# Below it the questions are asked in a form that the model does not understand, or are beyond it: a published gate
# passed at 10 %, and a report of wrong answers followed.
LEAST_BASELINE = 0.5
# More questions without an answer than this, and what is compared is no longer what was asked.
MOST_UNANSWERED = 0.01
# The falls whose chance of being seen is told, as shares.
FALLS = (0.02, 0.03)


class Judgement(StrEnum):
    """`held`: no fall was found, which says as much as the power beside it."""

    HELD = "held"
    FELL = "fell"
    CANNOT_TELL = "cannot-tell"


@frozen
class Power:
    """How often a fall of this share would be found by these questions; how many find it four times in five."""

    fall: float
    found: float
    needed: int


@frozen
class Verdict:
    """`because` says why these sheets cannot tell. `chance` is McNemar's, one-sided and exact.

    `most` is how much of a fall cannot be excluded, as a share, with 95 % confidence.
    """

    judgement: Judgement
    because: str
    counts: Paired
    chance: float
    most: float
    powers: tuple[Power, ...]
    remarks: tuple[str, ...]

    def to_dict(self) -> dict[str, Any]:
        counts = self.counts
        shares = {"before": counts.before, "after": counts.after, "changed": counts.changed}
        return {**tree(self), "questions": counts.questions, **shares}


def verdict(before: Sheet, after: Sheet) -> Verdict:
    """Raise `errors.UsageError` for sheets of different tests."""
    _same_test(before, after)
    counts = _counts(before, after)
    because = _blind(before, after)
    by_chance = chance(counts)
    judged = Judgement.FELL if by_chance <= ALPHA else Judgement.HELD
    return Verdict(
        judgement=Judgement.CANNOT_TELL if because else judged,
        because=because,
        counts=counts,
        chance=by_chance,
        most=most_that_fell(counts),
        powers=tuple(_power(counts, fall) for fall in FALLS if counts.questions),
        remarks=tuple(_remarks(before, after)),
    )


def _same_test(before: Sheet, after: Sheet) -> None:
    for name, what in (("tool", "judged by"), ("digest", "asked"), ("max_tokens", "allowed")):
        one, other = getattr(before.terms, name), getattr(after.terms, name)
        if one == other:
            continue
        if name == "digest":
            one = f"{len(before.answers)} questions of {before.terms.questions}"
            other = f"{len(after.answers)} of {after.terms.questions}, and not the same"
        words = {"max_tokens": " tokens an answer"}.get(name, "")
        raise UsageError(
            f"Two servers are compared by one test: {before.id} was {what} {one}{words}, {after.id} {other}{words}.",
            hint="Ask the first one again in the same way.",
        )


def _counts(before: Sheet, after: Sheet) -> Paired:
    """Of the questions that both answered."""
    known = {answer.question: answer for answer in before.answers if not answer.problem}
    pairs = [(known[a.question].is_right, a.is_right) for a in after.answers if not a.problem and a.question in known]
    return Paired(
        both=pairs.count((True, True)),
        lost=pairs.count((True, False)),
        gained=pairs.count((False, True)),
        neither=pairs.count((False, False)),
    )


def _blind(before: Sheet, after: Sheet) -> str:
    for name, sheet in (("first", before), ("second", after)):
        if sheet.unanswered > MOST_UNANSWERED * len(sheet.answers):
            reason = next(answer.problem for answer in sheet.answers if answer.problem)
            return f"{sheet.unanswered} of {len(sheet.answers)} questions have no answer of the {name} server: {reason}"
    if before.share < LEAST_BASELINE:
        return (
            f"the first server had {before.share:.1%} right: below {LEAST_BASELINE:.0%} it is the questions, or the "
            "form of the answers, that is wrong, and no fall would show"
        )
    return ""


def _power(of: Paired, fall: float) -> Power:
    found = power(of.questions, changed=of.changed, fall=fall)
    return Power(fall=fall, found=found, needed=needed(changed=of.changed, fall=fall))


def _remarks(before: Sheet, after: Sheet) -> list[str]:
    """What may have moved answers beside what was changed on purpose."""
    said = []
    if before.concurrency and after.concurrency and before.concurrency != after.concurrency:
        said.append(
            f"{before.concurrency} questions at once before, {after.concurrency} now: batches alone change answers."
        )
    cut = max(before.cut, after.cut)
    if cut > MOST_UNANSWERED * len(after.answers):
        said.append(f"{cut} answers were cut off at {after.terms.max_tokens} tokens: raise --max-tokens.")
    if before.server and before.server == after.server and before.image == after.image:
        said.append("Both servers were started in the same way: what was compared is chance.")
    return said
