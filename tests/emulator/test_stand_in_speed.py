"""A stand-in that takes as long as a chip might: cells to trust at any speed, and figures near the published ones."""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Mapping
from statistics import median
from typing import Any

import pytest
from bench.stand_in_speed import rows
from command_line import CommandLine, Open

from tpudeploy import Workspace

SWEEP = ("-concurrency", "1,16,64,256", "-context", "128,1024", "-output", "64")


@pytest.fixture
def at(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 5, "paced": True})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    return at


def measured(at: CommandLine, *words: str) -> Mapping[str, Any]:
    result = at.run("bench", "gemma.yaml", "--json", *words)
    assert result.code == 0, result.all
    tree: Mapping[str, Any] = json.loads(result.out)
    return tree


def test_published_figures_that_can_be_believed_are_met_within_a_quarter() -> None:
    errors = [abs(row.error) for row in rows() if not row.doubt]
    assert len(errors) > 30
    assert median(errors) < 0.15
    assert sum(error <= 0.25 for error in errors) >= 0.85 * len(errors)


def test_every_cell_is_trusted_and_the_run_leads_to_a_decision(at: CommandLine) -> None:
    run = measured(at, *SWEEP)
    assert Counter(cell["status"] for cell in run["cells"]) == {"ok": 8}
    assert run["subject"]["is_emulated"] is True
    rates = [cell["figures"]["requests_per_second"] for cell in run["cells"] if cell["point"]["context_tokens"] == 128]
    assert rates == sorted(rates), "more streams, more requests per second"
    assert "On the emulator: no figure here" in at.run("bench", "show", run["id"]).out
    points = Workspace(folder=at.folder).operating_points(run["id"]).points
    assert set(points) == {(128, 64), (1024, 64)}
    assert {point.aim for point in points[128, 64]} >= {"latency", "throughput"}
    assert at.run("bench", "report", run["id"], "-o", "report.html").code == 0
    assert "On the emulator: no figure here" in (at.folder / "report.html").read_text()
    words = ("recommend", "gemma.yaml", "--users", "64", "--context", "1024", "--output", "64")
    assert f"run {run['id']}" in at.run(*words, "--emulated").err
    assert f"(run {run['id']}, emulator)" not in at.run(*words).err, "no evidence unless somebody asks"


def test_a_cell_takes_the_emulators_time_and_none_of_ours(at: CommandLine) -> None:
    before = at.clock.now()
    run = measured(at, "-concurrency", "64", "-context", "1024", "-output", "64", "-window", "10m")
    (cell,) = run["cells"]
    assert cell["figures"]["window_seconds"] >= 600
    assert at.clock.now() - before >= cell["seconds"] >= 600


def test_without_its_own_pace_the_stand_in_answers_at_once_as_before(cli: Open) -> None:
    at = cli(boot={"boot_seconds": 5})
    assert at.run("apply", "-auto-approve", at.write()).code == 0
    run = measured(at, "-concurrency", "2", "-context", "16", "-output", "2", "-window", "50ms")
    assert run["cells"][0]["figures"]["window_seconds"] < 10
