"""The starts of an A/B: which were warm, and what differs between those of the arms.

A flag that only changes what is compiled, or where compiled programs are kept, shows in the starts and nowhere else.
Each arm's first start is not counted: whether its programs were in the cache by then depends on what ran before the
A/B. What comes after it is what every later restart costs.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from math import exp, log

from tpudeploy.ab_test.effect import Seen, effect, finding, holm
from tpudeploy.domain.benchmark import Run, Start
from tpudeploy.domain.comparison import Measure
from tpudeploy.domain.experiment import CacheUse, Effect, Finding, Repeat, StartRow
from tpudeploy.domain.side import Side

# Starts of which each arm's first can be left out: three figures are fitted to the rest, and their scatter is left.
_ENOUGH = 7
# Of the longest compilation of the same arm: what takes less had most of its programs already.
_MOST_OF_IT = 0.5
_RESOLUTION = 1.01  # seconds: logs and reports of a start have whole ones, and means of them are not exact
# Paths whose values change what is compiled before a server takes requests, or where that is kept, and nothing that
# it does afterwards but the padding of its batches (tpu_inference 0.32.0, envs.py, runner/compilation_manager.py).
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
# SKIP_JAX_PRECOMPILE is not one of them. It moves the compilation from the start into the first request of each shape,
# so the start time alone would always prefer it, at the cost of the requests.


def deciding_measure(path: str) -> Measure:
    """Return the measure that decides an A/B of this path, unless somebody names another."""
    return Measure.START if path in STARTS_ONLY else Measure.REQUESTS


def repeats_of(runs: Sequence[Run]) -> tuple[Repeat, ...]:
    """Return each whole run of an A/B with its start, in their order."""
    return tuple(_repeat(run, runs) for run in runs if run.turn is not None)


def start_rows(repeats: Sequence[Repeat]) -> tuple[StartRow, ...]:
    """Return every measure of starts that has a figure. Of several effects, each holds for all together (Holm)."""
    rows = {measure: counted(repeats, measure) for measure in (Measure.START, Measure.START_COLD, Measure.START_WARM)}
    effects = {measure: found for measure, seen in rows.items() if (found := effect(seen)) is not None}
    chances = holm({measure: found.chance for measure, found in effects.items()})
    return tuple(
        StartRow(
            measure=measure,
            a=_mean(seen, Side.A),
            b=_mean(seen, Side.B),
            a_count=sum(each.side is Side.A for each in seen),
            b_count=sum(each.side is Side.B for each in seen),
            effect=effects.get(measure),
            finding=None if measure not in effects else finding_of(effects[measure], by_chance=chances[measure]),
        )
        for measure, seen in rows.items()
        if seen
    )


def leaves_firsts_out(repeats: Sequence[Repeat]) -> bool:
    """Whether each arm's first start is not counted; of fewer, all are, and their scatter makes the interval wide."""
    return len(repeats) >= _ENOUGH


def finding_of(of: Effect, *, by_chance: float | None = None) -> Finding:
    """Return what the interval says of starts, as `effect.finding` does; less than the clocks resolve is nothing.

    Starts that all last the same number of whole seconds seem not to scatter at all.
    """
    if abs(of.a - of.b) <= _RESOLUTION and finding(of) is not Finding.SAME:
        return Finding.NONE
    return finding(of, is_better_low=True, by_chance=by_chance)


def counted(repeats: Sequence[Repeat], measure: Measure) -> list[Seen]:
    """Return the starts that a measure counts: for `START`, all of an arm but its first where there are enough."""
    firsts = {side: next((each.place for each in repeats if each.side is side), None) for side in Side}
    if not leaves_firsts_out(repeats):
        firsts = dict.fromkeys(Side)
    return [
        Seen(side=each.side, place=each.place, value=each.start.seconds)
        for each in repeats
        if each.start is not None and each.start.seconds > 0 and _counts(each, measure, firsts[each.side])
    ]


def _counts(of: Repeat, measure: Measure, first: int | None) -> bool:
    match measure:
        case Measure.START_COLD:
            return of.is_warm is False
        case Measure.START_WARM:
            return of.is_warm is True
        case _:
            return of.place != first


def _repeat(run: Run, runs: Sequence[Run]) -> Repeat:
    assert run.turn is not None
    use = _cache_use(run.start)
    is_told = use is not CacheUse.UNKNOWN
    is_warm = use is not CacheUse.MISS if is_told else _warm_by_compile_time(run, runs)
    return Repeat(
        run=run.id,
        place=run.turn.place,
        side=run.turn.side,
        start=run.start,
        cache=use,
        is_warm=is_warm,
        is_inferred=not is_told and is_warm is not None,
    )


def _cache_use(start: Start | None) -> CacheUse:
    if start is None or start.programs is None or start.programs_cached is None or start.programs == 0:
        return CacheUse.UNKNOWN
    if start.programs_cached == 0:
        return CacheUse.MISS
    return CacheUse.HIT if start.programs_cached == start.programs else CacheUse.PARTLY


def _warm_by_compile_time(run: Run, runs: Sequence[Run]) -> bool | None:
    """None where this arm has no start that compiled clearly longer, or shorter, than this one."""
    times = list(_compile_times(run, runs))
    own = None if run.start is None else run.start.compile_seconds
    if own is None or not times or min(times) >= _MOST_OF_IT * max(times):
        return None
    return own < _MOST_OF_IT * max(times)


def _compile_times(run: Run, runs: Sequence[Run]) -> Iterator[float]:
    for other in runs:
        is_of_arm = other.turn is not None and run.turn is not None and other.turn.side is run.turn.side
        if is_of_arm and other.start is not None and other.start.compile_seconds is not None:
            yield other.start.compile_seconds


def _mean(seen: Sequence[Seen], side: Side) -> float | None:
    """The geometric one, as in an effect."""
    logs = [log(each.value) for each in seen if each.side is side]
    return exp(sum(logs) / len(logs)) if logs else None
