"""Format an A/B: its proposal, the ratio of each figure of B to that of A, and which arm to keep."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tpudeploy.features.ab_test.arms import differing, is_risky, setting
from tpudeploy.features.ab_test.effect import MARGIN
from tpudeploy.features.ab_test.experiment import AbFinding, CacheUse, Experiment, InEffect, MeasuredEffect, Repeat
from tpudeploy.features.ab_test.result import ExperimentResult, KeepReason
from tpudeploy.features.ab_test.starts import leaves_firsts_out
from tpudeploy.features.ab_test.turns import ExperimentPlan, order
from tpudeploy.features.accuracy.judgement import SheetComparison as Quality
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.run import Side
from tpudeploy.text import words
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import EMULATED, count, latency, number

_NAMES = {
    Measure.REQUESTS: "requests/s",
    Measure.OUTPUT: "output tok/s",
    Measure.INPUT: "prompt tok/s",
    Measure.TTFT: "TTFT p50",
    Measure.TTFT_P99: "TTFT p99",
    Measure.TPOT: "TPOT p50",
    Measure.TOKENS_PER_USD: "tokens/USD",
    Measure.START: "start time",
    Measure.START_COLD: "cold start",
    Measure.START_WARM: "warm start",
}
_HEAD = "                       A         B       B/A       95 % interval"
_MILLION = 1e6
_TOO_FEW = "Too few repeats to tell a difference from noise."
_NO_STARTS = "Neither the logs nor the machines show enough starts to compare them."
_STARTS_NOTE = (
    "Start time: from the container's start until the server takes requests. Cold starts compile; warm ones have their "
    "programs from the compile cache."
)
_WITHOUT_FIRSTS = "The first start of each arm is not counted: it depends on what ran before."
_WITH_FIRSTS = "With so few repeats, the first start of each arm is counted too, which depends on what ran before."
_HOLM = "Some of {count} figures differ by chance: better and worse are marked where they hold for all together (Holm)."


def proposal(proposal: ExperimentPlan, paint: Paint) -> str:
    return "\n".join(_proposal_lines(proposal, paint))


def turn(experiment: Experiment, place: int, side: Side, paint: Paint) -> str:
    heading = paint.bold(f"{place + 1}/{len(order(experiment.repeats))}  {side}  ")
    return heading + words.plain(f"{experiment.path}={experiment.arm(side).value}")


def how_to_continue(experiment: Experiment, *, missing: int) -> str:
    """Return the line to print after an error."""
    count = len(order(experiment.repeats))
    command = f"tpudeploy compare {experiment.file} --resume {experiment.id}"
    return f"{count - missing} of {count} repeats are kept. Continue with {command}"


def result(result: ExperimentResult, paint: Paint, *, path: str, width: int | None) -> str:
    """Return the whole result. `path` is the experiment's file; sentences are wrapped at `width` (None: never)."""
    notes = (paint.dim(line) for text in _notes(result) for line in words.wrapped(text, width, indent="   "))
    remarks = (line for text in _remarks(result) for line in words.wrapped(words.plain(text), width, indent="  "))
    blocks = [
        "\n".join(_title(result, paint)),
        paint.yellow(EMULATED) if result.is_emulated else "",
        "\n".join(_table(result, paint)),
        "\n".join(_starts(result, paint, width)),
        "\n".join(notes),
        "\n".join(remarks),
        "" if result.quality is None else "\n".join(_quality(result.experiment, result.quality, paint, width)),
        "\n".join(_verdict(result, paint)),
        f"A/B {result.experiment.id}, kept in {path}",
    ]
    return "\n\n".join(block for block in blocks if block)


def _proposal_lines(proposal: ExperimentPlan, paint: Paint) -> Iterator[str]:
    experiment = proposal.experiment
    title = words.plain(f"A/B of {experiment.path} on {experiment.deployment}")
    yield f"{paint.bold(title)}  ({proposal.where})"
    yield ""
    for side in Side:
        note = f"  ({experiment.file} has this value)" if side is experiment.written else ""
        yield words.plain(f"  {side}  {experiment.arm(side).value}{note}")
    yield ""
    yield from _effort(proposal)
    if experiment.by.is_of_start:
        yield "  the start time decides: this value changes how the server starts"
    if experiment.questions:
        count = "" if experiment.count is None else f" (the first {experiment.count})"
        yield words.plain(f"  each arm also answers the questions of {experiment.questions}{count} once")
    elif is_risky(experiment.path):
        yield paint.yellow(f"  quality is not measured, and {experiment.path} may change it")
    yield f"  at the end {experiment.deployment} matches {experiment.file} again"


def _effort(proposal: ExperimentPlan) -> Iterator[str]:
    """Yield what the A/B takes: repeats, restarts, time and money."""
    sweep = proposal.experiment.sweep
    repeats, cells = words.plural(len(proposal.turns), "repeat"), words.plural(len(sweep.points), "cell")
    sides = " ".join(side for _, side in proposal.turns)
    yield f"  {repeats} ({sides}) of {cells}, {words.duration(sweep.window_seconds)} each at most"
    downtime = "an unpredictable time"
    if proposal.least is not None and proposal.most is not None:
        downtime = f"about {words.span(proposal.least, proposal.most)}"
    each = " each" if proposal.restarts > 1 else ""
    restarts = words.plural(proposal.restarts, "restart")
    if proposal.replicas > 1:
        turns = f"{restarts} of each of {proposal.replicas} replicas, {proposal.at_once} at a time"
        yield f"  {turns}: the others serve while it does not for {downtime}{each}; the chips stay"
    else:
        yield f"  {restarts}: nothing serves for {downtime}{each}; the chips stay"
    if proposal.seconds is not None:
        slices = "the slice" if proposal.replicas == 1 else "the slices"
        cost = "" if proposal.usd is None else f", ${proposal.usd:.2f} of {slices}"
        yield f"  at most about {words.duration(proposal.seconds)} in all{cost}"


def _title(result: ExperimentResult, paint: Paint) -> Iterator[str]:
    experiment = result.experiment
    values = words.plain(f"  A = {experiment.a.value}, B = {experiment.b.value}")
    yield paint.bold(words.plain(f"{experiment.path} on {experiment.deployment}")) + values
    sides = order(experiment.repeats)
    missing = f", {result.left} of them missing" if result.left else ""
    yield paint.dim(f"{len(sides)} repeats ({' '.join(sides)}), each with its own start{missing}")


def _table(result: ExperimentResult, paint: Paint) -> Iterator[str]:
    if not result.rows:
        return
    yield paint.bold(_HEAD)
    for point, rows in groupby(result.rows, key=lambda row: row.point):
        streams, context, output = point.sizes
        yield f"{words.plural(streams, 'stream')}, {context:,} tokens in, {output:,} out"
        for row in rows:
            mark = "?" if row.is_doubted else " "
            a, b = _value(row.effect.a, row.measure), _value(row.effect.b, row.measure)
            yield f"  {_NAMES[row.measure].ljust(12)}{a:>9} {b:>9}{mark}{_change(row.effect, row.finding, paint)}"


def _starts(result: ExperimentResult, paint: Paint, width: int | None) -> Iterator[str]:
    """Yield how each repeat's server started, and the differences between the arms' starts."""
    if not any(repeat.start is not None for repeat in result.repeats):
        return
    yield paint.bold("Starts of the servers")
    for repeat in result.repeats:
        yield f"  {repeat.place + 1}  {repeat.side}  {_start(repeat)}"
    for row in result.starts:
        a, b = ("-" if value is None else latency(value) for value in (row.a, row.b))
        change = f"  {paint.dim(f'{row.a_count} of A, {row.b_count} of B: too few to compare')}"
        if row.effect is not None and row.finding is not None:
            change = _change(row.effect, row.finding, paint)
        yield f"  {_NAMES[row.measure].ljust(12)}{a:>9} {b:>9} {change}"
    firsts = _WITHOUT_FIRSTS if leaves_firsts_out(result.repeats) else _WITH_FIRSTS
    for line in words.wrapped(f"{_STARTS_NOTE} {firsts}", width, indent="   "):
        yield paint.dim(line)


def _start(repeat: Repeat) -> str:
    start = repeat.start
    if start is None:
        return "unknown: its log does not show it"
    compiled = "" if start.compile_seconds is None else f", {start.compile_seconds:.2f} s of it compiling"
    cache = "unknown, the log does not show it"
    if repeat.cache is not CacheUse.UNKNOWN:
        cache = f"{repeat.cache} ({start.programs_cached} of {start.programs} programs)"
    elif repeat.is_warm is not None:
        cache = f"{'hit' if repeat.is_warm else 'miss'}, inferred from the compile time"
    return f"{start.seconds:.0f} s{compiled}; compile cache: {cache}"


def _notes(result: ExperimentResult) -> Iterator[str]:
    """Yield how to read the table."""
    if result.rows:
        yield _HOLM.format(count=len(result.rows))
    if any(row.is_doubted for row in result.rows):
        excluded = "" if result.is_doubted else ", and its cell does not count in the verdict"
        yield f"?  a figure is not trusted{excluded}: `tpudeploy bench show RUN` says why"


def _value(value: float, measure: Measure) -> str:
    if measure.is_better_low:
        return latency(value)
    return number(value) if value < _MILLION else f"{value / _MILLION:.4g}M"


def _change(effect: MeasuredEffect, finding: AbFinding, paint: Paint) -> str:
    text = paint.styled({AbFinding.BETTER: "green", AbFinding.WORSE: "red"}.get(finding, "dim"), finding)
    return f"{_percent(effect.change):>8}  {_interval(effect):>19}  {text}"


def _percent(change: float) -> str:
    """Return a change in percent, without a sign if it rounds to nothing."""
    return f"{change * 100:+.1f}%" if round(change * 100, 1) else "0.0%"


def _interval(effect: MeasuredEffect) -> str:
    return f"{_percent(effect.low)} … {_percent(effect.high)}"


def _remarks(result: ExperimentResult) -> Iterator[str]:
    """Yield what to consider beside the figures."""
    experiment = result.experiment
    if result.slices > 1:
        yield "The repeats ran on several slices, so a difference may come from the machine."
    if not experiment.questions and is_risky(experiment.path):
        yield f"Quality was not measured, and {experiment.path} may change it: --accuracy QUESTIONS."
    if result.decided_by is not experiment.by and result.finding is not AbFinding.WORSE:
        yield "The starts cannot be compared: too few are known. The requests decide instead."
    if result.is_doubted:
        yield "No cell is trusted in all repeats, so all cells count."
    a, b = experiment.a.told, experiment.b.told
    differences = differing(a, b)
    is_untold = result.reason is not KeepReason.NOT_IN_EFFECT and experiment.b.in_effect is InEffect.UNTOLD
    if is_untold and not differences:
        yield (
            f"No source shows whether {experiment.path} is in effect: the engine reports the same settings in both "
            "arms."
        )
    name = setting(experiment.path)
    if name in a and a[name] == b.get(name):
        yield f"To the engine both arms may be the same: it reports {name} {a[name]} in both."
    yield from (f"{name}: {a[name]} -> {b[name]}" for name in differences)


def _quality(experiment: Experiment, quality: Quality, paint: Paint, width: int | None) -> Iterator[str]:
    counts = quality.counts
    yield paint.bold(words.plain(f"Quality, by {experiment.questions}"))
    changed = f"{counts.lost} lost, {counts.gained} gained of {counts.questions}"
    yield f"  A has {counts.before:.1%} right, B {counts.after:.1%}: {changed}"
    yield f"  {quality.judgement.sentence} A fall of up to {max(quality.most, 0):.1%} cannot be excluded."
    because = (f"{quality.because}.",) if quality.because else ()
    for text in (*because, *quality.remarks):
        yield from words.wrapped(words.plain(f"  {text}"), width, indent="    ")


def _verdict(result: ExperimentResult, paint: Paint) -> Iterator[str]:
    experiment = result.experiment
    yield from _finding(result, paint)
    if result.is_doubted and not result.decided_by.is_of_start and result.overall is not None:
        yield paint.yellow("No cell is trusted in all repeats: the verdict rests on doubted figures.")
    if result.left and not result.is_refused:
        yield f"{result.left} repeats are missing: tpudeploy compare {experiment.file} --resume {experiment.id}"
    if result.keep is not None:
        yield paint.bold(words.plain(f"Keep {result.keep}{_where_to_write(experiment, result.keep)}"))
    elif result.reason is not KeepReason.TOO_FEW:
        yield paint.bold(words.plain(f"Keep {experiment.file} as it is: it sets neither value."))


def _finding(result: ExperimentResult, paint: Paint) -> Iterator[str]:
    experiment, overall = result.experiment, result.overall
    figure = _deciding_figure(result)
    match result.reason:
        case KeepReason.NOT_IN_EFFECT:
            yield from _not_in_effect(experiment, paint)
        case KeepReason.TOO_FEW:
            lacks_starts = experiment.by.is_of_start and any(repeat.start is None for repeat in result.repeats)
            yield _NO_STARTS if lacks_starts else _TOO_FEW
        case KeepReason.FELL:
            yield paint.red("Quality fell with B, and no figure outweighs that.")
        case KeepReason.CANNOT_TELL:
            yield paint.yellow("It is not known whether quality fell") + f": {figure}"
        case KeepReason.BETTER:
            yield paint.green(f"B is better: {figure}")
            if result.worse:
                worse = (f"{_NAMES[row.measure]} at {count(row.point.concurrency)} streams" for row in result.worse)
                yield paint.yellow(f"but worse: {', '.join(worse)}")
        case KeepReason.WORSE:
            yield paint.red(f"B is worse: {figure}")
        case KeepReason.SAME:
            yield f"The same within {MARGIN:.0%}: {figure}"
        case KeepReason.NO_DIFFERENCE:
            smallest = "" if overall is None else f"; one of {overall.smallest:.1%} would be detected 4 times in 5"
            yield f"No difference: {figure}{smallest}"


def _deciding_figure(result: ExperimentResult) -> str:
    """Return the figure that decides, with its interval."""
    if result.overall is None:
        return ""
    is_one_figure = len(result.experiment.sweep.points) == 1 or result.decided_by.is_of_start
    cells = "" if is_one_figure else " over all cells"
    change = f"{_percent(result.overall.change)} ({_interval(result.overall)})"
    return f"{_NAMES[result.decided_by]}{cells} {change}"


def _not_in_effect(experiment: Experiment, paint: Paint) -> Iterator[str]:
    for side in Side:
        arm = experiment.arm(side)
        if arm.in_effect is InEffect.NO:
            text = f"{experiment.path}={arm.value} is not in effect: the engine of arm {side} does otherwise."
            yield paint.red(words.plain(text))
    yield "There is nothing to compare; `tpudeploy verify` shows what the engine does."


def _where_to_write(experiment: Experiment, side: Side) -> str:
    """Return where the profile has the value of an arm, or how to write it there."""
    at = experiment.file if experiment.line is None else f"{experiment.file}:{experiment.line}"
    if side is experiment.written:
        return f": {at} has this value."
    above, _, last = experiment.path.rpartition(".")
    where = f"in {experiment.file}, under {above}" if experiment.line is None and above else f"at {at}"
    value = experiment.arm(side).value
    if value not in {"null", "~", ""}:
        return f": write {where}\n  {last}: {value}"
    return f": omit {experiment.path}." if experiment.line is None else f": remove {last} {where}."
