"""The record of a campaign: what is not in its runs. It is written after each fact, so that a later run continues."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

from tpudeploy.features.accuracy.sheet import Sheet
from tpudeploy.features.benchmark.offer import Point


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignAnswers:
    """How many of the questions a server answered right. `digest` is that of the questions."""

    source: str
    digest: str
    count: int
    right: int

    @classmethod
    def from_sheet(cls, sheet: Sheet, source: str) -> CampaignAnswers:
        graded = [answer.is_right for answer in sheet.answers]
        return cls(source=source, digest=sheet.terms.digest, count=len(graded), right=sum(map(bool, graded)))


@dataclass(frozen=True, slots=True, kw_only=True)
class RecordedServer:
    """A server as its grid had it: enough to report on it without the grid. `values` are texts by their paths."""

    key: str
    label: str
    values: Mapping[str, str]
    lane: str
    model: str
    type: str
    points: tuple[Point, ...] = ()
    repeats: int = 1


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignRecord:
    """`ends` is the end of each deployment that was ever requested, `failures` why a server has no figures, by its key.

    `obstacles` are the servers that sizing has refused, by their labels. `grid` is the text of the file `file`, and
    `profile` that of the profile `base`. `budget` is in USD. `ended_at` is when all of it was over, None before.
    """

    name: str
    began_at: float
    version: str
    file: str
    grid: str
    base: str = ""
    profile: str = ""
    budget: float | None = None
    servers: tuple[RecordedServer, ...] = ()
    obstacles: Mapping[str, str] = field(default_factory=dict)
    ends: Mapping[str, str] = field(default_factory=dict)
    failures: Mapping[str, str] = field(default_factory=dict)
    answers: Mapping[str, CampaignAnswers] = field(default_factory=dict)
    usd: float | None = None
    ended_at: float | None = None
