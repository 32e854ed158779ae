"""Text, JSON, exit code and library say the same of one thing, and two facts on one screen agree."""

from __future__ import annotations

import json

import pytest
from command_line import PROFILE, Open

import tpudeploy as td

V5E = PROFILE.replace("v6e-1", "v5litepod-1").replace("us-east5-a, us-east5-b, europe-west4-a", "us-west4-a")


def with_utilization(share: float) -> str:
    return V5E.replace("max_model_len: 16384", f"max_model_len: 16384\n  hbm_utilization: {share}")


@pytest.mark.parametrize(
    ("text", "fits", "words", "code"),
    [
        pytest.param(with_utilization(0.92), True, "TP 1 fits", 0, id="booted"),
        pytest.param(with_utilization(0.95), None, "may run out of memory while it compiles", 0, id="on the edge"),
        pytest.param(with_utilization(0.98), False, "would not start: TPU2105", 13, id="no room for programs"),
        pytest.param(V5E.replace("E2B", "31B"), False, "does not fit: 58.25 GiB of weights a chip", 13, id="too large"),
    ],
)
def test_size_validate_plan_and_the_library_give_one_verdict(
    cli: Open, text: str, fits: bool | None, words: str, code: int
) -> None:
    at = cli()
    profile = at.write(text)
    sized, document, planned = at.run("size", profile), at.run("size", "-json", profile), at.run("plan", profile)
    assert words in sized.words
    assert ("TP 1 fits" in sized.words) is (fits is True)
    assert ("short: compiling may run out of memory" in sized.words) is (fits is None)
    assert (sized.code, document.code) == (code, code)
    assert json.loads(document.out)["fits"] is fits
    assert (at.run("validate", profile).code == 0) is (planned.code == 0) is (fits is not False)
    assert ("Cold start about" in planned.words) is (fits is not False)
    (goal,) = json.loads(at.run("plan", "-json", profile).out)["goals"]
    assert goal["size"]["fits"] is fits
    result = td.size(at.folder / profile)
    assert (result.budget.fits, result.exit_code) == (fits, code)
