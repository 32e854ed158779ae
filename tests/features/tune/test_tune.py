"""The flags that suit a load best: raced in place on the slice that serves, claimed by an interval, written as an overlay."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

import pytest
import yaml
from command_line import PROFILE, CommandLine, Open
from other_process import holding

LOAD = ("-concurrency", "32", "-context", "512", "-output", "64")
SEQUENCES = ("-try", "serving.max_num_seqs=64,128")
TUNE = ("tune", "gemma.yaml", *LOAD, "-max-cost", "5", "-auto-approve")


@pytest.fixture
def at(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 60, "paced": True, "noise": 0.003})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def tuned(at: CommandLine, *words: str) -> Mapping[str, Any]:
    result = at.run(*TUNE, *words, "--json")
    assert result.code == 0, result.all
    tree: Mapping[str, Any] = json.loads(result.out)
    return tree


def test_the_overlay_has_only_what_is_better_with_its_interval(at: CommandLine) -> None:
    tree = tuned(at, *SEQUENCES, "-out", "overlay.yaml", "-pull-request", "body.md")
    assert tree["finding"] == "better", tree
    assert tree["settings"] == {"serving.max_num_seqs": "64"}
    assert 0 < tree["low"] < tree["change"] < tree["high"]
    assert tree["usd"] < 5
    text = (at.folder / "overlay.yaml").read_text()
    assert yaml.safe_load(text) == {"serving": {"max_num_seqs": 64}}
    assert "On the emulator: no figure here" in text
    assert at.run("validate", "gemma.yaml", "-f", "overlay.yaml").code == 0
    body = (at.folder / "body.md").read_text()
    assert "95 % interval" in body
    assert "On the emulator: no figure here" in body
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0, "it serves as its profile says again"


def test_a_tuning_that_is_killed_measures_nothing_twice(at: CommandLine) -> None:
    for after in (400.0, 900.0, 1700.0):
        at.left_or_killed(after, *TUNE, *SEQUENCES)
    tree = tuned(at, *SEQUENCES)
    runs = [trial["run"] for trial in tree["trials"]]
    assert len(set(runs)) == len(runs)
    stored = [json.loads(file.read_text()) for file in (at.folder / ".tpudeploy" / "runs").glob("2*.json")]
    places = [run["turn"]["place"] for run in stored]
    assert sorted(places) == list(range(len(runs))), "each measurement has one run"
    before = at.clock.now()
    again = tuned(at, *SEQUENCES)
    assert again["settings"] == tree["settings"]
    assert at.clock.now() - before < 60, "a finished tuning is only shown"
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


def test_what_was_not_there_is_gone_at_the_end(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 60, "paced": True})
    at.write()
    tree = tuned(at, *SEQUENCES)
    assert at.emulator.billed() == (), "nothing is billed any more"
    bill = sum(row.ended - row.began for row in at.emulator.bill() if row.ended is not None)
    assert bill / 3600 * tree["usd_per_hour"] < 5


def test_what_costs_quality_is_left_out_of_the_overlay(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 60, "paced": True, "knows": {"": 0.95, "max-num-seqs=64": 0.4}})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    tree = tuned(at, *SEQUENCES, "-accuracy", "arithmetic")
    assert tree["quality_losses"] == ["serving.max_num_seqs=64"]
    assert "64" not in tree["settings"].values()
    assert "max_num_seqs: 64" not in tree["overlay"]
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0


def test_a_limit_excludes_what_is_too_slow_and_too_little_money_is_refused(at: CommandLine) -> None:
    tree = tuned(at, *SEQUENCES, "-limit-ttft", "1ms")
    assert tree["finding"] == "no better settings"
    assert any("ttft-p99 is" in trial["why"] for trial in tree["trials"])
    result = at.run("tune", "gemma.yaml", *LOAD, *SEQUENCES, "-max-cost", "0.05", "-auto-approve")
    assert (result.code, "takes at least about $" in result.err) == (1, True), result.all


def test_without_a_list_it_tries_what_can_start_and_can_help_and_says_what_it_leaves_out(at: CommandLine) -> None:
    result = at.run("tune", "gemma.yaml", *LOAD, "-dry-run")
    assert result.code == 0, result.all
    assert "max_num_seqs: as written | serving.max_num_seqs=64" in result.out
    assert "not measured: max_num_seqs (128, 256, 512 only pad: the load has 32 streams)" in result.words
    assert "not measured: hbm_utilization (the KV cache holds the whole load already)" in result.words
    assert "serving.max_num_batched_tokens=4096" in result.out
    assert "serving.padding_gap=0" not in result.out, "it is what the engine does already"
    assert "enable_prefix_caching (the prompts of the load share no prefix to be cached)" in result.words


def test_a_slice_of_its_own_ends_within_the_money_also_after_a_kill(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 60, "paced": True, "noise": 0.003})
    at.write()
    words = ("tune", "gemma.yaml", *LOAD, *SEQUENCES, "-auto-approve", "-max-cost")
    result = at.run(*words, "2")
    assert result.code == 1
    assert "on a slice of its own takes at least $" in result.err
    at.left_or_killed(900.0, *words, "5")
    at.clock.sleep(600.0)
    result = at.run(*words, "5", "--json")
    assert result.code == 0, result.all
    assert json.loads(result.out)["trials"]
    costs = json.loads(at.run("cost", "--json").out)
    assert 0 < costs["total"]["usd"] <= 5
    assert at.run("status").out == "Nothing is deployed from this folder.\n"


def test_one_tuning_of_a_deployment_runs_at_a_time(at: CommandLine) -> None:
    with holding(at.folder / ".tpudeploy", "_tune-gemma", who="ada"):
        second = at.run(*TUNE, *SEQUENCES)
        assert second.code == 10
        assert "A tuning of gemma is already run by ada (process" in second.words
        assert "-lock-timeout" in second.words
        assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0, "its server is left alone"
    assert tuned(at, *SEQUENCES)["trials"]


def test_an_edit_of_the_profile_while_it_is_tuned_changes_no_measurement_and_is_said(at: CommandLine) -> None:
    began, edited = at.clock.now(), PROFILE.replace("max_model_len: 16384", "max_model_len: 8192")

    def edit() -> None:
        if at.clock.now() > began + 300:
            at.write(edited)

    at.clock.on_advance.append(edit)
    run = at.run(*TUNE, *SEQUENCES)
    at.clock.on_advance.remove(edit)
    assert run.code == 0, run.all
    assert run.words.count("gemma.yaml was edited. This tuning continues with the profile as it was") == 1
    at.write(PROFILE)
    assert at.run("plan", "gemma.yaml", "-detailed-exitcode").code == 0, "it serves as the profile said"


def test_the_slice_of_a_killed_tuning_is_no_other_tunings(cli: Open) -> None:
    """That one would leave it running at its end: a tuning deletes what it requested itself."""
    at = cli(boot={"boot_seconds": 60, "paced": True})
    at.write()
    at.left_or_killed(1500.0, *TUNE, *SEQUENCES)
    assert len(at.emulator.billed()) == 1
    at.write(PROFILE.replace("max_model_len: 16384", "max_model_len: 8192"))
    run = at.run(*TUNE, *SEQUENCES)
    assert run.code == 1
    assert "gemma is on the slice of tune-" in run.words
    assert "tpudeploy destroy gemma" in run.words
    at.write()
    assert tuned(at, *SEQUENCES)["trials"]
    assert at.emulator.billed() == ()


def test_questions_that_do_not_exist_are_refused_before_anything_is_measured(at: CommandLine) -> None:
    run = at.run(*TUNE, *SEQUENCES, "-accuracy", "arithmetics")
    assert (run.code, "arithmetics" in run.err) == (1, True), run.all
    assert "not measured" not in run.out
