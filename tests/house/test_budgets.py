"""A room above its budget, a late import and a raised number are caught, and name themselves."""

from __future__ import annotations

from pathlib import Path

import pytest
from house.budgets import FILE, ROOT, measure, raised, read, room_of, tightened, violations
from house.test_decisions import DECISIONS

BUDGETS = """\
[lines]
"tpudeploy/engine" = { most = 3 }
"tpudeploy/gone" = { most = 7 }
[counts]
"kernel" = { most = 9, goal = 2 }
"product" = { most = 9 }
"imports inside functions" = { most = 0 }
"TYPE_CHECKING blocks" = { most = 1 }
"surface per operation" = { most = 9 }
"""
MODULE = "from typing import TYPE_CHECKING\nif TYPE_CHECKING:\n    import os\n"
LATE = "def run():\n    import os\n    def inner():\n        import sys\n"


def _plant(folder: Path, text: str) -> None:
    folder.joinpath("tpudeploy", "engine").mkdir(parents=True)
    folder.joinpath("tpudeploy", "engine", "retry.py").write_text(text, encoding="utf-8")


@pytest.mark.parametrize(
    ("text", "problems"),
    [
        (MODULE, []),
        (f"{MODULE}\n", ["tpudeploy/engine: 4, budget 3. Most in tpudeploy/engine/retry.py (4)"]),
        (
            LATE[: LATE.index("    def")],
            ["imports inside functions: 1, budget 0. Most in tpudeploy/engine/retry.py (1)"],
        ),
        (
            LATE,
            [
                "tpudeploy/engine: 4, budget 3. Most in tpudeploy/engine/retry.py (4)",
                "imports inside functions: 2, budget 0. Most in tpudeploy/engine/retry.py (2)",
            ],
        ),
    ],
    ids=["within", "a line more", "a late import", "both"],
)
def test_what_is_above_its_budget_is_named_with_its_module(tmp_path: Path, text: str, problems: list[str]) -> None:
    _plant(tmp_path, text)
    assert list(violations(*measure(tmp_path), read(BUDGETS))) == problems


def test_a_room_without_a_budget_is_a_violation(tmp_path: Path) -> None:
    _plant(tmp_path, MODULE)
    budgets = read(BUDGETS.replace("tpudeploy/engine", "tpudeploy/other"))
    assert [line.partition(".")[0] for line in violations(*measure(tmp_path), budgets)] == [
        "tpudeploy/engine: 3, no budget"
    ]


def test_a_room_is_a_folder_of_the_product_of_features_or_of_tests() -> None:
    rooms = {
        path: room_of(path) for path in ("tpudeploy/pins.py", "tpudeploy/adapters/state/gcs.py", "templates/boot/a.sh")
    }
    assert list(rooms.values()) == ["tpudeploy", "tpudeploy/adapters", "templates"]
    assert room_of("tpudeploy/features/tune/space.py") == "tpudeploy/features/tune"
    assert room_of("tests/features/tune/test_space.py") == "tests/features/tune"


@pytest.mark.parametrize(
    ("entry", "is_caught"),
    [("most = 2", False), ("most = 4", True), ("most = 4, decision = 1", False)],
    ids=["lowered", "raised", "raised with a decision"],
)
def test_a_number_goes_up_only_with_a_new_decision(entry: str, is_caught: bool) -> None:
    after = read(BUDGETS.replace("most = 3", entry))
    assert bool(list(raised(read(BUDGETS), after))) is is_caught


def test_a_decision_covers_one_raise() -> None:
    before = read(BUDGETS.replace("most = 3", "most = 4, decision = 1"))
    after = read(BUDGETS.replace("most = 3", "most = 5, decision = 1"))
    assert list(raised(before, after)) == ["tpudeploy/engine: raised from 4 to 5 without a new decision"]


def test_tightening_lowers_each_number_to_what_is(tmp_path: Path) -> None:
    _plant(tmp_path, "import os\n")
    text = tightened(BUDGETS, measure(tmp_path)[0])
    assert {name: entry["most"] for name, entry in read(text).items()} == {
        "tpudeploy/engine": 1,
        "kernel": 1,
        "product": 1,
        "imports inside functions": 0,
        "TYPE_CHECKING blocks": 0,
        "surface per operation": 0,
    }
    assert "goal = 2" in text


def test_each_decision_that_a_budget_names_exists() -> None:
    budgets = read((ROOT / FILE).read_text(encoding="utf-8"))
    assert {entry["decision"] for entry in budgets.values() if "decision" in entry} <= set(DECISIONS)
