"""What a log says of its own engine: the flags it was given, and what the chip holds. For remedies with numbers."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterable, Mapping
from math import isfinite
from typing import Any

from tpudeploy.domain.bootlog import Line
from tpudeploy.domain.budget import UTILIZATION, HbmBudget
from tpudeploy.domain.frozen import frozen

_FLAGS = re.compile(r"non-default args: (\{.*\})")
# hbm=[(8.97, 15.75)]Gb: used and limit of each chip.
_HBM = re.compile(r"hbm=\[\(([\d.]+), ([\d.]+)\)")
_GIB = 2**30
_UNITS = {"": 1, "K": 2**10, "M": 2**20, "G": 2**30, "T": 2**40}
_SIZE = re.compile(r"([\d.]+) ?([KMGT]?)i?B?$")


@frozen
class Said:
    """`flags` as `vllm serve` took them; `hbm_bytes` of one chip, None where the log does not say.

    `budget`: what the profile predicts, where there is a profile that can be sized.
    """

    flags: Mapping[str, Any]
    hbm_bytes: float | None = None
    budget: HbmBudget | None = None

    @property
    def utilization(self) -> float:
        written = self.flags.get("gpu_memory_utilization")
        if isinstance(written, int | float) and 0 < written <= 1:
            return float(written)
        return UTILIZATION if self.budget is None else self.budget.engine.utilization

    @property
    def chip_bytes(self) -> float | None:
        return self.hbm_bytes if self.budget is None else self.budget.hbm_bytes_per_chip

    @property
    def is_speculative(self) -> bool:
        """Whether the log or the profile shows that speculative decoding is on."""
        return bool(self.flags.get("speculative_config")) or (
            self.budget is not None and self.budget.engine.speculation is not None
        )

    def flag(self, name: str) -> int | None:
        """A whole number above 0 that was passed, or that the profile means."""
        written = self.flags.get(name)
        if written is None and self.budget is not None:
            written = getattr(self.budget.engine, name, None)
        return written if isinstance(written, int) and written > 0 else None


def said(lines: Iterable[Line], budget: HbmBudget | None) -> Said:
    """The last word on each."""
    flags: Mapping[str, Any] = {}
    hbm: float | None = None
    for line in lines:
        found = _FLAGS.search(line.text)
        if found is not None:
            flags = _literal(found[1])
        memory = _HBM.search(line.text)
        if memory is not None:
            limit = number(memory[2])
            hbm = limit * _GIB if limit else hbm
    return Said(flags=flags, hbm_bytes=hbm, budget=budget)


def number(written: str | None) -> float | None:
    """None too for what looks like a number and is none, as a cut log may."""
    try:
        found = float((written or "").replace(",", ""))
    except ValueError:
        return None
    return found if isfinite(found) else None


def size(written: str | None) -> float | None:
    """Bytes of `16.23G`, `384.11M`, `1.5 GiB`, as XLA writes them."""
    found = _SIZE.fullmatch((written or "").strip())
    amount = None if found is None else number(found[1])
    return None if found is None or amount is None else amount * _UNITS[found[2]]


def _literal(written: str) -> Mapping[str, Any]:
    """A Python literal, or nothing: objects among the values are written as `<Thing ...>`."""
    try:
        tree = ast.literal_eval(written)
    except (ValueError, SyntaxError, MemoryError, RecursionError):
        return {}
    return tree if isinstance(tree, dict) else {}
