"""How long the next look is waited for."""

from __future__ import annotations

import pytest

from tpudeploy.domain.patience import Patience


@pytest.mark.parametrize(
    ("quiet_looks", "slices", "seconds"),
    [
        pytest.param(0, 1, 1.0, id="one slice, right after a change"),
        pytest.param(1, 1, 1.5, id="half as long again after a quiet look"),
        pytest.param(2, 2, 2.25, id="a pair is as quick"),
        pytest.param(9, 1, 30.0, id="half a minute at most"),
        pytest.param(10**6, 1, 30.0, id="however long nothing has changed"),
        pytest.param(0, 3, 5.0, id="several slices, right after a change"),
        pytest.param(5, 3, 1.5**5, id="several slices, once one look takes longer anyway"),
    ],
)
def test_looks_are_rarer_the_longer_nothing_changes(quiet_looks: int, slices: int, seconds: float) -> None:
    assert Patience().poll(quiet_looks, slices) == seconds
    assert Patience().poll(quiet_looks) == Patience().poll(quiet_looks, 1)


def test_the_growth_is_bounded_for_any_limit() -> None:
    assert Patience(poll_most=1e9).poll(99) == 1.5**40


def test_a_slice_drains_for_twice_as_long_as_its_endpoint_is_used() -> None:
    assert Patience(held=7.0).drain == 14.0
