"""Which slice is kept, where several were granted."""

from __future__ import annotations

from typing import Any

import pytest
from reconcile.cases import FLEX, NOW, ON_DEMAND, SPOT, A, B, attempt, granted

from tpudeploy.domain.deployment import Place
from tpudeploy.domain.names import Zone
from tpudeploy.domain.state import Attempt
from tpudeploy.reconcile.preference import preference_key

LATER: dict[str, Any] = {"minutes_ago": 1}


@pytest.mark.parametrize(
    ("preferred", "other"),
    [
        pytest.param(
            granted(B, **LATER), granted(A, served=True, draining_at=NOW), id="clients were not sent away from it"
        ),
        pytest.param(granted(A, **LATER, served=True), granted(B), id="clients use it, though its place is doubtful"),
        pytest.param(granted(B, **LATER), granted(A), id="its place is not doubtful"),
        pytest.param(
            granted(B, **LATER), granted(B, name="other", is_reclaimed=True), id="its deletion was never requested"
        ),
        pytest.param(granted(B), granted(B, name="other", **LATER), id="it was granted first"),
        pytest.param(granted(B), attempt(B, name="other"), id="it was granted, and the other one was not"),
        pytest.param(granted(B, FLEX), granted(B, ON_DEMAND, name="other"), id="it is cheaper"),
        pytest.param(granted(B), granted(Zone("xx-west1-a")), id="its price is known"),
        pytest.param(granted(B, asked_at=NOW - 900), granted(B, name="other"), id="it was requested first"),
        pytest.param(granted(B, name="a"), granted(B, name="b"), id="its name comes first"),
    ],
)
def test_the_slice_that_is_kept(preferred: Attempt, other: Attempt) -> None:
    """Only landings in A, spot, have failed before."""
    for pair in ((preferred, other), (other, preferred)):
        assert min(pair, key=lambda one: preference_key(one, {Place(A, SPOT)})) is preferred


def test_without_doubtful_places_the_first_grant_counts() -> None:
    first, second = granted(A), granted(B, **LATER)
    assert min((second, first), key=preference_key) is first
