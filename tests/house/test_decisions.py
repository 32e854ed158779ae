"""Each decision is cited by the code that it explains, and a citation names a decision that exists."""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
DECISIONS = [
    int(number)
    for number in re.findall(
        r"^(\d+)\. \*\*", (ROOT / "docs" / "decisions.md").read_text(encoding="utf-8"), re.MULTILINE
    )
]
_CITATION = re.compile(r"[Dd]ecisions? (\d+(?:(?:, | and )\d+)*)")


@cache
def cited() -> set[int]:
    files = [path for folder in ("tpudeploy", "templates", "tests") for path in (ROOT / folder).rglob("*")]
    texts = [path.read_text(encoding="utf-8") for path in files if path.suffix in {".py", ".sh", ".j2"}]
    texts.append((ROOT / "pyproject.toml").read_text(encoding="utf-8"))
    return {int(number) for text in texts for m in _CITATION.finditer(text) for number in re.findall(r"\d+", m[1])}


def test_no_number_is_used_twice() -> None:
    assert len(DECISIONS) == len(set(DECISIONS))


@pytest.mark.parametrize("number", DECISIONS)
def test_a_decision_is_cited_by_the_code_that_it_explains(number: int) -> None:
    assert number in cited()


def test_a_citation_names_a_decision() -> None:
    assert cited() <= set(DECISIONS)
