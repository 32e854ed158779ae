"""What holds at the end of every campaign: each cell once, and a ledger that is the bill."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any

from command_line import CommandLine


def document(at: CommandLine, *words: str) -> Mapping[str, Any]:
    """Return the JSON document of a command, which ends well."""
    output = at.run(*words, "-json")
    assert output.code == 0, output.all
    tree: Mapping[str, Any] = json.loads(output.out)
    return tree


def assert_ledger_is_the_bill(at: CommandLine, *words: str, late: float = 1.0) -> None:
    """Each slice of the emulator's bill is in the ledger with its time, and nothing else is.

    The end of a slice that Google took is that at which a run noticed it, which may be this many seconds `late`. Of a
    request without a trace, which may have ended itself while no run looked, the ledger has a bound, and says so.
    """
    cost = document(at, "cost", "-group-by", "slice", *words)
    ledger = {row["key"]: row["chip_hours"] * 3600 / (4 if "v6e-4" in row["key"] else 1) for row in cost["rows"]}
    bill = {row.name: row.ended - row.began for row in at.emulator.bill() if row.ended is not None}
    assert ledger.keys() - bill.keys() <= set(cost["bounds"]), (ledger, bill)
    assert all(-1.0 <= ledger[name] - bill[name] <= late for name in bill), (ledger, bill)


def assert_each_cell_is_measured_once(at: CommandLine, count: int, *words: str) -> None:
    tree = document(at, "campaign", "show", "small", *words)
    keys = [cell["key"] for cell in tree["cells"]]
    assert (len(keys), len(set(keys))) == (count, count)
    assert (tree["cells_left"], tree["ended_at"] is not None) == (0, True)
    runs = document(at, "bench", "list", *words)["runs"]
    assert sum(each["cells"] for each in runs) == count, "no cell is measured twice"
