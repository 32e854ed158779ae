"""The largest length that is named is the largest of all, also where the default block size jumps at 8,192 tokens."""

from __future__ import annotations

import pytest
from sizing.vectors import sized

from tpudeploy.sizing.advice import longest
from tpudeploy.sizing.search import budget_with


@pytest.mark.parametrize("tokens", [7_000, 8_240, 8_300, 8_440, 8_500, 12_000])
def test_the_longest_length_is_the_largest_of_all(tokens: int) -> None:
    plain = sized("E2B", "v6e-1")
    room = plain.weights_bytes_per_chip + tokens * plain.kv_bytes_per_token_per_chip
    smaller = sized("E2B", "v6e-1", utilization=room / plain.hbm_bytes_per_chip)
    others = [budget_with(smaller, max_model_len=length) for length in range(16, 16_385, 16)]
    lengths = [other.engine.max_model_len for other in others if other is not None and other.fits]
    assert longest(smaller) == max(lengths)
