"""Side: one of the two arms of an A/B."""

from __future__ import annotations

from enum import StrEnum


class Side(StrEnum):
    A = "A"
    B = "B"
