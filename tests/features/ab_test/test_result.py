"""The verdict of an A/B: one question over all cells that are believed, and what is said of each beside it."""

from __future__ import annotations

from dataclasses import replace
from random import Random
from typing import Any

import pytest
from features.ab_test.ab_repeats import OF, POINTS, SUBJECT, nothing, page_of, runs

from tpudeploy.features.ab_test.experiment import AbFinding, Arm, InEffect
from tpudeploy.features.ab_test.result import KeepReason, result
from tpudeploy.features.ab_test.turns import ExperimentPlan, order
from tpudeploy.features.ab_test.view import proposal
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import CellStatus, Ended, Side
from tpudeploy.text.paint import Paint


def test_of_many_figures_none_is_said_to_differ_more_than_one_time_in_twenty() -> None:
    random, alarms, trials = Random(20261122), 0, 300
    for _ in range(trials):
        findings = {row.finding for row in result(OF, runs(nothing, random), None).rows}
        alarms += bool(findings & {AbFinding.BETTER, AbFinding.WORSE})
    assert alarms / trials <= 0.05 + 0.025


def test_a_cell_that_is_not_believed_takes_no_part_in_the_verdict() -> None:
    def odd(side: Side, point: Point) -> tuple[float, float]:
        return (2.0 if side is Side.B and point.concurrency == 64 else 1.0), 1.0

    whole = result(OF, runs(odd, Random(1)), None)
    assert whole.reason is KeepReason.BETTER
    without = result(OF, runs(odd, Random(1), doubted={64: CellStatus.CLIENT_BOUND}), None)
    assert without.reason in {KeepReason.SAME, KeepReason.NO_DIFFERENCE}
    assert {row.is_doubted for row in without.rows if row.point.concurrency == 64} == {True}
    assert "?  a figure is not trusted, and its cell does not count in the verdict" in page_of(without)


def test_where_no_cell_is_believed_all_count_and_that_is_said() -> None:
    statuses = {point.sizes[0]: CellStatus.FAILED for point in POINTS}
    verdict = result(OF, runs(nothing, Random(1), doubted=statuses), None)
    assert verdict.is_doubted
    assert verdict.overall is not None
    assert "No cell is trusted in all repeats, so all cells count." in page_of(verdict)


def test_what_is_better_and_has_its_price_is_told_with_it() -> None:
    def dear(side: Side, point: Point) -> tuple[float, float]:
        return (1.2, 1.5 if point.concurrency == 64 else 1.0) if side is Side.B else (1.0, 1.0)

    verdict = result(OF, runs(dear, Random(1)), None)
    assert (verdict.keep, verdict.reason) == (Side.B, KeepReason.BETTER)
    assert {(row.measure, row.point.concurrency) for row in verdict.worse} == {
        (Measure.TTFT, 64),
        (Measure.TTFT_P99, 64),
    }
    text = page_of(verdict)
    assert "B is better: requests/s over all cells +" in text
    assert "but worse: TTFT p50 at 64 streams, TTFT p99 at 64 streams" in text
    assert "Keep B: write at gemma.yaml:7\n  padding_gap: 512" in text


def test_a_latency_is_better_where_it_is_shorter() -> None:
    def late(side: Side, _point: Point) -> tuple[float, float]:
        return 1.0, 1.3 if side is Side.B else 1.0

    verdict = result(replace(OF, by=Measure.TTFT), runs(late, Random(1)), None)
    assert (verdict.keep, verdict.reason) == (Side.A, KeepReason.WORSE)
    assert "B is worse: TTFT p50 over all cells +" in page_of(verdict)
    assert "Keep A: gemma.yaml:7 has this value." in page_of(verdict)


@pytest.mark.parametrize("count", [0, 1, 3])
def test_too_few_repeats_keep_nobody(count: int) -> None:
    verdict = result(OF, runs(nothing, Random(1))[:count], None)
    assert (verdict.keep, verdict.reason, verdict.left) == (None, KeepReason.TOO_FEW, 7 - count)
    assert f"{7 - count} repeats are missing: tpudeploy compare gemma.yaml --resume ab-1" in page_of(verdict)


def test_runs_of_others_and_runs_that_were_cut_short_do_not_count() -> None:
    whole = runs(nothing, Random(1))
    cut, strange = replace(whole[0], ended=Ended.COST), replace(whole[1], turn=None)
    assert result(OF, [cut, strange, *whole[2:]], None).runs == tuple(f"run-{place}" for place in range(2, 7))


def test_a_flag_is_left_out_by_leaving_it_out() -> None:
    def faster(side: Side, _point: Point) -> tuple[float, float]:
        return (1.2 if side is Side.B else 1.0), 1.0

    experiment = replace(OF, b=Arm(value="null", fingerprint="b", in_effect=InEffect.UNTOLD))
    text = page_of(result(experiment, runs(faster, Random(1)), None))
    assert "Keep B: remove padding_gap at gemma.yaml:7." in text
    assert "No source shows whether serving.padding_gap is in effect" in text


def test_that_repeats_ran_on_several_slices_or_meant_the_same_is_told() -> None:
    usual_runs = runs(nothing, Random(1))
    moved = [replace(run, subject=replace(SUBJECT, url=f"http://{place > 3}")) for place, run in enumerate(usual_runs)]
    answer = {"padding_gap": "0"}
    experiment = replace(OF, a=replace(OF.a, told=answer), b=replace(OF.b, told=answer))
    text = page_of(result(experiment, moved, None))
    assert "The repeats ran on several slices, so a difference may come from the machine." in text
    assert "To the engine both arms may be the same: it reports padding_gap 0 in both." in text


def test_that_quality_was_not_asked_for_is_said_where_a_flag_may_change_it() -> None:
    usual_runs, note = runs(nothing, Random(1)), "Quality was not measured, and serving.kv_cache_dtype may change it"
    assert note in page_of(result(replace(OF, path="serving.kv_cache_dtype"), usual_runs, None))
    assert "Quality" not in page_of(result(OF, usual_runs, None))


def test_of_several_replicas_the_others_serve_during_a_restart_and_all_are_paid() -> None:
    turns = tuple(enumerate(order(OF.repeats)))
    values: dict[str, Any] = {"experiment": OF, "turns": turns, "now": Side.A, "then": Side.A, "least": 60, "most": 600}
    one = ExperimentPlan(**values, where="v6e-1, us-east5-a, spot", usd_per_hour=1.0)
    three = ExperimentPlan(**values, where="3 x v6e-1", usd_per_hour=3.0, replicas=3, at_once=2)
    assert f"{one.restarts} restarts: nothing serves for about 1 to 10 min each" in proposal(one, Paint())
    text = proposal(three, Paint())
    assert f"{one.restarts} restarts of each of 3 replicas, 2 at a time: the others serve while it does not" in text
    assert "nothing serves" not in text
    assert "of the slices" in text
    restarting = one.restarts * 600
    assert one.seconds == one.measuring_seconds + restarting
    assert three.seconds == one.measuring_seconds + 2 * restarting, "two rounds"
