"""A label brings the A/B of a pull request's setting, or a benchmark, as a check; at night a regression opens an issue."""

from __future__ import annotations

from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open
from github_api import BOT, GitHubApi
from workflow import HEAD, MERGED, PULL, Both, Pipeline

LOAD = ("-concurrency", "32", "-context", "512", "-output", "64")
AB = ("ci", "ab", "gemma.yaml", *LOAD, "-repeats", "2", "-max-cost", "5")
BENCH = ("ci", "bench", "gemma.yaml", *LOAD, "-max-cost", "5")
FEW = PROFILE.replace("max_model_len", "max_num_seqs: 64\n  max_model_len")
MANY = FEW.replace("max_num_seqs: 64", "max_num_seqs: 1024")


@pytest.fixture
def both(cli: Open, forge: GitHubApi, monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Both:
    at: CommandLine = cli(boot={"boot_seconds": 60, "paced": True, "noise": 0.003})
    assert at.run("apply", "-auto-approve", at.write(FEW)).code == 0
    return at, Pipeline(forge, monkeypatch, tmp_path / "runner")


def test_the_one_setting_of_a_pull_request_is_compared_and_a_worse_one_fails_the_check(both: Both) -> None:
    at, here = both
    at.write(MANY, "proposed.yaml")
    result = at.run(*AB, "-proposed", "proposed.yaml")
    assert result.code == 13, result.all
    (status,) = here.statuses(HEAD)
    assert status == ("tpudeploy/ab", "failure")
    (comment,) = here.api.by(BOT, PULL)
    assert "### A/B of `gemma`" in comment
    assert "95 % interval" in comment
    assert here.api.statuses[HEAD][0]["description"].startswith("serving.max_num_seqs=64,1024: keep A (worse)")
    assert here.outputs["exit-code"] == "13"
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0, "it serves as main says again"


def test_a_better_setting_passes_and_a_second_run_replaces_the_comment(both: Both) -> None:
    at, here = both
    words = ("-ab", "serving.max_num_seqs=1024,64")
    at.write(MANY)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    assert at.run(*AB, *words).code == 0
    assert at.run(*AB, *words).code == 0
    assert {state for _, state in here.statuses(HEAD)} == {"success"}
    assert len(here.api.by(BOT, PULL)) == 1


@pytest.mark.parametrize(
    ("words", "message"),
    [
        (("ci", "ab", "gemma.yaml", "-ab", "serving.max_num_seqs=64,1024"), "`ci ab` needs a ceiling."),
        (("ci", "bench", "gemma.yaml"), "`ci bench` needs a ceiling."),
        ((*BENCH[:2], "-max-cost", "5"), "`ci bench` measures exactly one profile."),
        (AB, "`ci ab` needs two values."),
        ((*AB, "-proposed", "gemma.yaml"), "An A/B compares one setting, and nothing differs."),
        ((*AB, "-proposed", "two.yaml"), "serving.max_model_len, serving.max_num_seqs differs."),
    ],
)
def test_nothing_is_measured_without_a_ceiling_or_without_a_question(
    both: Both, words: tuple[str, ...], message: str
) -> None:
    at, here = both
    at.write(MANY.replace("16384", "8192"), "two.yaml")
    result = at.run(*words)
    assert result.code == 1
    assert message in result.words
    assert here.outputs["failure-reason"]


def test_a_fork_measures_nothing(both: Both) -> None:
    at, here = both
    here.on_pull_request(repository="mallory/models")
    result = at.run(*BENCH)
    assert result.code == 0
    assert "nothing is measured" in result.out
    assert not (at.folder / ".tpudeploy" / "runs").exists()


def test_at_night_a_regression_opens_an_issue_with_its_interval_and_a_good_night_closes_it(both: Both) -> None:
    at, here = both
    here.on_schedule()
    verdicts = []
    for _ in range(4):
        at.clock.sleep(86_400)
        result = at.run(*BENCH)
        assert result.code == 0, result.all
        verdicts.append(result.words)
    assert "No trend yet: 3 more runs" in verdicts[0]
    assert "gemma is as fast as in the last 3 runs." in verdicts[3]
    assert here.api.issues == []

    at.write(MANY)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(86_400)
    assert at.run(*BENCH).code == 13
    (issue,) = here.api.issues
    assert issue["title"] == "tpudeploy: gemma became slower: output, ttft, tpot."
    assert "regression" in issue["body"]
    assert " to -" in issue["body"], "the interval of the throughput"
    assert here.statuses(MERGED)[-1] == ("tpudeploy/bench", "failure")
    assert at.run("bench", "trend", "2").code == 1, "several begin so"

    at.write(FEW)
    assert at.run("apply", "-auto-approve", "gemma.yaml").code == 0
    at.clock.sleep(86_400)
    assert at.run(*BENCH).code == 0
    assert [each["state"] for each in here.api.issues] == ["closed"]
