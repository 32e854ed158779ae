"""The starts of an A/B: which of them were warm, and the difference between those of the arms.

A flag that only changes what is compiled, or where compiled programs are kept, shows in the starts and nowhere else.
Each arm's first start is not counted: whether its programs were in the cache by then depends on what ran before the
A/B. Every later restart costs what the others cost.
"""

from __future__ import annotations

from collections.abc import Sequence

from tpudeploy.domain.starts import MeasuredStart
from tpudeploy.features.ab_test.effect import RepeatFigure, effect, finding, geometric_mean, holm
from tpudeploy.features.ab_test.experiment import AbFinding, CacheUse, MeasuredEffect, Repeat, StartRow
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.run import Run, Side

# With this many starts, each arm's first can be left out: three figures are fitted to the rest, and scatter remains.
_ENOUGH = 7
# A share of the longest compilation of the same arm: a shorter one had most of its programs already.
_MOST_OF_IT = 0.5
_RESOLUTION = 1.01  # seconds: logs and reports of a start have whole ones, and their means are not exact
# Paths whose values change what is compiled before a server takes requests, or where that is kept, and nothing that
# it does afterwards but the padding of its batches (tpu_inference 0.32.0, envs.py, runner/compilation_manager.py).
# SKIP_JAX_PRECOMPILE is not one of them. It moves the compilation from the start into the first request of each shape,
# so the start time alone would always prefer it, at the cost of the requests.
STARTS_ONLY = (
    "serving.padding_gap",
    "serving.xla_cache_path",
    "serving.xla_cache_bucket",
    "serving.env.VLLM_XLA_CACHE_PATH",
    "serving.env.VLLM_TPU_BUCKET_PADDING_GAP",
    "serving.env.MIN_TOKEN_BUCKET",
    "serving.env.ATTN_BUCKETIZED_NUM_REQS",
    "serving.env.ATTN_CUSTOM_NUM_REQS_BUCKETS",
    "serving.env.NUM_PRECOMPILE_WORKERS",
)
_MEASURES = (Measure.START, Measure.START_COLD, Measure.START_WARM)


def deciding_measure(path: str) -> Measure:
    """Return the default measure that decides an A/B of this path."""
    return Measure.START if path in STARTS_ONLY else Measure.REQUESTS


def repeats_of(runs: Sequence[Run]) -> tuple[Repeat, ...]:
    """Return each complete run of an A/B with its start, in their order."""
    return tuple(_repeat(run, runs) for run in runs if run.turn is not None)


def start_rows(repeats: Sequence[Repeat]) -> tuple[StartRow, ...]:
    """Return every measure of starts that has a figure. Several effects are adjusted together (Holm)."""
    rows = {measure: counted(repeats, measure) for measure in _MEASURES}
    effects = {measure: effect(observed) for measure, observed in rows.items()}
    chances = holm({measure: each.chance for measure, each in effects.items() if each is not None})
    return tuple(
        _start_row(measure, observed, effects[measure], chances.get(measure))
        for measure, observed in rows.items()
        if observed
    )


def _start_row(
    measure: Measure, observed: Sequence[RepeatFigure], effect: MeasuredEffect | None, by_chance: float | None
) -> StartRow:
    return StartRow(
        measure=measure,
        a=geometric_mean(observed, Side.A),
        b=geometric_mean(observed, Side.B),
        a_count=sum(each.side is Side.A for each in observed),
        b_count=sum(each.side is Side.B for each in observed),
        effect=effect,
        finding=None if effect is None else finding_of_starts(effect, by_chance=by_chance),
    )


def leaves_firsts_out(repeats: Sequence[Repeat]) -> bool:
    """Return whether each arm's first start is left out. Of fewer starts, all count, and their interval is wide."""
    return len(repeats) >= _ENOUGH


def finding_of_starts(effect: MeasuredEffect, *, by_chance: float | None = None) -> AbFinding:
    """Return what the interval shows about starts. A difference below the clocks' resolution does not count.

    Starts that all take the same number of whole seconds seem not to scatter at all.
    """
    if abs(effect.a - effect.b) <= _RESOLUTION and finding(effect) is not AbFinding.SAME:
        return AbFinding.NONE
    return finding(effect, is_better_low=True, by_chance=by_chance)


def counted(repeats: Sequence[Repeat], measure: Measure) -> list[RepeatFigure]:
    """Return the starts that a measure counts: for `START`, all but each arm's first where there are enough."""
    firsts = {side: next((each.place for each in repeats if each.side is side), None) for side in Side}
    if not leaves_firsts_out(repeats):
        firsts = dict.fromkeys(Side)
    return [
        RepeatFigure(side=each.side, place=each.place, value=each.start.seconds)
        for each in repeats
        if each.start is not None and each.start.seconds > 0 and _counts(each, measure, firsts[each.side])
    ]


def _counts(repeat: Repeat, measure: Measure, first: int | None) -> bool:
    match measure:
        case Measure.START_COLD:
            return repeat.is_warm is False
        case Measure.START_WARM:
            return repeat.is_warm is True
        case _:
            return repeat.place != first


def _repeat(run: Run, runs: Sequence[Run]) -> Repeat:
    assert run.turn is not None
    use = _cache_use(run.start)
    is_logged = use is not CacheUse.UNKNOWN
    is_warm = use is not CacheUse.MISS if is_logged else _is_warm_by_compile_time(run, runs)
    return Repeat(
        run=run.id,
        place=run.turn.place,
        side=run.turn.side,
        start=run.start,
        cache=use,
        is_warm=is_warm,
        is_inferred=not is_logged and is_warm is not None,
    )


def _cache_use(start: MeasuredStart | None) -> CacheUse:
    if start is None or start.programs is None or start.programs_cached is None or start.programs == 0:
        return CacheUse.UNKNOWN
    if start.programs_cached == 0:
        return CacheUse.MISS
    return CacheUse.HIT if start.programs_cached == start.programs else CacheUse.PARTLY


def _is_warm_by_compile_time(run: Run, runs: Sequence[Run]) -> bool | None:
    """Return None where no start of this arm compiled clearly longer, or shorter, than this one."""
    times = []
    for other in runs:
        is_of_arm = other.turn is not None and run.turn is not None and other.turn.side is run.turn.side
        if is_of_arm and other.start is not None and other.start.compile_seconds is not None:
            times.append(other.start.compile_seconds)
    own = None if run.start is None else run.start.compile_seconds
    if own is None or not times or min(times) >= _MOST_OF_IT * max(times):
        return None
    return own < _MOST_OF_IT * max(times)
