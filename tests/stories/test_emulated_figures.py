"""What the emulator's figures say of themselves: a mark wherever they go, and no evidence unless somebody asks."""

from __future__ import annotations

import csv
import io
import json
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from answering import answering, http
from command_line import Result, command

# A result of aiperf that every rule believes.
CELL = {
    "schema_version": "1.4",
    "aiperf_version": "0.13.0",
    "input_config": {
        "endpoint": {"model_names": ["google/gemma-4-E2B-it"]},
        "load": [{"phase": {"concurrency": 64}}],
    },
    "request_count": {"unit": "requests", "avg": 1200.0},
    "benchmark_duration": {"unit": "sec", "avg": 60.0},
    "input_sequence_length": {"unit": "tokens", "avg": 4096.0},
    "output_sequence_length": {"unit": "tokens", "avg": 256.0},
    "effective_concurrency": {"unit": "requests", "avg": 64.0},
    "request_throughput": {"unit": "requests/sec", "avg": 20.0},
    "output_token_throughput": {"unit": "tokens/sec", "avg": 5120.0},
    "time_to_first_token": {"unit": "ms", "avg": 400.0, "p50": 400.0, "p95": 800.0, "count": 200},
    "request_latency": {"unit": "ms", "avg": 3200.0},
}
PROFILE = Path(__file__).parents[2] / "profiles" / "gemma4-e2b-v6e1.yaml"


class CommandLine:
    """A folder with a profile, in a shell where the cloud is the emulator."""

    def __init__(self, folder: Path, capture: pytest.CaptureFixture[str]) -> None:
        (folder / "e2b.yaml").write_text(PROFILE.read_text())
        self.folder = folder
        self.run = partial(command, folder, capture)

    def measured(self) -> str:
        """The id of a run that every rule believes, but that it was measured on the emulator."""
        (self.folder / "cell.json").write_text(json.dumps(CELL), encoding="utf-8")
        result = self.run("bench", "import", "cell.json", "--type", "v6e-4", "--usd-per-hour", "5.00", "--json")
        assert result.code == 0, result.all
        tree: Any = json.loads(result.out)
        assert tree["subject"]["is_emulated"] is True
        return str(tree["id"])


@pytest.fixture
def at(tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch) -> CommandLine:
    monkeypatch.setenv("TPU_EMULATOR_HOST", "127.0.0.1:9")
    return CommandLine(tmp_path, capfd)


def test_an_address_that_is_a_stand_in_is_marked_though_nothing_but_the_server_says_so(
    tmp_path: Path, capfd: pytest.CaptureFixture[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.delenv("TPU_EMULATOR_HOST", raising=False)
    model = http('{"data": [{"id": "m"}]}')
    usage = json.dumps({"choices": [{"text": "x"}], "usage": {"prompt_tokens": 8, "completion_tokens": 1}})
    completion = http(f"data: {usage}\n\ndata: [DONE]\n\n")
    version = http('{"version": "0.32.0"}')
    stand_in = version.replace(b"Content-Length", b"Server: tpudeploy-emulator\r\nContent-Length")
    words = ("--concurrency", "1", "--context", "8", "--output", "1", "--window", "50ms", "--json")
    for reply, is_emulated in ((stand_in, True), (version, False)):
        with answering({"/v1/models": model, "/v1/completions": completion, "/version": reply}) as url:
            result = command(tmp_path, capfd, "bench", "--url", url, *words)
        assert json.loads(result.out)["subject"]["is_emulated"] is is_emulated


def test_lists_and_comparisons_mark_the_run(at: CommandLine) -> None:
    one, other = at.measured(), at.measured()
    assert at.run("bench", "list").out.count("emulator") == 2
    result = at.run("compare", one, other)
    assert result.code == 0, result.all
    assert f"{one} (emulator)" in result.out
    assert f"{one}, {other}: measured on the emulator, where no model runs" in result.out
    tree = json.loads(at.run("compare", one, other, "--json").out)
    assert [run["subject"]["is_emulated"] for run in tree["runs"]] == [True, True]


def test_a_report_marks_its_page_its_csv_and_its_chart(at: CommandLine) -> None:
    own = at.measured()
    assert at.run("bench", "report", own, "-o", "report.html").code == 0
    assert "On the emulator: no figure here" in (at.folder / "report.html").read_text()
    (row,) = csv.DictReader(io.StringIO((at.folder / "report.csv").read_text()))
    assert row["emulated"] == "yes"
    chart = json.loads((at.folder / "report.vl.json").read_text())
    assert chart["title"] == f"Run {own} (emulator)"
    assert [value["emulated"] for value in chart["data"]["values"]] == ["yes"]


def recommend(at: CommandLine, *more: str) -> Result:
    return at.run("recommend", "e2b.yaml", "--users", "64", "--context", "4096", "--output", "256", *more)


def test_recommend_takes_no_emulated_run_as_evidence_unless_it_is_asked_to(at: CommandLine) -> None:
    own = at.measured()
    output = recommend(at)
    assert output.code == 0, output.all
    assert f"not run {own} on v6e-4: it was measured on the emulator, where no model runs" in output.err
    assert "knows memory, not speed" in output.err
    recommendation = recommend(at, "--emulated")
    assert f"(run {own}, emulator)" in recommendation.err
    assert "On the emulator: no figure here" in recommendation.err
    assert recommendation.out.startswith(f"# From run {own}, measured on the emulator")
    assert yaml.safe_load(recommendation.out)["tpu"]["type"] == "v6e-4"
    choice = json.loads(recommend(at, "--emulated", "--json").out)["choices"][0]
    assert (choice["run"], choice["is_emulated"]) == (own, True)


def test_operating_points_of_an_emulated_run_say_so(at: CommandLine) -> None:
    own = at.measured()
    result = at.run("recommend", "--run", own)
    assert f"Operating points of run {own} (emulator)" in result.out
    assert "On the emulator: no figure here" in result.out
    assert json.loads(at.run("recommend", "--run", own, "--json").out)["emulated"] is True


@pytest.mark.parametrize("form", ["rules", "prometheusrule", "gmp", "dashboard"])
def test_a_limit_from_an_emulated_run_says_so_in_every_form(at: CommandLine, form: str) -> None:
    own = at.measured()
    result = at.run("alerts", "e2b.yaml", "--run", own, "--format", form)
    assert result.code == 0, result.all
    mark = f"s is from run {own}, measured on the emulator, and says nothing about a TPU."
    assert mark in " ".join(result.out.split())
    assert "Warning: 2.5 s is from run" in result.err
    tree = json.loads(at.run("alerts", "e2b.yaml", "--run", own, "--format", form, "--json").out)
    assert any(mark in remark for remark in tree["remarks"])
