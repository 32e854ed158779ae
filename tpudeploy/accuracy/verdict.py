"""Verdict: whether quality fell from one sheet to the other, or why these questions cannot show it."""

from __future__ import annotations

from enum import StrEnum
from typing import Any

from tpudeploy.accuracy.paired import ALPHA, Paired, largest_fall, p_value, power, questions_needed
from tpudeploy.accuracy.sheet import Sheet
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.serialization import to_json

# Below this share, the model does not understand the form of the questions, or they are too hard for it. A published
# quality gate passed at 10 %, and a report of wrong answers followed.
LEAST_BASELINE = 0.5
# With a larger share of unanswered questions, the answered ones are no longer the same test.
MOST_UNANSWERED = 0.01
# The falls for which the power is reported, as shares.
FALLS = (0.02, 0.03)


class Judgement(StrEnum):
    """The conclusion. `held`: no fall was detected, which means only as much as the power allows."""

    HELD = "held"
    FELL = "fell"
    CANNOT_TELL = "cannot-tell"


@frozen
class Power:
    """The probability that these questions detect a fall of this share, and the number that detect it 4 times in 5."""

    fall: float
    found: float
    needed: int


@frozen
class Verdict:
    """The result. `because` is why these sheets cannot show it. `chance` is McNemar's p-value, one-sided and exact.

    `most` is the largest fall that cannot be excluded, as a share, with 95 % confidence.
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
        return {**to_json(self), "questions": counts.questions, **shares}


def verdict(before: Sheet, after: Sheet) -> Verdict:
    """Compare two sheets. Raise `errors.UsageError` for sheets of different tests."""
    _same_test(before, after)
    counts = _counts(before, after)
    because = _why_unable(before, after)
    probability = p_value(counts)
    judgement = Judgement.FELL if probability <= ALPHA else Judgement.HELD
    return Verdict(
        judgement=Judgement.CANNOT_TELL if because else judgement,
        because=because,
        counts=counts,
        chance=probability,
        most=largest_fall(counts),
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
    """Return the counts over the questions that both servers answered."""
    first_answers = {answer.question: answer for answer in before.answers if not answer.problem}
    pairs = [
        (first_answers[a.question].is_right, a.is_right)
        for a in after.answers
        if not a.problem and a.question in first_answers
    ]
    return Paired(
        both=pairs.count((True, True)),
        lost=pairs.count((True, False)),
        gained=pairs.count((False, True)),
        neither=pairs.count((False, False)),
    )


def _why_unable(before: Sheet, after: Sheet) -> str:
    for name, sheet in (("first", before), ("second", after)):
        if sheet.unanswered > MOST_UNANSWERED * len(sheet.answers):
            reason = next(answer.problem for answer in sheet.answers if answer.problem)
            return f"{sheet.unanswered} of {len(sheet.answers)} questions have no answer of the {name} server: {reason}"
    if before.share < LEAST_BASELINE:
        return (
            f"the first server had {before.share:.1%} right: below {LEAST_BASELINE:.0%}, the questions or the form of "
            "the answers is wrong, and no fall would show"
        )
    return ""


def _power(counts: Paired, fall: float) -> Power:
    probability = power(counts.questions, changed=counts.changed, fall=fall)
    return Power(fall=fall, found=probability, needed=questions_needed(changed=counts.changed, fall=fall))


def _remarks(before: Sheet, after: Sheet) -> list[str]:
    """Return what may have changed answers besides the intended change."""
    remarks = []
    if before.concurrency and after.concurrency and before.concurrency != after.concurrency:
        remarks.append(
            f"{before.concurrency} parallel questions before, {after.concurrency} now: batching alone changes answers."
        )
    cut = max(before.cut, after.cut)
    if cut > MOST_UNANSWERED * len(after.answers):
        remarks.append(f"{cut} answers were cut off at {after.terms.max_tokens} tokens: raise --max-tokens.")
    if before.server and before.server == after.server and before.image == after.image:
        remarks.append("Both servers were started in the same way, so any difference is chance.")
    return remarks
