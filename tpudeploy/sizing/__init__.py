"""Sizing: the content of a chip, what that serves, and how long it takes to start. Pure arithmetic with its sources.

Why: decision 16 in docs/decisions.md.
"""

from __future__ import annotations

from tpudeploy.sizing.budget import compute_budget
from tpudeploy.sizing.profile import size

__all__ = ["compute_budget", "size"]
