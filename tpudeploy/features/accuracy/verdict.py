"""The verdict on two sheets: whether quality fell, or why these questions cannot show it.

The answers are paired, because both servers answer most questions alike: only changed answers carry information, and a
comparison of two independent shares would need twice as many questions. The test is McNemar's, exact and one-sided:
if nothing became worse, a changed question is lost or gained with equal probability.

Why: decision 38 in docs/decisions.md.
"""

from __future__ import annotations

import math
from statistics import NormalDist

from tpudeploy.domain.errors import UsageError
from tpudeploy.features.accuracy.judgement import Judgement, Paired, Power, SheetComparison
from tpudeploy.features.accuracy.sheet import Sheet

ALPHA = 0.05  # the maximum probability of reporting a fall where there is none
POWER = 0.8  # the wanted probability of reporting a real fall
# Below this share, the model does not understand the form of the questions, or they are too hard for it. A published
# quality gate passed at 10 %, and a report of wrong answers followed.
LEAST_BASELINE = 0.5
# With a larger share of unanswered questions, the answered ones are no longer the same test.
MOST_UNANSWERED = 0.01
# The falls for which the power is reported, as shares.
FALLS = (0.02, 0.03)


def verdict(before: Sheet, after: Sheet) -> SheetComparison:
    """Compare two sheets. Raise `errors.UsageError` for sheets of different tests."""
    _same_test(before, after)
    counts = _counts(before, after)
    because = _why_unable(before, after)
    probability = p_value(counts)
    judgement = Judgement.FELL if probability <= ALPHA else Judgement.HELD
    return SheetComparison(
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


def p_value(counts: Paired) -> float:
    """Return the probability of at least this many losses if nothing became worse."""
    changed = counts.lost + counts.gained
    ways = tail = math.comb(changed, counts.lost)
    for losses in range(counts.lost, changed):
        ways = ways * (changed - losses) // (losses + 1)
        tail += ways
    return tail / (1 << changed)  # integers, which Python divides exactly at any length


def largest_fall(counts: Paired) -> float:
    """Return the upper 95 % bound of the fall, as a share of questions.

    It is Wald's interval of a paired difference with half a question added to each cell (Agresti and Min, 2005);
    without that, counts without any change would look like certainty.
    """
    losses, gains, n = counts.lost + 0.5, counts.gained + 0.5, counts.questions + 2
    spread = math.sqrt(losses + gains - (losses - gains) ** 2 / n) / n
    return (losses - gains) / n + _z(1 - ALPHA) * spread


def power(questions: int, *, changed: float, fall: float) -> float:
    """Return the probability that this number of questions shows a fall of this share, if the share `changed` changes.

    It is the normal approximation of the exact test. The difference of losses and gains moves in steps of two and has
    to pass the bound, which costs one on average. Compared with the exact sums, it is too low by less than 1 point
    where 10 % change, and by 5 points where hardly any do.
    """
    changed = max(changed, fall)
    spread = math.sqrt(questions * (changed - fall**2))
    beyond = questions * fall - 1 - _z(1 - ALPHA) * math.sqrt(questions * changed)
    return NormalDist().cdf(beyond / spread)


def questions_needed(*, changed: float, fall: float) -> int:
    """Return the smallest number of questions that shows such a fall with probability `POWER`."""
    few, many = 1, 2
    while power(many, changed=changed, fall=fall) < POWER:
        few, many = many, many * 2
    while many - few > 1:
        middle = (few + many) // 2
        few, many = (few, middle) if power(middle, changed=changed, fall=fall) >= POWER else (middle, many)
    return many


def _z(share: float) -> float:
    return NormalDist().inv_cdf(share)
