"""The package cites rules and functions of an engine by name: a line number is of one release, and nothing checks it."""

from __future__ import annotations

import re
from pathlib import Path

PACKAGE = Path(__file__).parents[2] / "tpudeploy"
# `[core.py:1349]` is a log's own text, which the emulator prints and the readers of logs describe.
_CITATION = re.compile(r"(?<!\[)\b\w+\.py:[0-9]+")


def test_no_line_of_the_package_cites_a_line_of_an_engine() -> None:
    citations = [
        f"{path.relative_to(PACKAGE)}: {line.strip()}"
        for path in sorted(PACKAGE.rglob("*.py"))
        for line in path.read_text(encoding="utf-8").splitlines()
        if _CITATION.search(line)
    ]
    assert citations == []
