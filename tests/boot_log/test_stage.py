"""How far a boot is and how long it still takes: by the plan, and by what this very start took so far."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path

import pytest
from command_line import PROFILE

from tpudeploy.boot_log.lines import parse_lines
from tpudeploy.boot_log.stage import UNREPORTED, stage, unreported
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.slices import BootPhase, BootReport
from tpudeploy.domain.status import BootStage
from tpudeploy.loading import Profile, sized
from tpudeploy.views.status import progress

LOG = Path(__file__).parents[1] / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log"
MEASURED = PROFILE.replace("max_model_len: 16384", "max_model_len: 32768\n  max_num_batched_tokens: 4096")


@pytest.fixture
def budget(tmp_path: Path) -> HbmBudget:
    (tmp_path / "gemma.yaml").write_text(MEASURED, encoding="utf-8")
    budget = sized(Profile.load(tmp_path / "gemma.yaml")).budget
    assert isinstance(budget, HbmBudget)
    return budget


def _at(detail: str, took: float | None) -> BootReport:
    started = None if took is None else 1000.0 - took
    return BootReport(phase=BootPhase.STARTING, detail=detail, started=started)


def test_at_every_moment_of_a_real_boots_compilation_its_end_is_foretold_within_a_minute(budget: HbmBudget) -> None:
    output = [(line.at, line.text) for line in parse_lines(LOG.read_text(encoding="utf-8")) if line.at is not None]
    end = next(at for at, text in output if "Application startup complete" in text)
    begun = [at for at, text in output if text.startswith("Precompile ") and "-->" in text]
    assert len(begun) == 199
    for now in range(int(begun[0]), int(begun[-1]), 5):
        number = sum(at <= now for at in begun)
        foretold = stage(_at(f"Compiling graph {number}", now), budget, now=1000.0)
        assert (foretold.done, foretold.of) == (number, 199)
        assert foretold.left_seconds is not None
        assert abs(foretold.left_seconds - (end - now)) < 60, now


def test_a_start_that_runs_twice_as_fast_has_half_as_long_to_compile(budget: HbmBudget) -> None:
    plan = budget.start
    planned = plan.process_seconds + plan.weights_seconds + plan.compile_seconds(64)
    slow, fast = (stage(_at("Compiling graph 65", took), budget, now=1000.0) for took in (planned, planned / 2))
    assert slow.left_seconds is not None
    assert fast.left_seconds is not None
    assert fast.left_seconds - plan.ready_seconds == pytest.approx((slow.left_seconds - plan.ready_seconds) / 2)


def test_time_that_passes_before_the_first_graph_shortens_what_is_left_and_never_below_what_follows(
    budget: HbmBudget,
) -> None:
    seconds_left = [
        stage(_at("Starting the container", took), budget, now=1000.0).left_seconds for took in (0, 30, 500)
    ]
    plan = budget.start
    rest = plan.cold_seconds - plan.process_seconds
    assert seconds_left == pytest.approx([plan.cold_seconds, plan.cold_seconds - 30, rest])


def test_more_graphs_than_were_planned_are_counted_without_an_end(budget: HbmBudget) -> None:
    current = stage(_at("Compiling graph 250", 400), budget, now=1000.0)
    assert progress(current, "").startswith("compiling 250, about ")


@pytest.mark.parametrize(
    ("phase", "detail", "words"),
    [
        (
            BootPhase.STARTING,
            "Loading safetensors checkpoint shards:  45% Completed | 1/3",
            "loading weights, 45 %, about",
        ),
        (BootPhase.STARTING, "Checkpoint size: 9.54 GiB.", "loading weights, about"),
        (
            BootPhase.STARTING,
            "init engine (profile, create kv cache, warmup model) took 447 s",
            "warming up, about 1 min",
        ),
        (BootPhase.STARTING, "Starting the container", "Starting the container, about"),
        (BootPhase.IMAGE, "Pulling the image", "Pulling the image, at least"),
        (BootPhase.SERVING, "Healthy, and completed a prompt", "Healthy, and completed a prompt"),
        (BootPhase.FAILED, "out of memory", "out of memory"),
    ],
)
def test_each_stage_has_its_words(budget: HbmBudget, phase: BootPhase, detail: str, words: str) -> None:
    current = stage(BootReport(phase=phase, detail=detail, started=900.0), budget, now=1000.0)
    assert progress(current, detail).startswith(words)


def test_the_layers_of_the_image_are_told_in_per_cent(budget: HbmBudget) -> None:
    current = stage(BootReport(phase=BootPhase.IMAGE, detail="Pulling the image", pulled=40), budget, now=1000.0)
    answer = progress(current, "Pulling the image")
    assert answer.startswith("Pulling the image (40 % of the image's layers), at least ")


def test_when_an_earlier_container_was_started_says_nothing_of_the_next(budget: HbmBudget) -> None:
    progress = stage(BootReport(phase=BootPhase.IMAGE, detail="Pulling the image", started=10.0), budget, now=1000.0)
    assert progress.left_seconds == budget.start.cold_seconds


def test_without_a_plan_nothing_is_foretold() -> None:
    current = stage(_at("Compiling graph 7", 100), Unsized(because="the model is not known"), now=1000.0)
    assert progress(current, "") == "compiling 7"


def test_a_count_has_an_end_up_to_the_planned_number(budget: HbmBudget) -> None:
    last = stage(_at("Compiling graph 199", 400), budget, now=1000.0)
    assert (last.name, last.done, last.of) == ("compiling", 199, 199)
    image = BootReport(phase=BootPhase.IMAGE, detail="Pulling the image", pulled=40)
    without_a_plan = stage(image, Unsized(because="the model is not known"), now=1000.0)
    assert without_a_plan == BootStage(name="image", done=40, of=100)


def test_each_rank_compiles_its_own_graphs_at_the_same_time(budget: HbmBudget) -> None:
    four = replace(budget, engine=replace(budget.engine, data_parallel=4))
    alone, among_four = (stage(_at(f"Compiling graph {n}", 400), b, now=1000.0) for n, b in ((50, budget), (197, four)))
    assert (among_four.done, among_four.of) == (197, 4 * 199)
    assert among_four.left_seconds == alone.left_seconds


def test_a_percentage_is_of_the_weights_alone(budget: HbmBudget) -> None:
    loading = stage(_at("Loading safetensors checkpoint shards:  45% Completed", 100), budget, now=1000.0)
    compiling = stage(_at("Memory statistics: 45% of the HBM is used", 100), budget, now=1000.0)
    assert (loading.name, loading.done, loading.of) == ("weights", 45, 100)
    assert (compiling.name, compiling.done, compiling.of) == ("compiling", None, None)


def test_without_the_time_of_its_start_what_is_left_is_the_plans_from_where_its_stage_begins(budget: HbmBudget) -> None:
    plan = budget.start
    loading = stage(_at("Checkpoint size: 9.54 GiB.", None), budget, now=1000.0)
    assert loading.left_seconds == pytest.approx(plan.cold_seconds - plan.process_seconds)
    compiling = stage(_at("Memory statistics", None), budget, now=1000.0)
    assert compiling.left_seconds == pytest.approx(plan.cold_seconds - plan.process_seconds - plan.weights_seconds)


@pytest.mark.parametrize(("took", "left"), [(0.0, 1.0), (-5.0, 1.0), (0.25, 0.75), (1.0, None), (1.5, None)])
def test_a_machine_without_reports_is_at_its_place_in_the_plan(
    budget: HbmBudget, took: float, left: float | None
) -> None:
    """As shares of the whole start; a clock that is behind the grant does not lengthen it."""
    cold = budget.start.cold_seconds
    current = unreported(budget, granted_at=1000.0, now=1000.0 + took * cold)
    assert (current is None) is (left is None)
    if current is not None and left is not None:
        assert (current.name, current.is_least) == (UNREPORTED, True)
        assert current.left_seconds == pytest.approx(left * cold)
    assert unreported(Unsized(because="the model is not known"), granted_at=1000.0, now=1000.0) is None
