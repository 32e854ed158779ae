"""What would serve a workload: measured runs decide, the size model where there is none, and published prose never."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Result, command
from measured_files import imported_run, measured_cell

Run = Callable[..., Result]
PROFILE = Path(__file__).parents[3] / "profiles" / "gemma4-e2b-v6e1.yaml"


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """A command in a folder of its own, with a profile in it."""
    (tmp_path / "e2b.yaml").write_text(PROFILE.read_text())

    return partial(command, tmp_path, capfd)


def _options(*more: str, users: int = 64) -> tuple[str, ...]:
    return ("recommend", "e2b.yaml", "--users", str(users), "--context", "4096", "--output", "256", *more)


def test_without_a_run_the_size_model_recommends_and_says_that_it_does(run: Run) -> None:
    result = run(*_options())
    assert result.code == 0, result.all
    assert "v5litepod-1, tensor parallel 1, flex-start, at " in result.err
    assert "v6e-1, tensor parallel 1, spot, at " in result.err
    assert "knows memory, not speed" in result.err
    profile = yaml.safe_load(result.out)
    assert profile["tpu"]["type"] == "v5litepod-1"
    assert profile["placement"]["provisioning"] == ["flex-start"]


LLAMA = Path(__file__).parents[3] / "profiles" / "llama-3.1-8b-v6e1.yaml"


def _llama(run: Run, folder: Path, *settings: str, users: int) -> Mapping[str, Any]:
    """Return the recommended profile, which `validate` accepts and `size` finds room in for the users."""
    (folder / "llama.yaml").write_text(LLAMA.read_text())
    words = [word for setting in settings for word in ("--set", setting)]
    result = run("recommend", "llama.yaml", "--users", str(users), "--context", "4096", "--output", "256", *words)
    assert result.code == 0, result.all
    (folder / "recommended.yaml").write_text(result.out)
    assert run("validate", "recommended.yaml").code == 0
    sized = json.loads(run("size", "recommended.yaml", "--json").out)
    assert sized["fits"]
    assert sized["kv_cache_tokens"] >= users * (4096 + 256)
    profile: Mapping[str, Any] = yaml.safe_load(result.out)
    return profile


def test_the_workload_decides_the_length_not_the_profile(run: Run, tmp_path: Path) -> None:
    profile = _llama(run, tmp_path, "serving.max_model_len=131072", users=8)
    assert profile["serving"]["max_model_len"] == 5 * 1024
    assert profile["tpu"]["type"] == "v6e-1"


@pytest.mark.parametrize(
    ("users", "settings"),
    [
        (8, (0.7, "auto", "v6e-1")),
        (16, (0.96, "auto", "v6e-1")),
        (40, (0.96, "fp8", "v6e-1")),
        (60, (0.93, "auto", "v5litepod-4")),
    ],
)
def test_the_mildest_change_serves_it_before_a_larger_slice_is_paid(
    run: Run, tmp_path: Path, users: int, settings: tuple[float, str, str]
) -> None:
    """More utilization costs nothing, a KV cache in fp8 some accuracy, and another slice money."""
    written = ("serving.hbm_utilization=0.7", "serving.kv_cache_dtype=auto")
    profile = _llama(run, tmp_path, *written, users=users)
    serving = profile["serving"]
    assert (serving["hbm_utilization"], serving["kv_cache_dtype"], profile["tpu"]["type"]) == settings


def test_hosts_are_joined_where_no_single_one_is_enough(run: Run, tmp_path: Path) -> None:
    (tmp_path / "qwen.yaml").write_text((LLAMA.parent / "qwen3-235b-v6e32.yaml").read_text())
    result = run("recommend", "qwen.yaml", "--users", "16", "--context", "4096", "--output", "256")
    assert "v6e-32, tensor parallel 4 x pipeline parallel 8, spot, at least $" in result.err
    assert "v6e-64" not in result.err
    assert yaml.safe_load(result.out)["serving"]["args"]["pipeline_parallel_size"] == 8


def test_the_profile_that_is_printed_is_one_that_serves_it(run: Run, tmp_path: Path) -> None:
    result = run(*_options(users=1000))
    (tmp_path / "recommended.yaml").write_text(result.out)
    sized = json.loads(run("size", "recommended.yaml", "--json").out)
    assert yaml.safe_load(result.out)["tpu"]["type"] == "v6e-4"
    assert sized["kv_cache_tokens"] >= 1000 * (4096 + 256)


def test_several_replicas_share_the_users_and_all_of_them_are_paid(run: Run, tmp_path: Path) -> None:
    alone, shared = run(*_options(users=600)), run(*_options("--set", "replicas=3", users=600))
    assert yaml.safe_load(alone.out)["tpu"]["type"] == "v6e-4"
    profile = yaml.safe_load(shared.out)
    assert (profile["tpu"]["type"], profile["replicas"]) == ("v6e-1", 3)
    assert "3 replicas of v6e-1, tensor parallel 1, spot, at " in shared.err
    assert "on each of 3 replicas, " in shared.err
    results = run(*_options("--json", users=200)), run(*_options("--json", "--set", "replicas=3", users=600))
    costs = [json.loads(result.out)["choices"][0]["usd_per_month"] for result in results]
    assert costs[1] == pytest.approx(3 * costs[0])
    # A run that measured one server is evidence for one.
    imported_run(run, tmp_path, measured_cell(64, 20.0, 400.0))
    assert yaml.safe_load(run(*_options("--set", "replicas=3")).out)["replicas"] == 1


def test_a_run_that_serves_it_decides_though_memory_says_a_smaller_slice_would_do(run: Run, tmp_path: Path) -> None:
    own = imported_run(run, tmp_path, measured_cell(64, 20.0, 400.0), slice_type="v6e-4", usd="5.00")
    result = run(*_options("--ttft", "1s"))
    assert f"v6e-4, about $3,650 a month  (run {own})" in result.err
    assert "the first token within 0.8 s" in result.err
    assert yaml.safe_load(result.out)["tpu"]["type"] == "v6e-4"


def test_a_run_that_is_too_slow_or_too_dear_is_named_with_its_reason(run: Run, tmp_path: Path) -> None:
    own = imported_run(run, tmp_path, measured_cell(64, 20.0, 400.0))
    slow, dear = run(*_options("--ttft", "1s")), run(*_options("--ttft", "500ms"))
    assert f"(run {own})" in slow.err
    assert f"not run {own} on v6e-1: the first token takes 0.8 s" in dear.err
    capped = run(*_options("--budget", "900"))
    assert f"not run {own} on v6e-1: it costs $1,095 a month" in capped.err
    assert "(not measured)" in capped.err


def test_what_cannot_be_had_is_refused_with_the_reasons(run: Run) -> None:
    result = run(*_options("--budget", "200"))
    assert result.code == 13
    assert "no slice serves it" in result.err
    assert "a month" in result.err
    assert not result.out


def test_an_engine_without_arithmetic_is_recommended_no_slice_and_refused_none(run: Run) -> None:
    result = run(*_options("--set", "serving.image=vllm/vllm-torchtpu:v0.29.0"))
    assert result.code == 13
    assert "no slice is known to serve it" in result.err
    assert "is another engine than the tpu-inference of vllm-tpu" in result.err
    assert not result.out


def test_operating_points_are_found_by_the_rules_they_name(run: Run, tmp_path: Path) -> None:
    cells = [
        measured_cell(1, 1.0, 100.0),
        measured_cell(8, 7.0, 130.0),
        measured_cell(64, 18.0, 600.0),
        measured_cell(256, 18.2, 5000.0),
    ]
    own = imported_run(run, tmp_path, *cells)
    result = run("recommend", "--run", own[:-1])
    points = {line.split()[0]: line.split()[1] for line in result.out.splitlines() if " streams  " in line}
    assert points == {"latency": "8", "balanced": "8", "throughput": "64"}
    assert "at most 1.5 times the least" in result.out
    tree = json.loads(run("recommend", "--run", own, "--json").out)
    assert [point["cell"]["point"]["concurrency"] for point in tree["loads"][0]["points"]] == [8, 8, 64]


def test_a_published_table_recommends_nothing(run: Run) -> None:
    assert "agent-" not in run(*_options("--json")).out


ZONES = ("-set", "placement.zones=[us-east5-a, us-central1-a]", "-set", "placement.provisioning=[spot]")


def test_a_recommendation_costs_what_the_plan_of_its_profile_says_at_most(run: Run, tmp_path: Path) -> None:
    result = run(*_options(*ZONES, "--json", users=8))
    choice, text = json.loads(result.out)["choices"][0], json.loads(result.out)["profile"]
    assert choice["usd_per_month"] == pytest.approx(1.4033 * 730), (
        "us-central1-a is cheaper, us-east5-a is requested first"
    )
    (tmp_path / "recommended.yaml").write_text(text)
    assert "at most $1,024 a month" in run(*_options(*ZONES, users=8)).err
    assert "max_price_per_chip_hour" not in text


def test_a_budget_holds_for_every_place_that_the_printed_profile_requests(run: Run, tmp_path: Path) -> None:
    result = run(*_options(*ZONES, "--budget", "500", users=8))
    assert result.code == 0, result.all
    profile = yaml.safe_load(result.out)
    assert profile["placement"]["max_price_per_chip_hour"] == 0.544
    assert "at most $397 a month" in result.err
    (tmp_path / "recommended.yaml").write_text(result.out)
    assert run("validate", "recommended.yaml").code == 0
    refused = run(*_options(*ZONES, "--budget", "300", users=8))
    assert refused.code == 13
    assert "at least $397 a month" in refused.err


def test_places_without_a_known_price_make_the_cost_a_lower_bound(run: Run) -> None:
    zones = ("-set", "placement.zones=[us-east5-a, southamerica-west1-a]", "-set", "placement.provisioning=[spot]")
    result = run(*_options(*zones, users=8))
    assert "at least $1,024 a month (1 of its places has no known price)" in result.err
    limited = run(*_options(*zones, "--budget", "1100", users=8))
    assert yaml.safe_load(limited.out)["placement"]["max_price_per_chip_hour"] == 1.4033
