"""ARCHITECTURE draws the life of an attempt as its table has it."""

from __future__ import annotations

from house.lifecycle_diagram import PAGE, diagram, drawn


def test_the_diagram_in_architecture_is_that_of_the_table() -> None:
    page = PAGE.read_text(encoding="utf-8")
    assert diagram() in page
    assert drawn(page) == page, "run: python tests/house/lifecycle_diagram.py"
