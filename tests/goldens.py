"""Whole texts, held against files in tests/golden. `UPDATE_GOLDEN=1 pytest …` writes them anew: read the diff."""

from __future__ import annotations

import os
import re
from difflib import unified_diff
from pathlib import Path

import pytest

FOLDER = Path(__file__).parent / "golden"

# What differs from run to run (the lineage in a name, a machine's own address, the person), and what the emulator's
# timings alone decide.
_PASSING = (
    (re.compile(r"-[0-9a-f]{8}-(?=\d+-\d+\b)"), "-00000000-"),
    (re.compile(r"http://127\.\d+\.\d+\.\d+:\d+"), "http://ADDRESS:8000"),
    (re.compile(r"(\d+[dhms] ?)+(?= elapsed)|(?<=complete after )(\d+[dhms] ?)+|(?<=  age       )\d.*"), "TIME"),
    (re.compile(r"\(started by [^)]*\)"), "(started by SOMEBODY)"),
)


def assert_golden(name: str, text: str, *, folder: Path | None = None) -> None:
    """`text` is what stands in tests/golden/`name`; paths below `folder` are shown from there."""
    hold(FOLDER / name, lasting(text, folder))


def lasting(text: str, folder: Path | None = None) -> str:
    """What of it is the same in every run."""
    plain = text if folder is None else text.replace(f"{folder}/", "").replace(str(folder), ".")
    for pattern, stands_for in _PASSING:
        plain = pattern.sub(stands_for, plain)
    return plain


def hold(path: Path, text: str) -> None:
    """`text` is what stands in `path`, byte for byte."""
    if os.environ.get("UPDATE_GOLDEN"):
        path.parent.mkdir(parents=True, exist_ok=True)
        path.write_text(text, encoding="utf-8")
    stored = path.read_text(encoding="utf-8")
    if text != stored:
        difference = unified_diff(stored.splitlines(), text.splitlines(), f"{path.name}, held", "now", lineterm="")
        pytest.fail("\n".join(["UPDATE_GOLDEN=1 writes it anew:", *difference]), pytrace=False)
