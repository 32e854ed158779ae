"""The tests of a folder of the product are found by its name, and no two files of tests have one name."""

from __future__ import annotations

from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PRODUCT, TESTS = ROOT / "tpudeploy", ROOT / "tests"
# Folders that have no tests of their own, and where they are tested instead.
WITHOUT = {
    "operations": "each one is a command: tests/stories",
    "schemas": "held against what commands write: tests/stories/test_machine_readable.py, test_documents.py",
    "text": "read in what the views print: tests/views, tests/cli/test_widths.py",
}
# Folders of tests that no folder of the product has the name of.
BESIDE = {
    "stories": "what a user gets of several folders at once",
    "promises": "what README promises, attacked at random",
    "house": "the house itself",
    "examples": "the folder examples/",
    "field": "files that others wrote",
    "bench": "measured, not tested",
    "oracle": "the real vLLM",
    "real_engine": "the real engine",
    "real_ray": "the real Ray",
    "real_systemd": "the real systemd",
    "golden": "whole texts",
}


def test_each_folder_of_the_product_has_tests_of_its_name() -> None:
    folders = {path.parent.name for path in PRODUCT.glob("*/__init__.py")}
    assert {folder for folder in folders if not _has_tests(TESTS / folder)} == set(WITHOUT)


def test_each_feature_has_tests_of_its_name() -> None:
    features = {path.parent.name for path in PRODUCT.glob("features/*/__init__.py")}
    assert {feature for feature in features if not _has_tests(TESTS / "features" / feature)} == set()


@pytest.mark.parametrize("folder", ["", "features"])
def test_each_folder_of_tests_is_that_of_a_folder_of_the_product_or_says_what_it_is(folder: str) -> None:
    tests = {path.name for path in (TESTS / folder).iterdir() if any(path.rglob("*.py")) or path.name == "golden"}
    product = {path.parent.name for path in (PRODUCT / folder).glob("*/__init__.py")}
    assert {name for name in tests if "." not in name} - product == (set(BESIDE) if not folder else set())


def test_no_two_files_of_tests_have_one_name() -> None:
    assert [name for name, files in Counter(path.name for path in TESTS.rglob("test_*.py")).items() if files > 1] == []


def _has_tests(folder: Path) -> bool:
    return any(folder.rglob("test_*.py"))
