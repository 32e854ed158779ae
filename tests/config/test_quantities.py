"""Durations and sizes as people write them."""

from __future__ import annotations

import pytest

from tpudeploy.config.scalars import ByteSize, Duration


@pytest.mark.parametrize(("text", "seconds"), [("90s", 90), ("15m", 900), ("2h", 7200), ("7d", 604_800), ("0s", 0)])
def test_a_duration_is_seconds_and_keeps_its_text(text: str, seconds: float) -> None:
    assert Duration.parse(text) == seconds
    assert Duration.parse(text).text == text


@pytest.mark.parametrize(
    ("text", "size"),
    [
        ("10gb", 10**10),
        ("10GiB", 10 * 2**30),
        ("200GiB", 200 * 2**30),
        ("1KB", 1000),
        ("512MiB", 2**29),
        ("1tib", 2**40),
    ],
)
def test_a_size_is_bytes_and_keeps_its_text(text: str, size: int) -> None:
    assert ByteSize.parse(text) == size
    assert ByteSize.parse(text).text == text


@pytest.mark.parametrize("text", ["", "90", "s", "1.5h", "-1s", "1h30m", "1 h", "1w", "٣s", "9" * 20 + "s"])
def test_what_is_no_duration_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a duration"):
        Duration.parse(text)


@pytest.mark.parametrize("text", ["", "10", "10g", "10b", "gb", "1.5gb", "-1gb", "10 gb", "10gib "])
def test_what_is_no_size_is_refused(text: str) -> None:
    with pytest.raises(ValueError, match="is not a size"):
        ByteSize.parse(text)
