"""The progress of a campaign: the state of each cell, what it has cost, and how long it will take."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import TypeAlias

from tpudeploy.features.benchmark.offer import Point


class CellProgress(StrEnum):
    """Where a cell is. A server that starts shows in each of its cells."""

    WAITING = "waiting"
    STARTING = "starting"
    MEASURING = "measuring"
    MEASURED = "measured"
    DOUBTED = "doubted"  # measured, and its figures are not trusted
    FAILED = "failed"
    LEFT = "left"  # the money or the time was over before


CellPlace: TypeAlias = tuple[str, Point, int]  # a server's key, a load, and which of the repeats


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignEvent:
    """A change of one server or one cell. `point` is None where it is about the server. `text` says why, or "".

    `spent` is in USD at list price; `seconds_left` is None where it is unknown.
    """

    at: float
    lane: str
    label: str
    repeat: int
    state: CellProgress
    point: Point | None = None
    text: str = ""
    requests_per_second: float | None = None
    spent: float = 0.0
    ended: int = 0
    total: int = 0
    seconds_left: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Board:
    """The state of every cell, and the rate of those that are measured."""

    states: Mapping[CellPlace, CellProgress] = field(default_factory=dict)
    rates: Mapping[CellPlace, float | None] = field(default_factory=dict)

    def count(self, *states: CellProgress) -> int:
        return sum(state in states for state in self.states.values())
