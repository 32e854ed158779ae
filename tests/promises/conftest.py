"""What the promises share."""

from __future__ import annotations

import pytest
from promises.extent import is_whole


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether a search is run whole, or sampled under its seed."""
    return is_whole(request.config.getoption("-m"))
