"""How a start went: each part where its time is, what ran side by side, and what made it take so long."""

from __future__ import annotations

import json

import pytest
from command_line import PROFILE, CommandLine, Open
from stories.buckets import upload

BOOT = {"boot_seconds": 652, "image_pull": 150, "bucket": 10}  # no part shorter than two looks
MIRRORED = PROFILE.replace("gemma-4-E2B-it", "gemma-4-E2B-it\n  mirror: gs://bucket/gemma").replace(
    "  max_model_len", "  xla_cache_bucket: gs://bucket/xla\n  max_model_len"
)


def test_a_start_is_drawn_with_what_ran_side_by_side_and_the_longest_way(cli: Open) -> None:
    at = _serving(cli)
    result = at.run("status", "-timeline", "gemma.yaml")
    assert result.code == 0, result.all
    assert "until it served" in result.out
    bars = {line.split("  ")[1]: line for line in result.out.splitlines() if "█" in line or "░" in line}
    assert "█" in bars["image"]
    assert "░" in bars["weights fetched"]
    assert bars["image"].index("█") == bars["weights fetched"].index("░")  # they began together
    assert bars["warm-up"].rstrip().endswith("█")
    assert "199 graphs compiled" in result.out
    longest = next(line for line in result.out.splitlines() if "critical path" in line)
    assert "image → " in longest
    assert "weights fetched" not in longest
    assert "compile cache miss: 0 programs were here, 37 were compiled anew" in result.words


@pytest.mark.long
def test_programs_read_the_same_and_the_critical_path(cli: Open) -> None:
    at = _serving(cli)
    (start,) = json.loads(at.run("status", "-timeline", "-json", "gemma.yaml").out)["timelines"]
    phases = {phase["name"]: phase for phase in start["phases"]}
    assert phases["mirror"]["began"] <= phases["image"]["began"] + 1
    assert 10 <= phases["mirror"]["seconds"] < phases["image"]["seconds"]
    assert start["serving"]
    assert start["whole"]
    assert {"image", "compile"} <= set(start["critical"])
    assert "mirror" not in start["critical"]


@pytest.mark.long
def test_without_its_log_the_machines_own_account_is_drawn(cli: Open) -> None:
    at = _serving(cli)
    at.emulator.script({"fault": "iam-denied", "method": "logging.entries.list"})
    result = at.run("status", "-timeline", "gemma.yaml")
    assert result.code == 0, result.all
    assert "Its log cannot be read" in result.out
    assert "weights fetched" in result.out
    assert "container starts" in result.out


def test_a_start_that_failed_shows_how_far_it_came(cli: Open) -> None:
    at = cli(nodes="real", boot={"crash": "ValueError: no", "boot_seconds": 130, "image_pull": 90})
    assert at.run("apply", "-auto-approve", at.write()).code == 1
    result = at.run("status", "-timeline", "gemma.yaml")
    assert "so far" in result.out
    assert "image" in result.out


def test_where_nothing_started_nothing_is_drawn(cli: Open) -> None:
    at = cli()
    assert "No machine has reported a start." in at.run("status", "-timeline", at.write()).out
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0  # a simulated machine tells of none
    assert at.run("status", "-timeline").code == 0


def _serving(cli: Open) -> CommandLine:
    at = cli(nodes="real", boot=BOOT)
    upload(at, "gemma/config.json", b"{}")
    applied = at.run("apply", "-auto-approve", at.write(MIRRORED))
    assert applied.code == 0, applied.all
    (name,) = at.slices
    # The cache is saved after the server serves, by a real process, which may be slower than the virtual clock.
    for _ in range(20):
        at.clock.sleep(120)
        if "were compiled anew" in at.emulator.log(name):
            break
    return at
