"""Alert rules as Prometheus itself reads them: they load, each fires when it should, and none when it should not."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import PROFILE, CommandLine, Open
from features.alerts.promtool import Promtool
from features.alerts.series import CASES, Case

from tpudeploy.cli.main import main

TWO = PROFILE.replace("max_model_len: 16384", "max_model_len: 16384\n  max_num_seqs: 4") + "replicas: 2\n"
DUMP = (Path(__file__).parent / "data" / "vllm_metrics_0.32.txt").read_text(encoding="utf-8")


@pytest.fixture
def rules(tmp_path: Path) -> Mapping[str, Any]:
    """Of two servers of four requests at once, whose first tokens are wanted in 2.5 s."""
    (tmp_path / "gemma.yaml").write_text(TWO, encoding="utf-8")
    assert main(["alerts", "--chdir", str(tmp_path), "gemma.yaml", "-ttft", "2.5", "-out", "rules.yml"]) == 0
    tree: Mapping[str, Any] = yaml.safe_load((tmp_path / "rules.yml").read_text(encoding="utf-8"))
    return tree


def test_prometheus_takes_the_rules(rules: Mapping[str, Any], promtool: Promtool) -> None:
    result = promtool("check", "rules", "rules.yml")
    assert result.returncode == 0, result.stderr
    assert "9 rules found" in result.stdout


@pytest.mark.parametrize("case", CASES, ids=lambda case: case.about.replace(" ", "-"))
def test_exactly_what_should_fire_fires(
    case: Case, rules: Mapping[str, Any], promtool: Promtool, tmp_path: Path
) -> None:
    test = {"rule_files": ["rules.yml"], "evaluation_interval": "15s", "tests": [case.to_promtool()]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test), encoding="utf-8")
    result = promtool("test", "rules", "test.yml")
    assert result.returncode == 0, result.stdout + result.stderr


def test_every_alert_fires_in_one_of_the_cases_and_is_silent_at_work_in_another(rules: Mapping[str, Any]) -> None:
    names = {rule["alert"] for rule in rules["groups"][0]["rules"]}
    assert {name for case in CASES for fired in case.fires.values() for name in fired} == names
    busy = next(case for case in CASES if case.about.startswith("a busy day"))
    assert not any(busy.fires.values())


def test_every_metric_that_a_rule_reads_is_one_that_vllm_tells(rules: Mapping[str, Any]) -> None:
    metrics = set(re.findall(r"^([a-z_:]+)\{", DUMP, re.MULTILINE)) | {"up"}
    read = set(re.findall(r"\b(vllm:\w+|up)\{", " ".join(rule["expr"] for rule in rules["groups"][0]["rules"])))
    assert "vllm:num_requests_waiting" in read
    assert read <= metrics


def test_thresholds_are_the_profiles_own(rules: Mapping[str, Any]) -> None:
    answer = {rule["alert"]: rule["expr"] for rule in rules["groups"][0]["rules"]}
    engine = '{job="gemma",model_name="google/gemma-4-E2B-it"}'
    over = "by (job, model_name)"
    running = f"vllm:num_requests_running{engine}"
    assert answer["VllmKvCacheNearlyFull"] == f"max {over} (vllm:kv_cache_usage_perc{engine}) > 0.85"
    assert answer["VllmQueueSaturated"] == f"sum {over} (vllm:num_requests_waiting{engine}) > 0"
    assert answer["VllmBatchFull"] == f"sum {over} ({running}) >= 4 * count {over} ({running})"
    assert answer["VllmReplicaDown"] == 'count(up{job="gemma"} == 1) < 2'
    assert answer["VllmTtftHigh"].endswith(" > 2.5")


def test_a_texts_templates_are_ones_that_prometheus_fills(promtool: Promtool, rules: Any, tmp_path: Path) -> None:
    answer = {rule["alert"]: rule for rule in rules["groups"][0]["rules"]}["VllmKvCacheNearlyFull"]
    (case,) = (case for case in CASES if case.about == "the KV cache is full for a minute")
    expected = {
        "exp_labels": {
            "deployment": "gemma",
            "severity": "warning",
            "job": "gemma",
            "model_name": "google/gemma-4-E2B-it",
        },
        "exp_annotations": {
            "summary": "The KV cache of gemma is 86% full",
            "description": answer["annotations"]["description"],
        },
    }
    firing = {"eval_time": "4m", "alertname": "VllmKvCacheNearlyFull", "exp_alerts": [expected]}
    one = {**case.to_promtool(), "promql_expr_test": [], "alert_rule_test": [firing]}
    test = {"rule_files": ["rules.yml"], "evaluation_interval": "15s", "tests": [one]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(test), encoding="utf-8")
    result = promtool("test", "rules", "test.yml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert "[" not in answer["annotations"]["summary"]


def test_a_name_that_promql_has_to_quote_is_quoted(promtool: Promtool, cli: Open) -> None:
    at: CommandLine = cli()
    odd = 'a "quoted" \\ näme {{ .Value }}\n'
    profile = at.write()
    result = at.run("alerts", profile, "-out", "rules.yml", "--set", f"serving.args.served_model_name={odd!r}")
    assert result.code == 0, result.all
    assert promtool("check", "rules", "rules.yml").returncode == 0


def test_several_profiles_have_a_group_each(cli: Open, promtool: Promtool) -> None:
    at = cli()
    at.write(), at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    assert at.run("alerts", "gemma.yaml", "other.yaml", "-out", "rules.yml").code == 0
    result = promtool("check", "rules", "rules.yml")
    assert result.returncode == 0, result.stdout + result.stderr
    tree = yaml.safe_load((at.folder / "rules.yml").read_text(encoding="utf-8"))
    assert [group["name"] for group in tree["groups"]] == ["vllm-gemma", "vllm-other"]


def test_one_name_twice_is_an_error(cli: Open) -> None:
    at = cli()
    at.write(), at.write(name="again.yaml")
    result = at.run("alerts", "gemma.yaml", "again.yaml")
    assert result.code == 1
    assert "Two profiles are named gemma." in result.err


def test_without_a_target_there_is_no_rule_for_the_first_token_and_it_is_said(cli: Open) -> None:
    at = cli()
    result = at.run("alerts", at.write())
    assert "VllmTtftHigh" not in result.out
    assert "-ttft SECONDS" in result.err


def test_a_target_between_two_buckets_is_told_to_be_a_guess(cli: Open) -> None:
    at = cli()
    result = at.run("alerts", at.write(), "-ttft", "2")
    assert "VllmTtftHigh" in result.out
    assert "up to 1 s and up to 2.5 s; 2 s is interpolated. `-ttft 2.5` is exact." in result.err
    assert at.run("alerts", "gemma.yaml", "-ttft", "2.5").err == ""


@pytest.mark.parametrize("duration", ["0", "-1", "soon", "inf", "nan"])
def test_what_is_no_time_is_a_usage_error(cli: Open, duration: str) -> None:
    at = cli()
    result = at.run("alerts", at.write(), f"-ttft={duration}")
    assert result.code == 1
    assert f"`{duration}` is not a" in result.err


def test_an_engine_that_tells_nothing_is_warned_about(cli: Open) -> None:
    at = cli()
    result = at.run("alerts", at.write(), "--set", "serving.args.disable_log_stats=true")
    assert result.code == 0
    assert "gemma has --disable-log-stats" in result.err
