"""What the promises share."""

from __future__ import annotations

import pytest
from promises.extent import is_whole

from tpudeploy.domain.patience import Patience


@pytest.fixture
def default_patience() -> Patience:
    """The product's own waiting times: a promise is attacked at every moment at which a user's run acts."""
    return Patience()


@pytest.fixture
def whole(request: pytest.FixtureRequest) -> bool:
    """Whether a search is run whole, or sampled under its seed."""
    return is_whole(request.config.getoption("-m"))
