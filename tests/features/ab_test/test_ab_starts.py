"""The starts of an A/B: which count, which were warm, and when they decide."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from random import Random

import pytest
from features.ab_test.ab_repeats import OF, nothing, page_of, runs

from tpudeploy.domain.starts import MeasuredStart
from tpudeploy.domain.verify import ReplicaVerification, Verdict, Verification, VerifiedSetting
from tpudeploy.features.ab_test.arms import differing, in_effect
from tpudeploy.features.ab_test.experiment import AbFinding, CacheUse, InEffect
from tpudeploy.features.ab_test.result import ExperimentResult, KeepReason, result
from tpudeploy.features.ab_test.starts import deciding_measure
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Side

STARTS = replace(OF, by=Measure.START)


def started(*seconds: float | MeasuredStart | None) -> ExperimentResult:
    """Every repeat as usual, with these starts in the order A B A B A B A."""
    usual_runs = runs(nothing, Random(1))
    starts = [MeasuredStart(seconds=each) if isinstance(each, int | float) else each for each in seconds]
    return result(STARTS, [replace(run, start=start) for run, start in zip(usual_runs, starts, strict=True)], None)


@pytest.mark.parametrize(
    ("path", "measure"),
    [
        ("serving.padding_gap", Measure.START),
        ("serving.xla_cache_path", Measure.START),
        ("serving.xla_cache_bucket", Measure.START),
        ("serving.env.MIN_TOKEN_BUCKET", Measure.START),
        ("serving.env.ATTN_CUSTOM_NUM_REQS_BUCKETS", Measure.START),
        # It moves the compilation into the first requests: that is no better start.
        ("serving.env.SKIP_JAX_PRECOMPILE", Measure.REQUESTS),
        ("serving.block_size", Measure.REQUESTS),
        ("serving.max_num_seqs", Measure.REQUESTS),
    ],
)
def test_what_only_changes_starts_is_decided_by_the_start_time(path: str, measure: Measure) -> None:
    assert deciding_measure(path) is measure


@pytest.mark.parametrize(
    ("seconds", "reason", "keep"),
    [
        ((857, 851, 497, 300, 499, 301, 498), KeepReason.BETTER, Side.B),
        ((857, 851, 300, 497, 301, 499, 300), KeepReason.WORSE, Side.A),
        ((300, 851, 300, 300, 301, 299, 300), KeepReason.SAME, Side.A),  # the first of B compiled what A had already
        ((90, 90, 40, 41, 40, 41, 40), KeepReason.NO_DIFFERENCE, Side.A),  # a second is what the clocks resolve
        ((90, 90, 40, 80, 90, 50, 60), KeepReason.NO_DIFFERENCE, Side.A),
    ],
)
def test_the_verdict_rests_on_the_starts_after_each_arms_first(
    seconds: Sequence[float | None], reason: KeepReason, keep: Side | None
) -> None:
    verdict = started(*seconds)
    assert (verdict.reason, verdict.keep) == (reason, keep)


def test_where_the_starts_are_not_known_the_requests_decide() -> None:
    verdict = started(90, 90, 40, None, 90, None, 60)
    assert (verdict.decided_by, verdict.keep) == (Measure.REQUESTS, Side.A)
    assert verdict.reason in {KeepReason.SAME, KeepReason.NO_DIFFERENCE}
    assert "The starts cannot be compared: too few are known. The requests decide instead." in page_of(verdict)


def test_a_value_that_makes_the_server_slower_is_refused_though_starts_decide() -> None:
    def slow(side: Side, _point: Point) -> tuple[float, float]:
        return (0.7 if side is Side.B else 1.0), 1.0

    slow_runs = [replace(run, start=MeasuredStart(seconds=300)) for run in runs(slow, Random(1))]
    verdict = result(STARTS, slow_runs, None)
    assert (verdict.decided_by, verdict.reason, verdict.keep) == (Measure.REQUESTS, KeepReason.WORSE, Side.A)
    assert "B is worse: requests/s over all cells -" in page_of(verdict)


def test_of_few_repeats_all_starts_count_and_the_reader_is_told() -> None:
    usual_runs = runs(nothing, Random(1))[:5]
    starts = (857, 851, 497, 499, 498)
    whole = [replace(run, start=MeasuredStart(seconds=each)) for run, each in zip(usual_runs, starts, strict=True)]
    verdict = result(replace(STARTS, repeats=2), whole, None)
    assert verdict.reason is KeepReason.NO_DIFFERENCE
    assert "With so few repeats, the first start of each arm is counted too" in page_of(verdict)


def test_cold_and_warm_starts_are_told_apart_and_each_repeat_says_which_it_was() -> None:
    cold, warm = (
        MeasuredStart(seconds=857, programs_cached=0, programs=40),
        MeasuredStart(seconds=497, programs_cached=40, programs=40),
    )
    part = MeasuredStart(seconds=600, programs_cached=30, programs=40)
    verdict = started(cold, cold, warm, part, warm, warm, warm)
    assert [repeat.cache for repeat in verdict.repeats] == [
        *(CacheUse.MISS, CacheUse.MISS, CacheUse.HIT, CacheUse.PARTLY, CacheUse.HIT, CacheUse.HIT, CacheUse.HIT)
    ]
    rows = {row.measure: (row.a_count, row.b_count) for row in verdict.starts}
    assert rows == {Measure.START: (3, 2), Measure.START_COLD: (1, 1), Measure.START_WARM: (3, 2)}
    text = page_of(verdict)
    assert "  1  A  857 s; compile cache: miss (0 of 40 programs)" in text
    assert "  4  B  600 s; compile cache: partly a hit (30 of 40 programs)" in text
    assert "1 of A, 1 of B: too few to compare" in text


def test_where_no_log_says_it_the_compile_time_of_the_same_arm_does_and_that_is_said() -> None:
    def took(compiling: float) -> MeasuredStart:
        return MeasuredStart(seconds=100 + compiling, compile_seconds=compiling)

    verdict = started(took(394), took(390), took(5), took(6), took(4), took(5), took(6))
    assert [repeat.is_warm for repeat in verdict.repeats] == [False, False, True, True, True, True, True]
    assert "compile cache: hit, inferred from the compile time" in page_of(verdict)
    alike = started(*(took(seconds) for seconds in (62.97, 63.21, 62.9, 63.0, 63.1, 62.8, 63.2)))
    assert {repeat.is_warm for repeat in alike.repeats} == {None}
    assert "compile cache: unknown, the log does not show it" in page_of(alike)


def test_where_nothing_differs_the_profile_stays_as_it_is() -> None:
    usual_runs = runs(nothing, Random(1))
    for profile_side, keep in ((Side.A, Side.A), (Side.B, Side.B), (None, None)):
        verdict = result(replace(OF, written=profile_side), usual_runs, None)
        assert (verdict.finding in {AbFinding.SAME, AbFinding.NONE}, verdict.keep) == (True, keep)
    assert "Keep gemma.yaml as it is: it sets neither value." in page_of(
        result(replace(OF, written=None), usual_runs, None)
    )


@pytest.mark.parametrize(
    ("one", "other", "is_witness"),
    [
        ({"compile_seconds": "62.97"}, {"compile_seconds": "63.21"}, False),
        ({"cache_hits": "3 of 40"}, {"cache_hits": "40 of 40"}, False),
        ({"num_blocks": "17996"}, {"num_blocks": "18000"}, False),
        ({"num_blocks": "17996"}, {"num_blocks": "9000"}, True),
        ({"graphs": "199"}, {"graphs": "216"}, True),
        ({"block_size": "64"}, {"block_size": "32"}, True),
    ],
)
def test_what_is_measured_is_no_witness_that_a_value_is_in_effect(
    one: dict[str, str], other: dict[str, str], *, is_witness: bool
) -> None:
    assert bool(differing(one, other)) is is_witness
    settings = tuple(
        VerifiedSetting(name=n, declared="", effective={"log": v}, verdict=Verdict.UNTOLD) for n, v in one.items()
    )
    verification = Verification(
        name="gemma", replicas=(ReplicaVerification(address="gemma[0]", slice_name="s", settings=settings),)
    )
    assert in_effect("serving.padding_gap", verification, other) is (InEffect.YES if is_witness else InEffect.UNTOLD)
