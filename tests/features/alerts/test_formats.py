"""The same rules in every form, and the configuration that collects what they read."""

from __future__ import annotations

import re
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import PROFILE, CommandLine, Open
from features.alerts.promtool import Promtool
from goldens import assert_golden

DUMP = (Path(__file__).parent / "data" / "vllm_metrics_0.32.txt").read_text(encoding="utf-8")
SERVED = DUMP.splitlines()


def alert_documents(at: CommandLine, form: str, *more: str) -> list[Mapping[str, Any]]:
    result = at.run("alerts", "gemma.yaml", "-format", form, *more)
    assert result.code == 0, result.all
    return list(yaml.safe_load_all(result.out))


@pytest.mark.parametrize(
    ("form", "version", "kind"),
    [
        ("prometheusrule", "monitoring.coreos.com/v1", "PrometheusRule"),
        ("gmp", "monitoring.googleapis.com/v1", "GlobalRules"),
    ],
)
def test_a_resource_holds_the_rules_as_they_are(cli: Open, form: str, version: str, kind: str) -> None:
    at = cli()
    at.write()
    (rules,) = alert_documents(at, "rules", "-ttft", "2.5")
    (resource,) = alert_documents(at, form, "-ttft", "2.5")
    assert (resource["apiVersion"], resource["kind"]) == (version, kind)
    assert re.fullmatch(r"[a-z0-9]([-a-z0-9]*[a-z0-9])?", resource["metadata"]["name"])
    assert resource["spec"] == rules


def test_several_deployments_are_several_resources(cli: Open) -> None:
    at = cli()
    at.write(), at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    names = [resource["metadata"]["name"] for resource in alert_documents(at, "gmp", "other.yaml")]
    assert names == ["vllm-gemma", "vllm-other"]


def test_google_is_asked_for_rules_that_see_machines_outside_of_a_cluster(cli: Open) -> None:
    """A `Rules` or `ClusterRules` would only see what its own cluster collects, and never fire."""
    at = cli()
    at.write()
    assert [resource["kind"] for resource in alert_documents(at, "gmp")] == ["GlobalRules"]


@pytest.mark.parametrize("form", ["rules", "ops-agent"])
def test_what_is_written_reads_well(cli: Open, form: str) -> None:
    at = cli()
    result = at.run("alerts", at.write(PROFILE + "replicas: 2\n"), "-format", form, "-ttft", "2.5")
    assert_golden(f"alerts/{form}", result.out)


@pytest.fixture
def agent(cli: Open) -> tuple[CommandLine, Mapping[str, Any]]:
    at = cli()
    at.write(PROFILE.replace("max_model_len: 16384", "port: 9000"))
    (tree,) = alert_documents(at, "ops-agent")
    return at, tree


def test_the_ops_agent_scrapes_the_server_under_the_deployments_name(
    agent: tuple[CommandLine, Mapping[str, Any]],
) -> None:
    metrics = agent[1]["metrics"]
    (name,) = metrics["receivers"]
    assert metrics["service"]["pipelines"][name] == {"receivers": [name]}  # it refuses processors here
    (scrape,) = metrics["receivers"][name]["config"]["scrape_configs"]
    assert metrics["receivers"][name]["type"] == "prometheus"
    assert scrape["job_name"] == "gemma"
    assert scrape["static_configs"] == [{"targets": ["127.0.0.1:9000"]}]


def test_prometheus_takes_what_the_ops_agent_is_told(
    agent: tuple[CommandLine, Mapping[str, Any]], promtool: Promtool
) -> None:
    at, tree = agent
    (at.folder / "config.yml").write_text(yaml.safe_dump(tree["metrics"]["receivers"]["vllm"]["config"]), "utf-8")
    result = promtool("check", "config", "config.yml")
    assert result.returncode == 0, result.stdout + result.stderr


def test_what_is_dropped_is_not_what_is_read(agent: tuple[CommandLine, Mapping[str, Any]]) -> None:
    at, tree = agent
    (scrape,) = tree["metrics"]["receivers"]["vllm"]["config"]["scrape_configs"]
    (relabel,) = scrape["metric_relabel_configs"]
    dropped = {name for name in _names() if re.fullmatch(relabel["regex"], name)}
    dashboard = at.run("alerts", "gemma.yaml", "-format", "dashboard").out
    rules = at.run("alerts", "gemma.yaml", "-ttft", "1").out
    read = set(re.findall(r"\b(?:vllm:|process_)\w+", dashboard + rules)) & _names()
    assert len(read) > 15
    assert not dropped & read
    lines = [line for line in SERVED if not line.startswith("#")]
    scraped = [line for line in lines if re.split(r"[{ ]", line)[0] not in dropped]
    assert len(scraped) < 0.9 * len(lines)


def _names() -> set[str]:
    return {re.split(r"[{ ]", line)[0] for line in SERVED if not line.startswith("#")}


def test_an_ops_agent_has_one_server(cli: Open) -> None:
    at = cli()
    at.write(), at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    result = at.run("alerts", "gemma.yaml", "other.yaml", "-format", "ops-agent")
    assert result.code == 1
    assert "Name one profile." in result.err


def test_a_file_is_written_whole_and_named(cli: Open) -> None:
    at = cli()
    at.write()
    printed = at.run("alerts", "gemma.yaml", "-ttft", "1").out
    result = at.run("alerts", "gemma.yaml", "-ttft", "1", "-out", "monitoring/gemma.yml")
    assert (result.code, result.out, result.err) == (0, "", "Wrote monitoring/gemma.yml.\n")
    assert (at.folder / "monitoring" / "gemma.yml").read_text(encoding="utf-8") == printed


def test_a_place_that_cannot_be_written_is_an_error(cli: Open) -> None:
    at = cli()
    at.write(), at.write("", "full")
    result = at.run("alerts", "gemma.yaml", "-out", "full/rules.yml")
    assert result.code == 1
    assert "cannot be written" in result.err


def test_a_form_that_there_is_not_is_an_error(cli: Open) -> None:
    at = cli()
    result = at.run("alerts", at.write(), "-format", "nagios")
    assert result.code == 1
    assert "prometheusrule" in result.err
