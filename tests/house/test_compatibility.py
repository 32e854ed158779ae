"""docs/compatibility.md is written from the catalog: a new generation, release, family or fault is on it."""

from __future__ import annotations

import importlib.util
from pathlib import Path

from goldens import hold

from tpudeploy.catalog import engines, releases
from tpudeploy.catalog.families import FAMILIES
from tpudeploy.catalog.generations import GENERATIONS

DOCS = Path(__file__).parents[2] / "docs"


def _page() -> str:
    spec = importlib.util.spec_from_file_location("compatibility", DOCS / "compatibility.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    text: str = module.page()
    return text


def test_the_page_is_that_of_the_tables() -> None:
    hold(DOCS / "compatibility.md", _page())


def test_it_has_each_generation_release_family_and_known_fault() -> None:
    page = _page()
    for generation in GENERATIONS:
        assert f"| {generation.name} |" in page
    for version in releases.VERSIONS:
        assert f"| v{version} |" in page
    for family in FAMILIES:
        assert f"| {family.name} |" in page
    for fault in engines.FAULTS:
        assert fault.source in page
