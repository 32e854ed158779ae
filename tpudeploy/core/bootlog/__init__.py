"""The log of a boot, read: how far it came, how long each part took, and the first real cause of its end."""

from __future__ import annotations

from tpudeploy.core.bootlog.effective import effective
from tpudeploy.core.bootlog.read import cause_of, has_ended, read
from tpudeploy.core.bootlog.starts import last_start, reported_start

__all__ = ["cause_of", "effective", "has_ended", "last_start", "read", "reported_start"]
