"""Runs beside each other, and beside what others published: the figures, what they are worth, what more chips bring."""

from __future__ import annotations

import json
from collections.abc import Callable
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from command_line import Result, command

import tpudeploy as td

Run = Callable[..., Result]
E2B = {
    # users: v6e-1, v6e-4, as printed
    1: ("3.81=", "5.14"),
    2: ("6.72", "8.32"),
    4: ("11.9=", "12.5"),
    8: ("21.5", "16.5"),
    16: ("34.9=", "34.3="),
    32: ("58.2", "58.1"),
    64: ("64.7=", "101="),
    128: ("71.9", "140"),
    256: ("72.4", "181"),
    512: ("70.1", "223"),
    1024: ("72.8", "231"),
    2048: ("71.4", "174"),
}


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """A command in a folder of its own."""
    return partial(command, tmp_path, capfd)


def test_a_published_table_is_reproduced_with_its_copied_figures_marked(run: Run) -> None:
    result = run("compare", "agent-e2b-v6e-1", "agent-e2b-v6e-4")
    assert result.code == 0, result.all
    rows = {line.split()[0]: line.split()[1:3] for line in result.out.splitlines()[2:14]}
    assert rows == {f"{users:,}": list(row) for users, row in E2B.items()}
    assert "=  another subject has the same figure" in result.out


@pytest.mark.parametrize(
    ("model", "ratio", "doubling", "is_doubted"),
    [("e2b", "3.17", "1.78", False), ("e4b", "3.46", "1.86", True), ("12b", "2.87", "1.69", False)],
)
def test_published_scaling_is_computed_from_the_tables(
    run: Run, model: str, ratio: str, doubling: str, *, is_doubted: bool
) -> None:
    result = run("compare", f"agent-{model}-v6e-1", f"agent-{model}-v6e-4")
    assert result.code == 0, result.all
    assert f"4 times the chips, {ratio} times the requests: {doubling} a doubling" in result.out
    assert ("; doubted)" in result.out) is is_doubted


def test_published_prefill_beyond_what_chips_can_do_is_marked(run: Run) -> None:
    result = run("compare", "fp8-26b-v6e-4", "fp8-26b-v6e-4-earlier", "-by", "input")
    assert "379,253R" in result.out
    assert "446,233R" in result.out
    assert "2,025 " in result.out, "one user is far from it"


def test_a_flag_s_published_effect_reads_as_it_was_published(run: Run) -> None:
    ttft = run("compare", "prefill-off-e4b-b200", "prefill-on-e4b-b200", "-by", "ttft").out
    assert [line.split()[-1] for line in ttft.splitlines()[2:4]] == ["0.64x", "0.66x"]  # -36.3 %, -34.0 %
    rate = run("compare", "prefill-off-e4b-b200", "prefill-on-e4b-b200").out
    assert [line.split()[-1] for line in rate.splitlines()[2:4]] == ["1.20x", "1.39x"]  # +19.9 %, +38.9 %


def test_ones_own_run_stands_beside_a_published_one(run: Run, tmp_path: Path) -> None:
    grid = Path(__file__).parents[2] / "bench" / "grid_e2b_v6e1.csv"
    rows = [line for line in grid.read_text().splitlines() if line.split(",")[1] in {"8", "context_len"}]
    (tmp_path / "grid.csv").write_text("\n".join(rows) + "\n")
    imported = run("bench", "import", "grid.csv", "--model", "google/gemma-4-E2B-it", "--type", "v6e-1", "--json")
    own = json.loads(imported.out)["id"]
    result = run("compare", own[:-2], "agent-e2b-v6e-1", "agent-e2b-v6e-4")
    assert result.code == 0, result.all
    first = result.out.splitlines()[2].split()
    assert first[:2] == ["1", "5.42"]
    assert first[3] == f"{3.81 / 5.423056854536055:.2f}x"
    assert result.out.count("4 times the chips") == 2, "both of the one slice, against that of four"


TABLES = [
    *("agent-e2b-v6e-1", "agent-e2b-v6e-4", "agent-e4b-v6e-1", "agent-e4b-v6e-4", "agent-12b-v6e-1"),
    *("agent-12b-v6e-4", "fp8-26b-v6e-4", "fp8-26b-v6e-4-earlier", "agent-answer-e2b-v6e-4"),
    *("turbo-1-4b-v6e-4", "turbo-2-26b-v6e-4", "turbo-3-26b-v6e-4", "prefill-off-e4b-b200", "prefill-on-e4b-b200"),
]


def test_a_grid_of_ones_own_stands_beside_every_published_table(run: Run, tmp_path: Path) -> None:
    lines = [
        f"{streams},{context},{2.5 * streams},0.4"
        for context in (128, 1024, 8192)
        for streams in (1, 4, 8, 16, 32, 64, 256)
    ]
    head = "concurrency,context_len,throughput_req_sec,avg_latency_s"
    (tmp_path / "grid.csv").write_text("\n".join([head, *lines]) + "\n")
    imported = run("bench", "import", "grid.csv", "--model", "google/gemma-4-E2B-it", "--type", "v6e-1", "--json")
    own = json.loads(imported.out)["id"]
    published = json.loads(run("compare", "--published", "--json").out)["runs"]
    assert [each["id"] for each in published] == TABLES
    for table in TABLES:
        result = run("compare", own, table)
        assert result.code == 0, result.all
        only_best = {
            point["concurrency"] for each in published if each["id"] == table for point in each["sweep"]["points"]
        }
        words = "the best of each run" if only_best == {None} else "Not the same load"
        assert words in result.words, table
        assert "at 1 streams" not in result.words


def test_runs_without_a_cell_in_common_are_not_compared(run: Run) -> None:
    result = run("compare", "fp8-26b-v6e-4", "agent-12b-v6e-1")
    assert result.code == 1
    assert "have no cell in common" in result.err
    assert "fp8-26b-v6e-4: streams 1,32,128,1024" in result.err


def test_the_streams_and_the_answers_that_a_published_table_leaves_out_are_unknown_and_not_0(run: Run) -> None:
    runs = json.loads(run("compare", "--published", "--json").out)["runs"]
    points = {each["id"]: each["sweep"]["points"] for each in runs}
    assert {point["output_tokens"] for point in points["agent-e2b-v6e-1"]} == {None}
    assert points["agent-12b-v6e-1"] == [{"concurrency": None, "context_tokens": 8, "output_tokens": None}]


def test_what_there_is_to_compare_with_is_listed(run: Run, tmp_path: Path) -> None:
    result = run("compare", "--published")
    assert "agent-e2b-v6e-1" in result.out
    with td.Workspace.open(tmp_path) as workspace:
        assert f"{workspace.benchmark_runs(published=True)}\n" == result.out
    tree: dict[str, Any] = json.loads(run("compare", "--published", "--json").out)
    assert {each["driver"] for each in tree["runs"]} == {"published"}
    one = run("compare", "agent-e2b-v6e-1")
    assert one.code == 1
    assert "--published" in one.err


def test_a_comparison_is_data_too(run: Run) -> None:
    tree = json.loads(run("compare", "agent-e2b-v6e-1", "agent-e2b-v6e-4", "--json").out)
    assert tree["format"] == "tpudeploy.comparison/1"
    assert tree["scalings"][0]["ratio"] == pytest.approx(231.19 / 72.83)
    assert tree["rows"][0]["cells"][0]["status"] == "copy_suspect"


def test_an_article_has_the_pass_rates_and_starts_of_the_three_published_runs(run: Run, tmp_path: Path) -> None:
    words = ("turbo-1-4b-v6e-4", "turbo-2-26b-v6e-4", "turbo-3-26b-v6e-4")
    assert run("compare", *words, "-o", "article.md").code == 0
    lines = (tmp_path / "article.md").read_text("utf-8").partition("## The runs")[2].splitlines()
    rows = [[cell.strip() for cell in line.strip("|").split("|")] for line in lines if "published, " in line]
    assert [row[1:] for row in rows] == [
        ["published, 8 May 2026", "463,345", "0.800s", "100% (light points)", "about 20 min"],
        ["published, 13 May 2026", "483,930", "0.326s", "94% of 144", "about 24 min"],
        ["published, May 2026", "467,825", "0.302s", "100% of 144", "< 10 s, warm caches"],
    ]
