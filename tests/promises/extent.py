"""How much of a long search is run."""

from __future__ import annotations


def is_whole(markers: str) -> bool:
    """By what pytest's `-m` was given: `make exhaustive` names the searches, `make test` does not."""
    return "exhaustive" in markers
