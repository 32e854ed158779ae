"""A server that serves badly is diagnosed as a dead one is, and what is advised holds for the deployment in hand."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open

BOOT = (Path(__file__).parents[1] / "sizing" / "data" / "boot_gemma4_e2b_v6e1.log").read_text("utf-8")
FULL = {"kv_cache_usage_perc": 0.97, "num_requests_running": 60, "num_requests_waiting_by_reason.capacity": 40}
E4B = PROFILE.replace("gemma-4-E2B-it", "gemma-4-E4B-it")


def measured(
    cli: Open, load: Mapping[str, float], profile: str = PROFILE
) -> tuple[CommandLine, dict[str, dict[str, Any]]]:
    """Return a deployment under this load, and its figures by name."""
    at: CommandLine = cli(nodes="simulated", boot={"boot_seconds": 60, "load": dict(load)})
    assert at.run("apply", "-auto-approve", at.write(profile)).code == 0
    (replica,) = json.loads(at.run("metrics", "gemma.yaml", "-json").out)["replicas"]
    return at, {row["name"]: row for row in replica["readings"]}


def tokens(at: CommandLine, *settings: str) -> int:
    words = [word for setting in settings for word in ("--set", setting)]
    tree = json.loads(at.run("size", "gemma.yaml", "-json", *words).out)
    assert tree["fits"] is True
    tokens: int = tree["kv_cache_tokens"]
    return tokens


def advised(hint: str) -> dict[str, int]:
    """Return the tokens that each setting of a hint is said to hold."""
    ways = hint.partition("More would hold: ")[2].rstrip(".").split("; ")
    return {
        setting: int(tokens.split()[0].replace(",", "")) for setting, _, tokens in (way.partition(": ") for way in ways)
    }


def test_fp8_is_not_advised_where_it_buys_nothing_and_no_length_for_a_fixed_pool(cli: Open) -> None:
    at, rows = measured(cli, FULL)
    hint = rows["kv_cache_used"]["hint"]
    assert f"holds {tokens(at):,} tokens" in hint
    assert "fp8" not in hint
    assert "max_model_len" not in hint
    ways = advised(hint)
    (larger,) = [way for way in ways if way.startswith("tpu.type v6e-4")]
    split = ("serving.tensor_parallel_size=1", "serving.data_parallel_size=4")
    assert ways[larger] == tokens(at, "tpu.type=v6e-4", *split) > tokens(at, "tpu.type=v6e-4")
    (raised,) = [way for way in ways if way.startswith("hbm_utilization")]
    assert ways[raised] == tokens(at, f"serving.{raised.replace(' ', '=')}")
    assert ways["another replica"] == 2 * tokens(at)


def test_fp8_is_advised_where_it_buys_something_with_what_it_buys(cli: Open) -> None:
    at, rows = measured(cli, FULL, E4B)
    assert advised(rows["kv_cache_used"]["hint"])["kv_cache_dtype fp8"] == tokens(at, "serving.kv_cache_dtype=fp8")


def test_a_setting_that_is_in_effect_already_is_not_advised(cli: Open) -> None:
    _, rows = measured(cli, FULL, E4B.replace("max_model_len", "kv_cache_dtype: fp8\n  max_model_len"))
    assert "fp8" not in rows["kv_cache_used"]["hint"]


def test_a_queue_before_full_places_is_told_how_many_more_the_chip_takes(cli: Open) -> None:
    places = PROFILE.replace("max_model_len", "max_num_seqs: 64\n  max_model_len")
    load = {"kv_cache_usage_perc": 0.2, "num_requests_running": 64, "num_requests_waiting_by_reason.capacity": 30}
    at, rows = measured(cli, load, places)
    hint = rows["requests_waiting"]["hint"]
    assert "All 64 places are taken (max_num_seqs 64)" in hint
    assert "max_num_seqs: 128 would use about 40% of it" in hint
    tree = json.loads(at.run("size", "gemma.yaml", "-json", "--set", "serving.max_num_seqs=128").out)
    assert f"compiles {tree['graphs']['total']} graphs" in hint


def test_a_queue_before_free_places_is_told_of_the_step(cli: Open) -> None:
    load = {"kv_cache_usage_perc": 0.2, "num_requests_running": 10, "num_requests_waiting_by_reason.capacity": 30}
    _, rows = measured(cli, load)
    assert "prompts wait for the tokens of a step (max_num_batched_tokens 2,048)" in rows["requests_waiting"]["hint"]


def test_preemptions_are_told_how_many_requests_the_cache_holds(cli: Open) -> None:
    counters = {"prompt_tokens": 2_700_000, "generation_tokens": 300_000, "request_success.stop": 300}
    at, rows = measured(cli, {**FULL, "num_preemptions": 12, **counters})
    hint = rows["preemptions"]["hint"]
    match = re.search(r"took ([\d,]+) tokens on average.*max_num_seqs: (\d+) ", hint)
    assert match is not None, hint
    mean, fitting = int(match[1].replace(",", "")), int(match[2])
    assert mean == pytest.approx(10_000, rel=0.02)  # requests of the readiness probe count as well
    assert fitting == pytest.approx(0.85 * tokens(at) / mean, abs=1)


def test_a_model_that_cannot_be_sized_is_not_told_figures(cli: Open) -> None:
    _, rows = measured(cli, FULL, PROFILE.replace("max_model_len: 16384", "args: {enable_lora: true}"))
    hint = rows["kv_cache_used"]["hint"]
    assert "not computed, because adapters take memory" in hint
    assert "fp8" not in hint


# A line as vLLM 0.32.0 writes it (v1/metrics/loggers.py, LoggingStatLogger.log); the figures are made up.
def statistics(
    second: int, running: int, waiting: int, used: float, *, preemptions: int = 0, engine: str = "Engine 000"
) -> str:
    thrown = f", Preemptions: {preemptions}" if preemptions else ""
    return (
        f"(APIServer pid=1) INFO 08-10 12:{second // 60:02}:{second % 60:02} [loggers.py:335] {engine}: Avg prompt "
        f"throughput: 812.4 tokens/s, Avg generation throughput: 1024.0 tokens/s, Running: {running} reqs, Waiting: "
        f"{waiting} reqs{thrown}, TPU KV cache usage: {used:.1f}%, Prefix cache hit rate: 12.0%"
    )


def explained(cli: Open, *lines: str, profile: str = PROFILE) -> tuple[str, dict[str, Any]]:
    at: CommandLine = cli()
    at.write(profile)
    (at.folder / "boot.log").write_text(BOOT + "\n" + "\n".join(lines) + "\n", "utf-8")
    result = at.run("logs", "gemma.yaml", "--file", "boot.log", "--explain")
    assert result.code == 0, result.all
    (log,) = json.loads(at.run("logs", "gemma.yaml", "--file", "boot.log", "--explain", "-json").out)["logs"]
    assert log["serving"] is True
    return result.words, log["load"]


def test_a_log_of_a_server_that_queues_and_preempts_says_so_and_what_to_do(cli: Open) -> None:
    words, load = explained(cli, *(statistics(10 * n, 250, 12, 99.1, preemptions=n % 3) for n in range(30)))
    assert "How it serves, by the last 30 lines of statistics in the log: 812 prompt and 1,024 generated" in words
    assert "requests waiting 12 (capacity 12) it gets more requests than it has room for" in words
    assert "KV cache used 99.1% over 85%" in words
    assert "preemptions 30 removed from the KV cache in these lines" in words
    assert "tpu.type v6e-4" in words
    assert "fp8" not in words
    assert load["lines"] == 30


def test_a_log_of_a_server_that_serves_well_advises_nothing(cli: Open) -> None:
    _, load = explained(cli, *(statistics(10 * n, 30, 0, 11.0) for n in range(30)))
    assert not [row for row in load["readings"] if row["grade"] == "warn"]


def test_one_full_moment_is_no_diagnosis(cli: Open) -> None:
    _, load = explained(
        cli,
        *(statistics(10 * n, 30, 0, 11.0) for n in range(20)),
        statistics(200, 256, 40, 99.0),
        statistics(210, 30, 0, 9.0),
    )
    assert not [row for row in load["readings"] if row["grade"] == "warn"]


def test_ranks_that_log_by_themselves_are_added_up(cli: Open) -> None:
    lines = [statistics(n, 100, 5, 90.0 - 50 * rank, engine=f"Engine 00{rank}") for n in range(5) for rank in (0, 1)]
    words, _ = explained(cli, *lines)
    assert "requests running 200" in words
    assert "KV cache used 90.0%" in words


def test_a_log_without_statistics_says_nothing_of_how_it_serves(cli: Open) -> None:
    words, load = explained(cli)
    assert load is None
    assert "How it serves" not in words
