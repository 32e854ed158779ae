"""Durations and sizes as people write them: `15m` is seconds, `10GiB` is bytes."""

from __future__ import annotations

import re
from decimal import Decimal
from typing import Self

_DURATION = re.compile(r"([0-9]{1,12})([smhd])")
_SECONDS = {"s": 1, "m": 60, "h": 3600, "d": 86400}

_SIZE = re.compile(r"([0-9]{1,12})(k|m|g|t)(i?)b", re.IGNORECASE)
_POWER = {"k": 1, "m": 2, "g": 3, "t": 4}

DURATION_PATTERN = "^[0-9]{1,12}[smhd]$"
# As vLLM's human_readable_int reads it: decimals only with a decimal unit.
_TOKENS = re.compile(r"([0-9]{1,12})([kmgtKMGT])|([0-9]{1,12}\.[0-9]{1,6})([kmgt])")
TOKENS_PATTERN = r"[0-9]{1,12}[kmgtKMGT]|[0-9]{1,12}\.[0-9]{1,6}[kmgt]"

SIZE_PATTERN = "^[0-9]{1,12}[kKmMgGtT][iI]?[bB]$"


def tokens_of(text: str) -> int | str:
    """Return what vLLM makes of `16k` (16,000), `16K` (16,384) or `25.6k` (25,600); any other text as it is."""
    match = _TOKENS.fullmatch(text.strip())
    if match is None:
        return text
    number, unit = (match[1] or match[3]), (match[2] or match[4])
    base = 1024 if unit.isupper() else 1000
    return int(Decimal(number) * base ** _POWER[unit.lower()])


class Duration(float):
    """Seconds; `text` is how it was written."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` looks like 90s, 15m, 2h or 7d."""
        match = _DURATION.fullmatch(text)
        if match is None:
            raise ValueError(f"`{text}` is not a duration")
        duration = cls(int(match[1]) * _SECONDS[match[2]])
        duration.text = text
        return duration


class Size(int):
    """Bytes; `text` is how it was written. 10gb is decimal, 10GiB is binary."""

    text: str

    @classmethod
    def parse(cls, text: str) -> Self:
        """Raise ValueError unless `text` looks like 10gb or 10GiB."""
        match = _SIZE.fullmatch(text)
        if match is None:
            raise ValueError(f"`{text}` is not a size")
        base = 1024 if match[3] else 1000
        size = cls(int(match[1]) * base ** _POWER[match[2].lower()])
        size.text = text
        return size
