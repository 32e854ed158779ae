"""An A/B as text: what it is going to do, how each figure of B stands to A's, and which arm to keep."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import groupby

from tpudeploy.ab_test.arms import differing, is_risky, setting
from tpudeploy.ab_test.effect import MARGIN
from tpudeploy.ab_test.order import order
from tpudeploy.ab_test.proposal import Proposal
from tpudeploy.ab_test.result import Reason, Result
from tpudeploy.ab_test.starts import leaves_firsts_out
from tpudeploy.accuracy.verdict import Verdict as Quality
from tpudeploy.domain.comparison import Measure
from tpudeploy.domain.experiment import CacheUse, Effect, Experiment, Finding, InEffect, Repeat, Row, StartRow
from tpudeploy.domain.side import Side
from tpudeploy.views import words
from tpudeploy.views.accuracy import JUDGEMENTS
from tpudeploy.views.bench import EMULATED, number, seconds
from tpudeploy.views.paint import Paint

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
_UNSEEN = "Neither the logs nor the machines show enough starts to compare them."
_STARTS_NOTE = (
    "Start time: from the container's start until the server takes requests. Cold starts compile; warm ones have their "
    "programs from the compile cache."
)
_WITHOUT_FIRSTS = "The first start of each arm is not counted: it depends on what ran before."
_WITH_FIRSTS = "With so few repeats, the first start of each arm is counted too, which depends on what ran before."
_HOLM = "Of {count} figures some differ by chance: better and worse are said where they hold for all together (Holm)."


def proposal(of: Proposal, paint: Paint) -> str:
    """Before anything is touched."""
    return "\n".join(_proposed(of, paint))


def turn(of: Experiment, place: int, side: Side, paint: Paint) -> str:
    count = len(order(of.repeats))
    return paint.bold(f"{place + 1}/{count}  {side}  ") + words.plain(f"{of.path}={of.arm(side).value}")


def goes_on(of: Experiment, *, left: int) -> str:
    """After something went wrong."""
    count = len(order(of.repeats))
    return f"{count - left} of {count} repeats are kept: go on with tpudeploy compare {of.file} --resume {of.id}"


def result(of: Result, paint: Paint, *, kept: str, width: int | None) -> str:
    """All of it; `kept` is the file that the experiment stands in. Sentences are wrapped at `width`, None for never."""
    blocks = [
        "\n".join(_title(of, paint)),
        paint.yellow(EMULATED) if of.is_emulated else "",
        "\n".join(_table(of, paint)),
        "\n".join(_starts(of, paint, width)),
        "\n".join(paint.dim(line) for text in _notes(of) for line in words.wrapped(text, width, indent="   ")),
        "\n".join(line for text in _remarks(of) for line in words.wrapped(words.plain(text), width, indent="  ")),
        "" if of.quality is None else "\n".join(_quality(of, of.quality, paint, width)),
        "\n".join(_verdict(of, paint)),
        f"A/B {of.experiment.id}, kept in {kept}",
    ]
    return "\n\n".join(block for block in blocks if block)


def _proposed(of: Proposal, paint: Paint) -> Iterator[str]:
    experiment = of.experiment
    yield paint.bold(words.plain(f"A/B of {experiment.path} on {experiment.deployment}")) + f"  ({of.where})"
    yield ""
    for side in Side:
        note = f"  ({experiment.file} says so)" if side is experiment.written else ""
        yield words.plain(f"  {side}  {experiment.arm(side).value}{note}")
    cells, turns = len(experiment.sweep.points), len(of.turns)
    sides = " ".join(side for _, side in of.turns)
    yield ""
    yield (
        f"  {turns} repeat{'s' if turns > 1 else ''} ({sides}) of {cells} cell{'s' if cells > 1 else ''}, "
        f"{words.duration(experiment.sweep.window_seconds)} each at most"
    )
    silent = "nobody can say for how long" if of.least is None or of.most is None else words.span(of.least, of.most)
    each = " each" if of.restarts > 1 else ""
    yield f"  {_restarts(of.restarts)}: nothing serves for about {silent}{each}; the chips stay"
    if of.seconds is not None:
        cost = "" if of.usd is None else f", ${of.usd:.2f} of the slice"
        yield f"  at most about {words.duration(of.seconds)} in all{cost}"
    if experiment.by.is_of_start:
        yield "  the start time decides: this value changes how the server starts"
    if experiment.questions:
        many = "" if experiment.count is None else f" (the first {experiment.count})"
        yield words.plain(f"  each arm answers the questions of {experiment.questions}{many} once, on top of that")
    elif is_risky(experiment.path):
        yield paint.yellow(f"  quality is not asked for, and {experiment.path} may change it")
    yield f"  at the end {experiment.deployment} is what {experiment.file} says"


def _restarts(count: int) -> str:
    return f"{count} restart{'s' if count != 1 else ''}"


def _title(of: Result, paint: Paint) -> Iterator[str]:
    experiment = of.experiment
    yield paint.bold(words.plain(f"{experiment.path} on {experiment.deployment}")) + words.plain(
        f"  A = {experiment.a.value}, B = {experiment.b.value}"
    )
    sides = order(experiment.repeats)
    missing = f", {of.left} of them missing" if of.left else ""
    yield paint.dim(f"{len(sides)} repeats ({' '.join(sides)}), each of a start of its own{missing}")


def _table(of: Result, paint: Paint) -> Iterator[str]:
    if not of.rows:
        return
    yield paint.bold(_HEAD)
    for point, rows in groupby(of.rows, key=lambda row: row.point):
        yield (
            f"{point.concurrency:,} stream{'s' if point.concurrency > 1 else ''}, {point.context_tokens:,} tokens in, "
            f"{point.output_tokens:,} out"
        )
        yield from (_row(row, paint) for row in rows)


def _starts(of: Result, paint: Paint, width: int | None) -> Iterator[str]:
    """How each repeat's server came up, and what differs between the arms' starts."""
    if not any(each.start is not None for each in of.repeats):
        return
    yield paint.bold("Starts of the servers")
    for each in of.repeats:
        yield f"  {each.place + 1}  {each.side}  {_start(each)}"
    for row in of.starts:
        yield _start_row(row, paint)
    firsts = _WITHOUT_FIRSTS if leaves_firsts_out(of.repeats) else _WITH_FIRSTS
    for line in words.wrapped(f"{_STARTS_NOTE} {firsts}", width, indent="   "):
        yield paint.dim(line)


def _start(of: Repeat) -> str:
    start = of.start
    if start is None:
        return "not known: its log does not show it"
    compiled = "" if start.compile_seconds is None else f", {start.compile_seconds:.2f} s of it compiling"
    return f"{start.seconds:.0f} s{compiled}; {_cache_of(of)}"


def _cache_of(of: Repeat) -> str:
    """Whether a start hit the compile cache, and how that is known."""
    start = of.start
    if of.cache is not CacheUse.UNKNOWN and start is not None:
        return f"compile cache: {of.cache} ({start.programs_cached} of {start.programs} programs)"
    if of.is_warm is None:
        return "compile cache: not known, the log does not say"
    return f"compile cache: {'hit' if of.is_warm else 'miss'}, inferred from the compile time"


def _start_row(of: StartRow, paint: Paint) -> str:
    a, b = ("-" if value is None else seconds(value) for value in (of.a, of.b))
    name = f"  {_NAMES[of.measure].ljust(12)}{a:>9} {b:>9} "
    if of.effect is None or of.finding is None:
        return f"{name}  {paint.dim(f'{of.a_count} of A, {of.b_count} of B: too few to compare')}"
    interval = f"{_percent(of.effect.change):>8}  {_interval(of.effect):>19}"
    return f"{name}{interval}  {_coloured(of.finding, paint)}"


def _notes(of: Result) -> Iterator[str]:
    """How to read the table."""
    if of.rows:
        yield _HOLM.format(count=len(of.rows))
    if any(row.is_doubted for row in of.rows):
        apart = "" if of.is_doubted else ", and its cell takes no part in the verdict"
        yield f"?  a figure is not believed{apart}: `tpudeploy bench show RUN` says why"


def _row(row: Row, paint: Paint) -> str:
    of, mark = row.effect, "?" if row.is_doubted else " "
    return (
        f"  {_NAMES[row.measure].ljust(12)}{_shown(of.a, row.measure):>9} {_shown(of.b, row.measure):>9}{mark}"
        f"{_percent(of.change):>8}  {_interval(of):>19}  {_coloured(row.finding, paint)}"
    )


def _shown(value: float, measure: Measure) -> str:
    if measure.is_better_low:
        return seconds(value)
    return number(value) if value < _MILLION else f"{value / _MILLION:.4g}M"


def _percent(of: float) -> str:
    """What rounds to nothing has no sign."""
    return f"{of * 100:+.1f}%" if round(of * 100, 1) else "0.0%"


def _interval(of: Effect) -> str:
    return f"{_percent(of.low)} … {_percent(of.high)}"


def _coloured(of: Finding, paint: Paint) -> str:
    match of:
        case Finding.BETTER:
            return paint.green(of)
        case Finding.WORSE:
            return paint.red(of)
        case _:
            return paint.dim(of)


def _remarks(of: Result) -> Iterator[str]:
    """What is to be known beside the figures."""
    experiment = of.experiment
    if of.slices > 1:
        yield "The repeats ran on several slices: what differs may be the machine."
    if not experiment.questions and is_risky(experiment.path):
        yield f"Quality was not asked for, and {experiment.path} may change it: --accuracy QUESTIONS."
    if of.decided_by is not experiment.by and of.finding is not Finding.WORSE:
        yield "The starts cannot be compared: too few are known. The requests decide instead."
    if of.is_doubted:
        yield "No cell is believed in all repeats; for want of others, all count."
    a, b = experiment.a.told, experiment.b.told
    if of.reason is not Reason.NOT_IN_EFFECT and experiment.b.in_effect is InEffect.UNTOLD and not differing(a, b):
        yield (
            f"Nobody tells whether {experiment.path} is in effect: all that the engine says of itself is the same in "
            "both arms."
        )
    name = setting(experiment.path)
    if name in a and a[name] == b.get(name):
        yield f"To the engine both arms may be the same: it says {name} {a[name]} in both."
    yield from (f"{name}: {a[name]} -> {b[name]}" for name in differing(a, b))


def _quality(of: Result, found: Quality, paint: Paint, width: int | None) -> Iterator[str]:
    counts, experiment = found.counts, of.experiment
    yield paint.bold(words.plain(f"Quality, by {experiment.questions}"))
    changed = f"{counts.lost} lost, {counts.gained} gained of {counts.questions}"
    yield f"  A has {counts.before:.1%} right, B {counts.after:.1%}: {changed}"
    yield f"  {JUDGEMENTS[found.judgement]} A fall of up to {max(found.most, 0):.1%} cannot be excluded."
    said = (*([f"{found.because}."] if found.because else []), *found.remarks)
    yield from (line for text in said for line in words.wrapped(words.plain(f"  {text}"), width, indent="    "))


def _verdict(of: Result, paint: Paint) -> Iterator[str]:
    experiment = of.experiment
    yield from _found(of, paint)
    if of.left and not of.is_refused:
        yield f"{of.left} repeats are missing: tpudeploy compare {experiment.file} --resume {experiment.id}"
    if of.keep is not None:
        yield paint.bold(words.plain(f"Keep {of.keep}{_line(experiment, of.keep)}"))
    elif of.reason is not Reason.TOO_FEW:
        yield paint.bold(words.plain(f"Keep {experiment.file} as it is: it sets neither value."))


def _found(of: Result, paint: Paint) -> Iterator[str]:
    overall, name = of.overall, _NAMES[of.decided_by]
    several = _over_cells(of)
    figure = "" if overall is None else f"{name}{several} {_percent(overall.change)} ({_interval(overall)})"
    match of.reason:
        case Reason.NOT_IN_EFFECT:
            yield from _not_in_effect(of.experiment, paint)
        case Reason.TOO_FEW:
            is_unseen = of.experiment.by.is_of_start and any(each.start is None for each in of.repeats)
            yield _UNSEEN if is_unseen else _TOO_FEW
        case Reason.FELL:
            yield paint.red("Quality fell with B: no figure makes up for that.")
        case Reason.CANNOT_TELL:
            yield paint.yellow("Whether quality fell cannot be told") + f": {figure}"
        case Reason.BETTER:
            yield paint.green(f"B is better: {figure}")
            worse = [f"{_NAMES[row.measure]} at {row.point.concurrency:,} streams" for row in of.worse]
            if worse:
                yield paint.yellow(f"but worse: {', '.join(worse)}")
        case Reason.WORSE:
            yield paint.red(f"B is worse: {figure}")
        case Reason.SAME:
            yield f"The same within {MARGIN:.0%}: {figure}"
        case Reason.NO_DIFFERENCE:
            smallest = "" if overall is None else f"; one of {overall.smallest:.1%} would be found 4 times in 5"
            yield f"No difference: {figure}{smallest}"


def _over_cells(of: Result) -> str:
    return "" if len(of.experiment.sweep.points) == 1 or of.decided_by.is_of_start else " over all cells"


def _not_in_effect(of: Experiment, paint: Paint) -> Iterator[str]:
    for side in Side:
        arm = of.arm(side)
        if arm.in_effect is InEffect.NO:
            yield paint.red(
                words.plain(f"{of.path}={arm.value} is not in effect: the engine of arm {side} does otherwise.")
            )
    yield "There is nothing to compare; `tpudeploy verify` shows what the engine does."


def _line(of: Experiment, side: Side) -> str:
    """Where it is written, or the line to write."""
    at = of.file if of.line is None else f"{of.file}:{of.line}"
    if side is of.written:
        return f": {at} says so."
    above, _, last = of.path.rpartition(".")
    where = f"in {of.file}, under {above}" if of.line is None and above else f"at {at}"
    if of.arm(side).value in {"null", "~", ""}:
        return f": take {last} out {where}." if of.line is not None else f": leave {of.path} out."
    return f": write {where}\n  {last}: {of.arm(side).value}"
