"""Sizing: what a chip holds, what that serves, how long it takes to start. Pure arithmetic, a source at each line."""

from __future__ import annotations

from tpudeploy.sizing.budget import budget
from tpudeploy.sizing.profile import size

__all__ = ["budget", "size"]
