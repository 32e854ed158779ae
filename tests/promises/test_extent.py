"""Long searches are run whole by the command that says so."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from promises.extent import is_whole

MAKEFILE = (Path(__file__).parents[2] / "Makefile").read_text(encoding="utf-8")


@pytest.mark.parametrize(("target", "whole"), [("exhaustive", True), ("test", False)])
def test_make_exhaustive_searches_whole_and_make_test_samples(target: str, *, whole: bool) -> None:
    rule = re.search(rf"^{target}: .*\n\tpytest .*-m '([^']+)'", MAKEFILE, re.MULTILINE)
    assert rule is not None
    assert is_whole(rule[1]) is whole
