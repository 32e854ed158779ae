"""How far a boot has come, and how long it still takes: in the lines of an apply, in status, for programs."""

from __future__ import annotations

import json
import re

import pytest
from command_line import PROFILE, CommandLine, Open

MEASURED = PROFILE.replace("max_model_len: 16384", "max_model_len: 32768\n  max_num_batched_tokens: 4096")
SLOW = {"nodes": "real", "boot": {"boot_seconds": 652}}


def test_an_apply_says_how_far_it_is_and_how_long_it_still_takes(cli: Open) -> None:
    at = cli(**SLOW)
    result = at.run("apply", "-auto-approve", at.write(MEASURED))
    assert result.code == 0, result.all
    answer = re.findall(r"Compiling (\d+) of 199, about (\d+) min left", result.err)
    assert len(answer) >= 3, result.err
    counts, minutes = ([int(row[n]) for row in answer] for n in (0, 1))
    assert counts == sorted(counts)
    assert minutes == sorted(minutes, reverse=True)
    assert len(answer) <= 9, "a line a minute, not one a look"
    assert re.search(r"Loading weights, \d+ %, about \d+ min left", result.err)


def _booting(cli: Open, seconds: float) -> CommandLine:
    at: CommandLine = cli(**SLOW)
    result = at.run("apply", "-auto-approve", "-wait", "granted", at.write(MEASURED))
    assert result.code == 0, result.all
    at.clock.sleep(seconds - 30)
    at.clock.sleep(30)  # a report is written every 18 s at most
    return at


def test_status_says_it_without_having_watched(cli: Open) -> None:
    at = _booting(cli, 500)
    result = at.run("status", "gemma.yaml")
    match = re.search(r"boot +starting: compiling (\d+) of 199, about (\d+) min left", result.out)
    assert match, result.out
    assert 0 < int(match[1]) < 199
    stage = json.loads(at.run("status", "-json", "gemma.yaml").out)["deployments"][0]["replicas"][0]["stage"]
    assert (stage["name"], stage["of"]) == ("compiling", 199)
    assert abs(stage["left_seconds"] - 60 * int(match[2])) <= 30


def test_without_a_profile_it_is_counted_without_an_end(cli: Open) -> None:
    at = _booting(cli, 500)
    result = at.run("status")
    assert re.search(r"boot +starting: compiling \d+\n", result.out), result.out


@pytest.mark.long
def test_the_stream_has_it_for_programs(cli: Open) -> None:
    at = cli(**SLOW)
    result = at.run("apply", "-auto-approve", "-json", at.write(MEASURED))
    lines = [json.loads(line) for line in result.out.splitlines()]
    stages = [line["stage"] for line in lines if line["type"] == "phase_changed" and line["stage"]]
    assert [s["name"] for s in stages if s["name"] in {"weights", "warm-up"}] == ["weights", "warm-up"]
    assert {s["of"] for s in stages if s["name"] == "compiling" and s["done"] is not None} == {199}


def test_of_a_machine_that_says_nothing_of_itself_the_plan_alone_tells(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 900, "guest_attributes": False})
    assert at.run("apply", "-auto-approve", "-wait", "granted", at.write(MEASURED)).code == 0
    at.clock.sleep(120)
    result = at.run("status", "gemma.yaml")
    match = re.search(r"boot +the machine reports no progress, at least (\d+) min left", result.out)
    assert match, result.out
    assert 6 <= int(match[1]) <= 11
    at.clock.sleep(900)
    assert "reports no progress" not in at.run("status", "gemma.yaml").out, "it serves"
