"""The dashboard: Grafana imports it as it is, every panel has what it needs, and every query is one that answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from itertools import combinations
from pathlib import Path
from typing import Any, TypeAlias

import pytest
import yaml
from command_line import PROFILE, Open
from features.alerts.promtool import Promtool

Json: TypeAlias = Mapping[str, Any]

SOURCE = {"type": "prometheus", "uid": "${datasource}"}
NAMES = {
    re.split(r"[{ ]", line)[0]
    for line in (Path(__file__).parent / "data" / "vllm_metrics_0.32.txt").read_text(encoding="utf-8").splitlines()
}
FILLED = {"$__rate_interval": "5m", "$job": "gemma", "$instance": ".+", "$model_name": ".+"}


@pytest.fixture
def dashboard(cli: Open) -> Json:
    at = cli()
    result = at.run("alerts", at.write(), "-format", "dashboard", "-ttft", "2.5")
    assert (result.code, result.err) == (0, "")
    tree: Json = json.loads(result.out)
    return tree


def panels(dashboard: Json) -> list[Json]:
    return [panel for panel in dashboard["panels"] if panel["type"] != "row"]


def queries(tree: Json) -> Iterator[str]:
    for panel in panels(tree):
        yield from (target["expr"] for target in panel["targets"])


def test_grafana_knows_every_key_and_loses_none(dashboard: Json) -> None:
    """Its own types read it and write it again: what they do not know would be missing then."""
    models = pytest.importorskip("grafana_foundation_sdk.models.dashboard", reason="`make test` installs it")
    plugins = pytest.importorskip("grafana_foundation_sdk.cog.plugins")
    encoder = pytest.importorskip("grafana_foundation_sdk.cog.encoder")
    plugins.register_default_plugins()
    again = json.loads(json.dumps(models.Dashboard.from_json(dashboard), cls=encoder.JSONEncoder))
    assert list(_missing_parts({**dashboard, "id": 1}, {**again, "id": 1}, "dashboard")) == []


def _missing_parts(ours: Any, theirs: Any, at: str) -> Iterator[str]:
    """What is ours alone; defaults that they add are theirs."""
    match ours, theirs:
        case dict(), dict():
            for key, value in ours.items():
                yield from _missing_parts(value, theirs.get(key, "nothing"), f"{at}.{key}")
        case list(), list() if len(ours) == len(theirs):
            for number, (one, other) in enumerate(zip(ours, theirs, strict=True)):
                yield from _missing_parts(one, other, f"{at}[{number}]")
        case _ if ours != theirs:
            yield f"{at}: {ours} became {theirs}"


def test_it_is_nobodys_yet_and_can_be_imported_again(dashboard: Json, cli: Open) -> None:
    assert dashboard["id"] is None
    assert re.fullmatch(r"[\w-]{1,40}", dashboard["uid"])
    assert dashboard["schemaVersion"] >= 39
    at = cli()
    at.write(), at.write(PROFILE.replace("name: gemma", "name: other"), "other.yaml")
    again = json.loads(at.run("alerts", "gemma.yaml", "-format", "dashboard").out)
    both = json.loads(at.run("alerts", "gemma.yaml", "other.yaml", "-format", "dashboard").out)
    assert again["uid"] == dashboard["uid"]
    assert both["uid"] != dashboard["uid"]
    assert both["templating"]["list"][1]["current"]["value"] == ["gemma", "other"]


def test_no_data_source_of_anybodys_is_in_it(dashboard: Json) -> None:
    first, *rest = dashboard["templating"]["list"]
    assert (first["type"], first["query"], first["name"]) == ("datasource", "prometheus", "datasource")
    assert all(variable["datasource"] == SOURCE for variable in rest)
    for panel in panels(dashboard):
        assert panel["datasource"] == SOURCE
        assert all(target["datasource"] == SOURCE for target in panel["targets"])


def test_panels_have_numbers_of_their_own_and_do_not_overlap(dashboard: Json) -> None:
    ids = [panel["id"] for panel in dashboard["panels"]]
    assert len(set(ids)) == len(ids)
    fields = [{(x, y) for x in _span(p, "x", "w") for y in _span(p, "y", "h")} for p in dashboard["panels"]]
    assert not any(one & other for one, other in combinations(fields, 2))
    assert all(0 <= x < 24 for field in fields for x, _ in field)
    lowest = max(y for field in fields for _, y in field)
    assert {(x, y) for field in fields for x, y in field} == {(x, y) for x in range(24) for y in range(lowest + 1)}


def _span(panel: Json, start: str, length: str) -> range:
    place = panel["gridPos"]
    return range(place[start], place[start] + place[length])


def test_every_panel_says_what_it_shows_and_in_what_unit(dashboard: Json) -> None:
    units = {"short", "s", "percentunit", "bytes", "reqps"}  # of Grafana's own list
    for panel in panels(dashboard):
        assert panel["title"]
        assert panel["description"].endswith(".")
        assert panel["fieldConfig"]["defaults"]["unit"] in units
        letters = [target["refId"] for target in panel["targets"]]
        assert letters == sorted(set(letters))
        assert all(target["legendFormat"] for target in panel["targets"])


def test_every_query_is_about_what_was_chosen(dashboard: Json) -> None:
    variables = {variable["name"] for variable in dashboard["templating"]["list"]}
    for query in queries(dashboard):
        for selector in re.findall(r"\{(.*?)\}", query):
            assert 'job=~"$job",instance=~"$instance"' in selector
        assert set(re.findall(r"\$(\w+)", query)) <= variables | {"__rate_interval"}
        if "rate(" in query:
            assert "[$__rate_interval]" in query


def test_every_query_reads_metrics_that_vllm_tells(dashboard: Json) -> None:
    requests = [*queries(dashboard), *(variable["query"] for variable in dashboard["templating"]["list"][1:])]
    read = {name for query in requests for name in re.findall(r"\b(?:vllm:\w+|process_\w+)", query)}
    assert len(read) > 15
    assert read <= NAMES


def test_every_query_is_one_that_prometheus_can_read(dashboard: Json, promtool: Promtool, tmp_path: Path) -> None:
    rules = []
    for number, query in enumerate(queries(dashboard)):
        text = query
        for variable, value in FILLED.items():
            text = text.replace(variable, value)
        assert "$" not in text
        rules.append({"record": f"panel:{number}", "expr": text})
    (tmp_path / "panels.yml").write_text(yaml.safe_dump({"groups": [{"name": "panels", "rules": rules}]}), "utf-8")
    result = promtool("check", "rules", "panels.yml")
    assert result.returncode == 0, result.stdout + result.stderr
    assert f"{len(rules)} rules found" in result.stdout


def test_lines_are_drawn_where_alerts_are(dashboard: Json) -> None:
    lines = {panel["title"]: panel["fieldConfig"]["defaults"]["thresholds"]["steps"] for panel in panels(dashboard)}
    assert lines["KV cache"][-1]["value"] == 0.85
    assert lines["Time to first token"][-1]["value"] == 2.5
    assert lines["Between tokens"] == [{"color": "green", "value": None}]
    assert {step["value"] for step in lines["Requests"]} == {None, 256}
    drawn = [p for p in panels(dashboard) if p["fieldConfig"]["defaults"]["custom"].get("thresholdsStyle")]
    for panel in drawn:
        style = panel["fieldConfig"]["defaults"]["custom"]["thresholdsStyle"]["mode"]
        assert (style == "dashed") == (len(panel["fieldConfig"]["defaults"]["thresholds"]["steps"]) == 2)
