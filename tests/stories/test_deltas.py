"""What a plan says a change does to memory, start time and the endpoint."""

from __future__ import annotations

import json
from typing import Any

from command_line import PROFILE, CommandLine, Open


def _change(at: CommandLine, before: str, after: str) -> tuple[str, dict[str, Any]]:
    """The plan's words and its one change, from one profile to another."""
    assert at.run("apply", "-auto-approve", at.write(before)).code == 0
    at.write(after)
    (goal,) = json.loads(at.run("plan", "-json", "gemma.yaml").out)["goals"]
    (change,) = goal["changes"]
    return at.run("plan", "gemma.yaml").words, change


def test_a_share_of_memory_that_holds_less_says_how_much_less(cli: Open) -> None:
    output, change = _change(cli(), PROFILE, PROFILE.replace("max_model_len", "hbm_utilization: 0.6\n  max_model_len"))
    assert change["kv_tokens_after"] < 0.7 * change["kv_tokens_before"]
    assert f"KV cache {change['kv_tokens_before']:,} -> {change['kv_tokens_after']:,} tokens" in output


def test_more_graphs_to_compile_say_how_much_later_it_starts(cli: Open) -> None:
    longer = PROFILE.replace("max_model_len: 16384", "max_model_len: 16384\n  max_num_batched_tokens: 16384")
    output, change = _change(cli(), PROFILE, longer)
    assert change["start_seconds_after"] > change["start_seconds_before"] + 60
    assert "cold start about" in output
    assert change["downtime_seconds_least"] == change["downtime_seconds_most"], "other graphs: none are kept"


def test_a_restart_into_the_same_graphs_may_be_quicker(cli: Open) -> None:
    output, change = _change(cli(), PROFILE, PROFILE.replace("16384", "8192"))
    assert 240 < change["downtime_seconds_least"] < change["downtime_seconds_most"]
    assert "down for about 6 to 11 min" in output
    assert "cold start" not in output, "it takes as long as before"


def test_a_compile_cache_in_memory_outlives_a_change_in_place(cli: Open) -> None:
    memory = PROFILE.replace(
        "  max_model_len", "  volumes: {/dev/shm: /dev/shm}\n  xla_cache_path: /dev/shm/xla\n  max_model_len"
    )
    _, change = _change(cli(), memory, memory.replace("16384", "8192"))
    assert change["downtime_seconds_least"] < change["downtime_seconds_most"]


def test_a_compile_cache_inside_the_container_makes_no_start_quicker(cli: Open) -> None:
    inside = PROFILE.replace("  max_model_len", "  volumes: {}\n  max_model_len")
    _, change = _change(cli(), inside, inside.replace("16384", "8192"))
    assert change["downtime_seconds_least"] == change["downtime_seconds_most"]


def test_a_model_that_nobody_can_size_says_nothing(cli: Open) -> None:
    unknown = PROFILE.replace("google/gemma-4-E2B-it", "acme/mystery-1B")
    output, change = _change(cli(), unknown, unknown.replace("16384", "8192"))
    assert change["downtime_seconds_most"] is None
    assert "down for about" not in output
    assert "KV cache" not in output


def test_a_replacement_without_room_for_both_says_that_nothing_serves(cli: Open) -> None:
    first = PROFILE + "lifecycle: {replace: destroy-before-create}\n"
    output, _ = _change(cli(), first, first.replace("v6e-1", "v6e-4"))
    assert "down from the deletion of the old slice: for the wait for chips and a start of about 10 min" in output
