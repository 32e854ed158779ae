"""SheetComparison: whether quality fell between two servers that answered the same questions."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum
from typing import Any

from tpudeploy.domain.serialization import to_json


class Judgement(StrEnum):
    """The conclusion. `held`: no fall was detected, which means only as much as the power allows."""

    HELD = "held"
    FELL = "fell"
    CANNOT_TELL = "cannot-tell"

    @property
    def sentence(self) -> str:
        """The conclusion for people."""
        return {
            Judgement.HELD: "No quality regression was detected.",
            Judgement.FELL: "Quality regressed.",
            Judgement.CANNOT_TELL: "This number of questions cannot decide it.",
        }[self]


@dataclass(frozen=True, slots=True, kw_only=True)
class Paired:
    """The numbers of questions that both servers, only the first, only the second, or neither had right."""

    both: int
    lost: int
    gained: int
    neither: int

    @property
    def questions(self) -> int:
        return self.both + self.lost + self.gained + self.neither

    @property
    def before(self) -> float:
        """The share that the first server had right."""
        return _share(self.both + self.lost, self.questions)

    @property
    def after(self) -> float:
        return _share(self.both + self.gained, self.questions)

    @property
    def changed(self) -> float:
        """The share of questions that exactly one server had right."""
        return _share(self.lost + self.gained, self.questions)


@dataclass(frozen=True, slots=True, kw_only=True)
class Power:
    """The probability that these questions detect a fall of this share, and the number that detect it 4 times in 5."""

    fall: float
    found: float
    needed: int


@dataclass(frozen=True, slots=True, kw_only=True)
class SheetComparison:
    """The result. `because` is why these sheets cannot show it. `chance` is McNemar's p-value, one-sided and exact.

    `most` is the largest fall that cannot be excluded, as a share, with 95 % confidence.
    """

    judgement: Judgement
    because: str
    counts: Paired
    chance: float
    most: float
    powers: tuple[Power, ...]
    remarks: tuple[str, ...]
    ADDS = dict.fromkeys(("questions", "before", "after", "changed"), float)

    def to_dict(self) -> dict[str, Any]:
        counts = self.counts
        shares = {"before": counts.before, "after": counts.after, "changed": counts.changed}
        return {**to_json(self), "questions": counts.questions, **shares}


def _share(part: int, total: int) -> float:
    return part / total if total else 0.0
