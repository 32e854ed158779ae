"""The type of the fixture `promtool`: its words in, what it said out."""

from __future__ import annotations

import subprocess
from collections.abc import Callable
from typing import TypeAlias

Promtool: TypeAlias = Callable[..., "subprocess.CompletedProcess[str]"]
