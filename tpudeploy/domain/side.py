"""Side: which of two arms."""

from __future__ import annotations

from enum import StrEnum


class Side(StrEnum):
    A = "A"
    B = "B"
