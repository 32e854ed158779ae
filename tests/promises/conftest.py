"""How much of a long search is run."""

from __future__ import annotations

import pytest


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether a search is run whole (`make exhaustive`) or sampled under its seed."""
    return "exhaustive" in request.config.getoption("-m")
