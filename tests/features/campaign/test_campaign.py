"""A campaign at the command line: every cell is measured once, on as few slices as the grid needs, wherever it is killed."""

from __future__ import annotations

import json
from collections.abc import Mapping
from random import Random
from typing import Any

import pytest
from command_line import CommandLine, Open

GRID = """\
version: 1
name: small
base: gemma.yaml
models: [google/gemma-4-E2B-it, google/gemma-4-E4B-it, Qwen/Qwen3-4B]
slices: [v6e-1, v6e-4]
settings:
  serving.padding_gap: [0, 512]
cells: {concurrency: [1], context: [16], output: [2], window: 1s}
chips: 12
budget: 80
"""
TWO = GRID.replace(", Qwen/Qwen3-4B]", "]").replace(
    "slices: [v6e-1, v6e-4]\nsettings:\n  serving.padding_gap: [0, 512]\n", ""
)
BUCKET = ("--backend", "gs://states/team")
SAMPLE, ALL = 3, 20  # kills


@pytest.fixture
def at(cli: Open) -> CommandLine:
    at: CommandLine = cli(boot={"boot_seconds": 5})
    at.write()
    at.write(GRID, "grid.yaml")
    at.write(TWO, "two.yaml")
    return at


def result(at: CommandLine, *words: str) -> Mapping[str, Any]:
    output = at.run("campaign", "show", "small", "-json", *words)
    assert output.code == 0, output.all
    tree: Mapping[str, Any] = json.loads(output.out)
    return tree


def assert_ledger_is_the_bill(at: CommandLine, *words: str) -> None:
    """Each slice of the emulator's bill is in the ledger with its time, to the second, and nothing else is."""
    rows = json.loads(at.run("cost", "-group-by", "slice", "-json", *words).out)["rows"]
    seconds = {row.name: row.ended - row.began for row in at.emulator.bill() if row.ended is not None}
    assert {row["key"]: row["chip_hours"] * 3600 for row in rows} == pytest.approx(
        {name: seconds[name] * (4 if "v6e-4" in name else 1) for name in seconds}, abs=4.0
    )


def assert_each_cell_is_measured_once(at: CommandLine, count: int, *words: str) -> None:
    tree = result(at, *words)
    keys = [cell["key"] for cell in tree["cells"]]
    assert (len(keys), len(set(keys))) == (count, count)
    assert (tree["cells_left"], tree["ended_at"] is not None) == (0, True)
    runs = json.loads(at.run("bench", "list", "-json", *words).out)["runs"]
    assert sum(each["cells"] for each in runs) == count, "no cell is measured twice"


def test_six_deployments_with_two_flags_take_two_slices_which_are_deleted_at_the_end(at: CommandLine) -> None:
    run = at.run("campaign", "grid.yaml", "-auto-approve")
    assert run.code == 0, run.all
    assert "12 servers, 12 cells" in run.words
    assert "12 of 12 cells measured, 0 failed, 0 left." in run.words
    assert len(at.emulator.bill()) == 2, "every model and flag on a slice is a change in place"
    assert at.emulator.billed() == ()
    assert_each_cell_is_measured_once(at, 12)
    assert_ledger_is_the_bill(at)
    again = at.run("campaign", "grid.yaml", "-auto-approve")
    assert (again.code, "Nothing is left to measure." in again.words) == (0, True)
    assert len(at.emulator.bill()) == 2


@pytest.mark.parametrize(
    "seed", [pytest.param(seed, marks=[] if seed < SAMPLE else pytest.mark.long) for seed in range(ALL)]
)
def test_killed_at_any_instant_it_resumes_and_leaves_nothing(at: CommandLine, seed: int) -> None:
    draw = Random(seed)
    where = BUCKET if seed % 2 else ()
    for _ in range(2):
        at.left_or_killed(draw.uniform(5, 900), "campaign", "grid.yaml", "-auto-approve", *where)
        at.clock.sleep(draw.uniform(1, 120))
    run = at.run("campaign", "grid.yaml", "-auto-approve", *where)
    assert run.code == 0, run.all
    assert at.emulator.billed() == ()
    assert_each_cell_is_measured_once(at, 12, *where)
    assert_ledger_is_the_bill(at, *where)
