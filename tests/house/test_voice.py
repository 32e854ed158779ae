"""Pages for users read like the READMEs of well-known packages: few relative clauses, few commas before `and`."""

from __future__ import annotations

import re
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
# Reasons, for those who change tpudeploy: not rewritten yet.
_FOR_MAINTAINERS = ("docs/decisions.md",)
PAGES = sorted(
    {path.relative_to(ROOT).as_posix() for path in (ROOT / "docs").rglob("*.md") if "reference" not in path.parts}
    - set(_FOR_MAINTAINERS)
    | {
        "README.md",
        "ARCHITECTURE.md",
        "CONTRIBUTING.md",
        "SUPPORT.md",
        "SECURITY.md",
        "examples/README.md",
        "profiles/README.md",
    }
)


@pytest.mark.parametrize("page", PAGES)
def test_a_page_has_few_relative_clauses_and_few_commas_before_and(page: str) -> None:
    text = re.sub(r"```.*?```", "", (ROOT / page).read_text(encoding="utf-8"), flags=re.DOTALL)
    text = re.sub(r"`[^`]*`", "x", re.sub(r"\]\([^)]*\)", "]", text))
    words = re.findall(r"[A-Za-z']+", text.lower())
    relative = sum(word in ("that", "which", "whose") for word in words)
    assert 1000 * relative <= 10 * len(words), f"{relative} in {len(words)} words"
    # One in a page of a few lines is not a habit.
    assert text.count(", and ") <= max(1, 5 * len(words) / 1000), f"{text.count(', and ')} in {len(words)} words"
