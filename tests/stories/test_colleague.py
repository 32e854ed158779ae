"""A served model is asked what it makes of a boot that failed: its draft stands beside our finding, and is called one."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from agent import connected
from command_line import PROFILE, CommandLine, Open

FAILED = str(Path(__file__).parents[1] / "boot_log" / "data" / "boot_failed_qwix_int8_v5e1.log")
# Constructed, as OUT_OF_MEMORY of test_boot.py.
CRASH = "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space hbm. Used 33G of 31G hbm."
OTHER = PROFILE.replace("name: gemma", "name: helper")


@pytest.fixture
def failed_and_serving(cli: Open) -> CommandLine:
    """`gemma` did not come up, `helper` serves."""
    at: CommandLine = cli(nodes="real", trouble=[{"fault": "boot", "crash": CRASH, "times": 1}])
    at.write()
    at.write(OTHER, "helper.yaml")
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 1
    assert at.run("apply", "-auto-approve", "helper.yaml").code == 0
    return at


def test_another_deployment_drafts_what_the_failed_one_cannot(failed_and_serving: CommandLine) -> None:
    plain = failed_and_serving.run("logs", "--explain", "gemma.yaml")
    result = failed_and_serving.run("logs", "--explain", "--ask", "--with", "helper.yaml", "gemma.yaml")
    assert result.code == plain.code == 0
    assert result.out.startswith(plain.out), "our finding is what it was, and comes first"
    head, *draft = result.out.removeprefix(plain.out).strip().splitlines()
    assert head == ("A draft by google/gemma-4-E2B-it, asked at helper. A model wrote it, and it has not been checked:")
    assert draft
    assert all(line.startswith("  │") for line in draft)
    answer = re.search(r"The prompt had (\d+) tokens", " ".join(line[3:].strip() for line in draft))
    assert answer is not None
    assert int(answer[1]) > 200, "the evidence reached it"


def test_where_nothing_serves_it_says_so_and_the_finding_stands(failed_and_serving: CommandLine) -> None:
    plain = failed_and_serving.run("logs", "--explain", "gemma.yaml")
    result = failed_and_serving.run("logs", "--explain", "--ask", "gemma.yaml")
    assert (result.code, result.out) == (plain.code, plain.out)
    assert result.err == "No draft: gemma has no endpoint yet.\n  Ask one that serves: --with PROFILE.\n"


def test_programs_and_agents_get_finding_and_draft_apart(failed_and_serving: CommandLine) -> None:
    words, keys = ("logs", "--json", "--ask", "gemma.yaml"), ("logs", "draft", "no_draft")
    result = json.loads(failed_and_serving.run(*words, "--with", "helper.yaml").out)
    alone = json.loads(failed_and_serving.run(*words).out)
    with connected(failed_and_serving, allow_writes=False) as agent:
        drafted = agent.document("diagnose", profile="gemma.yaml", colleague="helper.yaml")
        assert {name: drafted[name] for name in keys} == {name: result[name] for name in keys}
        own = agent.document("diagnose", profile="gemma.yaml")
        assert {name: own[name] for name in keys} == {name: alone[name] for name in keys}
    assert result["draft"]["by"] == "helper"
    assert result["draft"]["is_checked"] is False
    assert result["draft"]["text"] not in json.dumps(result["logs"])
    assert result["no_draft"] is alone["draft"] is None
    assert alone["no_draft"]["because"] == "gemma has no endpoint yet."


def test_a_log_from_elsewhere_is_drafted_on_too_and_a_good_one_needs_none(cli: Open) -> None:
    at = cli(nodes="real")
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    assert "A draft by" in at.run("logs", "--file", FAILED, "--explain", "--ask", "--with", "gemma.yaml").out
    good = at.run("logs", "--explain", "--ask", "gemma.yaml")
    assert good.err == "No draft: Nothing failed: there is nothing to draft on.\n"


@pytest.mark.parametrize(("length", "message"), [(512, "gemma reads 512 tokens"), (1024, "gemma has no endpoint yet")])
def test_who_reads_too_little_is_not_asked(cli: Open, length: int, message: str) -> None:
    at = cli()
    at.write(PROFILE.replace("16384", str(length)))
    result = at.run("logs", "--file", FAILED, "--explain", "--ask", "--with", "gemma.yaml")
    assert result.code == 0
    assert result.err.startswith(f"No draft: {message}")


@pytest.mark.parametrize(
    "words",
    [
        ("--ask", "gemma.yaml"),
        ("--explain", "--with", "gemma.yaml", "gemma.yaml"),
        ("--explain", "--ask", "--file", FAILED),
        ("--explain", "--ask", "--follow", "gemma.yaml"),
    ],
)
def test_asking_without_a_finding_or_without_anybody_is_refused(cli: Open, words: tuple[str, ...]) -> None:
    at = cli()
    at.write()
    result = at.run("logs", *words)
    assert (result.code, result.out) == (1, "")
    assert result.err.startswith("Error: ")
