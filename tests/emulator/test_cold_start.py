"""What a compile cache in a bucket and parts side by side are worth, with the seconds of a measured boot."""

from __future__ import annotations

from pathlib import Path

import pytest
from bench.cold_start import measure


@pytest.mark.long
def test_a_cached_start_takes_three_fifths_of_one_in_turn_and_after_the_image_less_than_a_third_of_it(
    tmp_path: Path,
) -> None:
    in_turn, beside, cached = measure(tmp_path, step=5.0)
    assert beside.seconds < in_turn.seconds
    assert cached.seconds < 0.6 * in_turn.seconds
    assert cached.after_image < in_turn.seconds / 3
    assert cached.after_imports < in_turn.after_imports / 3
    path = [phase.name for phase in cached.timeline.critical]
    assert path == ["image", "container", "imports", "weights", "compile", "warm-up"]
