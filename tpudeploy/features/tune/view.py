"""What people read of a tuning: what it will do, its result, and the result as Markdown for a pull request."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.features.ab_test.effect import MARGIN, finding
from tpudeploy.features.ab_test.experiment import AbFinding, MeasuredEffect
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.tune.search import ClaimFinding, Settings, StopReason, TuneStep
from tpudeploy.features.tune.tuning import Tuning
from tpudeploy.text import words
from tpudeploy.text.paint import Paint

_OBJECTIVES = {
    Measure.TOKENS_PER_USD: "tokens per dollar",
    Measure.OUTPUT: "output tokens per second",
    Measure.TTFT: "time to first token",
    Measure.TPOT: "time per output token",
}
_HOUR = 3600.0


def text_of(settings: Settings) -> str:
    return ", ".join(f"{path}={value}" for path, value in settings) or "the profile as written"


def proposal(tuning: Tuning, paint: Paint) -> str:
    """Return what a tuning will do."""
    lines = [
        f"{paint.bold(words.plain(f'Tune {tuning.deployment}'))}  ({tuning.where})",
        "",
        f"  {load_text(tuning)}",
        "",
    ]
    for axis in tuning.axes:
        values = " | ".join(text_of(choice) for choice in axis.choices[1:])
        lines.append(words.plain(f"  {axis.name}: as written | {values}"))
    lines += [words.plain(f"  not measured: {each.name} ({each.why})") for each in tuning.dropped]
    lines += ["", *(f"  {line}" for line in _effort(tuning))]
    return "\n".join(lines)


def step(tuning: Tuning, step_: TuneStep, paint: Paint) -> str:
    heading = paint.bold(f"{len(tuning.trials) + 1}  {step_.stage.partition(' serving')[0]}  ")
    return heading + words.plain(text_of(step_.settings))


def result(tuning: Tuning, paint: Paint, *, path: str, width: int | None) -> str:
    """Return the result: the claim, the evidence for each setting, and what it cost."""
    blocks = [paint.bold(words.plain(f"{tuning.deployment} on {tuning.where}")), load_text(tuning)]
    if tuning.is_emulated:
        blocks.append(paint.yellow(words.EMULATED))
    blocks.append("\n".join(words.wrapped(claim_text(tuning), width, indent="  ")))
    blocks.append("\n".join(_evidence(tuning)))
    blocks.append("\n".join(_rest(tuning)))
    blocks.append(f"Tuning {tuning.id}, kept in {path}")
    return "\n\n".join(block for block in blocks if block)


def markdown(tuning: Tuning, overlay: str) -> str:
    """Return the body of a pull request."""
    lines = [f"## {tuning.deployment}: tuned settings", "", load_text(tuning)]
    if tuning.is_emulated:
        lines += ["", f"**{words.EMULATED}**"]
    lines += ["", claim_text(tuning), "", "```yaml", overlay.rstrip(), "```", ""]
    rows = tuple(_evidence_rows(tuning))
    if rows:
        lines += ["| setting | estimate in the race | pairs |", "|---|---|---|"]
        lines += [f"| `{setting}` | {change} | {pairs} |" for setting, change, pairs in rows]
        lines += ["", "Estimates choose the settings. Only the comparison of all of them with the profile is a claim."]
    return "\n".join([*lines, "", *_rest(tuning)]) + "\n"


def load_text(tuning: Tuning) -> str:
    """Return the objective, the load and the limits."""
    points = tuning.sweep.points
    streams = ", ".join(dict.fromkeys(str(point.concurrency) for point in points))
    context = ", ".join(dict.fromkeys(f"{point.context_tokens:,}" for point in points))
    output = ", ".join(dict.fromkeys(f"{point.output_tokens:,}" for point in points))
    limits = []
    if tuning.limits.ttft_p99_seconds is not None:
        limits.append(f"p99 time to first token at most {tuning.limits.ttft_p99_seconds:g} s")
    if tuning.limits.tpot_seconds is not None:
        limits.append(f"time per output token at most {tuning.limits.tpot_seconds:g} s")
    load = f"{_OBJECTIVES[tuning.by]} at {streams} streams, {context} tokens in, {output} out"
    return "; ".join((load, *limits))


def claim_text(tuning: Tuning) -> str:
    """Return the claim in a sentence, with its interval."""
    verdict = tuning.verdict
    if verdict is None:
        return "The tuning is not finished. The same command continues it."
    figure = "" if verdict.effect is None else _interval(verdict.effect, is_inverse=tuning.by.is_better_low)
    name = _OBJECTIVES[tuning.by]
    if verdict.finding is ClaimFinding.NONE and verdict.stop is StopReason.MONEY:
        return "No settings measured so far are better than the profile as written; the money ended before the rest."
    if verdict.effect is not None and finding(verdict.effect) is AbFinding.SAME:
        return f"The same within {MARGIN:.0%}: {name} {figure}. Keep the profile as written."
    sentences = {
        ClaimFinding.BETTER: f"Better: {name} {figure}, measured in turns with the profile as written.",
        ClaimFinding.MEETS: "These settings keep the limits, and the profile as written does not.",
        ClaimFinding.NONE: "No settings in this space are better than the profile as written.",
        ClaimFinding.UNPROVEN: f"Not proven: {name} {figure or 'was outside the limits when it was measured again'}. "
        "Keep the profile as written.",
        ClaimFinding.UNTESTED: "Not confirmed: the race prefers other settings, and there was too little money to "
        "compare them with the profile. Run the same command with a higher --max-cost.",
    }
    return sentences[verdict.finding]


def _interval(effect: MeasuredEffect, *, is_inverse: bool) -> str:
    """Return a change with its 95 % interval. A latency is searched as its inverse, and shown as itself."""
    change, low, high = effect.change, effect.low, effect.high
    if is_inverse:
        change, low, high = (1 / (1 + value) - 1 for value in (change, high, low))
    return f"{change:+.1%} (95 % interval {low:+.1%} … {high:+.1%}, {effect.repeats} measurements)"


def _evidence(tuning: Tuning) -> Iterator[str]:
    rows = tuple(_evidence_rows(tuning))
    if rows:
        yield "What the race estimates of each setting (an estimate, not a claim):"
    for setting, change, pairs in rows:
        yield words.plain(f"  {setting}  {change}, {pairs}")


def _evidence_rows(tuning: Tuning) -> Iterator[tuple[str, str, str]]:
    for each in () if tuning.verdict is None else tuning.verdict.evidence:
        change = "within the limits" if each.change is None else f"{each.change:+.1%}"
        yield text_of(each.choice), change, words.plural(each.pairs, "pair")


def _rest(tuning: Tuning) -> Iterator[str]:
    """Yield how much was measured, what it cost, why it ended, and what to consider."""
    runs = sum(1 for trial in tuning.trials if trial.run)
    usd = tuning.seconds * (tuning.usd_per_hour or 0.0) / _HOUR
    cost = "" if tuning.usd_per_hour is None else f", ${usd:.2f} of the slice at list price"
    yield f"{words.plural(runs, 'measurement')} in {words.duration(tuning.seconds)}{cost}."
    if tuning.verdict is not None:
        yield f"It ended because {tuning.verdict.stop}."
    refusals = dict.fromkeys((text_of(trial.settings), trial.why) for trial in tuning.trials if trial.why)
    yield from (words.plain(f"Not usable: {settings} ({why}).") for settings, why in refusals)
    yield from (words.plain(f"Not measured: {each.name} ({each.why}).") for each in tuning.dropped)
    if tuning.quality_losses:
        yield f"Left out because quality fell: {text_of(tuning.quality_losses)}."
    elif tuning.sheets:
        yield f"Quality, by {tuning.questions}: no regression was detected."
    if any("speculative_config" in path for axis in tuning.axes for path in axis.paths):
        yield "Speculation is measured with random prompts; text that repeats itself gains more from it."


def _effort(tuning: Tuning) -> Iterator[str]:
    alternatives = sum(len(axis.choices) - 1 for axis in tuning.axes)
    values, keys = words.plural(alternatives, "alternative value"), words.plural(len(tuning.axes), "key")
    yield f"{values} of {keys}, raced in place"
    if tuning.trials:
        yield f"{words.plural(len(tuning.trials), 'measurement')} of an earlier run count"
    if tuning.usd_per_hour is not None:
        warm, cold = tuning.budget.warm, tuning.budget.cold
        yield f"about ${warm:.2f} for a measurement, ${cold:.2f} where programs are compiled"
    if tuning.budget.limit is None:
        yield "no limit of money: it ends when no other settings can win"
    else:
        yield f"it stops before ${tuning.budget.limit:.2f} is spent"
    if tuning.was_there:
        yield f"the server restarts for each measurement; at the end {tuning.deployment} is as its profile says"
    else:
        yield f"{tuning.deployment} does not serve: a slice is requested for the tuning, and deleted at the end"
