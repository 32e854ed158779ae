"""Sizes as vLLM's own parser reads them."""

from __future__ import annotations

UNITS = {"k": 10**3, "K": 2**10, "m": 10**6, "M": 2**20, "g": 10**9, "G": 2**30, "t": 10**12, "T": 2**40}


def read_size(word: str) -> int:
    """Return the number that a word is: `16k` is 16000, `16K` is 16384."""
    unit = UNITS.get(word[-1:])
    return int(float(word[:-1]) * unit) if unit else int(word)
