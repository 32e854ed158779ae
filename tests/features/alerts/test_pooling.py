"""Alerts and panels of servers that generate no token: none waits for one, and a healthy server raises no alarm."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import PROFILE, Open
from features.alerts.promtool import Promtool

EMBED = PROFILE.replace("google/gemma-4-E2B-it", "Qwen/Qwen3-Embedding-8B").replace("v6e-1", "v6e-4")
OTHER = PROFILE.replace("google/gemma-4-E2B-it", "somebody/something")
_OF_TOKENS = ("generation_tokens", "time_to_first_token", "inter_token_latency")


def rules_of(text: str) -> dict[str, Any]:
    return {rule["alert"]: rule for rule in yaml.safe_load(text)["groups"][0]["rules"]}


@pytest.mark.parametrize("answers", ["0+10x60", "0x60"], ids=["it answers", "it hangs"])
def test_an_embedding_server_makes_progress_by_the_prompts_that_it_answers(
    answers: str, cli: Open, promtool: Promtool, tmp_path: Path
) -> None:
    at = cli()
    result = at.run("alerts", at.write(EMBED))
    assert result.code == 0, result.all
    (tmp_path / "rules.yml").write_text(result.out, encoding="utf-8")
    labels = '{job="gemma",instance="0",engine="0",model_name="Qwen/Qwen3-Embedding-8B"}'
    series = {"up": "1x60", "vllm:num_requests_running": "8x60", "vllm:generation_tokens_total": "0x60"}
    series["vllm:prompt_tokens_total"] = answers
    expected = [{"labels": '{alertname="VllmNoProgress"}', "value": 1}] if answers == "0x60" else []
    test = {
        "interval": "15s",
        "input_series": [{"series": f"{name}{labels}", "values": values} for name, values in series.items()],
        "promql_expr_test": [
            {"expr": 'count by (alertname) (ALERTS{alertstate="firing"})', "eval_time": "10m", "exp_samples": expected}
        ],
    }
    whole = {"rule_files": ["rules.yml"], "evaluation_interval": "15s", "tests": [test]}
    (tmp_path / "test.yml").write_text(yaml.safe_dump(whole), encoding="utf-8")
    tested = promtool("test", "rules", "test.yml")
    assert tested.returncode == 0, tested.stdout + tested.stderr


def test_no_rule_of_an_embedding_server_is_about_generated_tokens(cli: Open) -> None:
    at = cli()
    result = at.run("alerts", at.write(EMBED))
    rules = rules_of(result.out)
    assert "VllmTtftHigh" not in rules
    assert not any(word in rule["expr"] for rule in rules.values() for word in _OF_TOKENS)
    assert "generates no tokens, so it has no figures of first tokens" in result.err
    assert "-ttft SECONDS sets the limit" not in result.err


def test_a_limit_for_the_first_token_of_an_embedding_server_is_refused(cli: Open) -> None:
    at = cli()
    refused = at.run("alerts", at.write(EMBED), "-ttft", "2.5")
    assert refused.code == 1
    assert "it completes no prompts, so no first token can be late" in refused.words


def test_of_two_servers_only_the_one_that_completes_gets_a_limit(cli: Open) -> None:
    at = cli()
    at.write(EMBED.replace("name: gemma", "name: embed"), "embed.yaml")
    result = at.run("alerts", at.write(), "embed.yaml", "-ttft", "2.5")
    assert result.code == 0, result.all
    assert result.out.count("VllmTtftHigh") == 1
    assert "Note: embed generates no tokens" in result.err


def test_the_dashboard_of_an_embedding_server_has_no_panel_that_stays_empty(cli: Open) -> None:
    at = cli()
    tree = json.loads(at.run("alerts", at.write(EMBED), "-format", "dashboard").out)
    lines = [[target["expr"] for target in panel["targets"]] for panel in tree["panels"] if panel["type"] != "row"]
    assert len(lines) > 10
    assert all(any(not any(word in line for word in _OF_TOKENS) for line in panel) for panel in lines)
    both = json.loads(at.run("alerts", at.write(), "-format", "dashboard").out)
    assert len(both["panels"]) > len(tree["panels"])


def test_a_server_of_unknown_task_makes_progress_in_either_way(cli: Open) -> None:
    at = cli()
    expr = rules_of(at.run("alerts", at.write(OTHER)).out)["VllmNoProgress"]["expr"]
    assert "generation_tokens_total" in expr
    assert "prompt_tokens_total" in expr
