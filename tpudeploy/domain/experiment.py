"""Experiment: an A/B of one value of a profile, its two arms, and what came of them. Its figures stand in its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import field
from enum import StrEnum

from tpudeploy.domain.benchmark import Driver, Ended, Start, Sweep
from tpudeploy.domain.comparison import Measure
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.load import Point
from tpudeploy.domain.side import Side


class InEffect(StrEnum):
    """Whether an arm's engine does what the arm says."""

    YES = "yes"
    NO = "no"
    UNTOLD = "untold"  # no witness speaks of it


@frozen
class Arm:
    """One of the two. `value` is as it stands behind `--set PATH=`.

    `fingerprint` is that of the whole deployment with it, whatever its tags are held to. `told` is what its engine said
    of itself once it served, by setting, and `in_effect` what follows for the value; None before. `sheet` is the id of
    its answers, "" for none.
    """

    value: str
    fingerprint: str
    told: Mapping[str, str] = field(default_factory=dict)
    in_effect: InEffect | None = None
    sheet: str = ""


@frozen
class Experiment:
    """What was asked for, and what was found that no run holds.

    `questions` names what both are asked, "" for nothing; `count` is how many of them, None for all.

    `file` is the profile, `line` the one of its lines that says what is compared, None where none does, and `written`
    the arm that it says; None for neither.

    `seconds` is how long it has taken so far, restarts included; `ended` as in a run.
    """

    id: str
    began_at: float
    version: str
    deployment: str
    path: str
    file: str
    line: int | None
    written: Side | None
    a: Arm
    b: Arm
    sweep: Sweep
    repeats: int
    by: Measure = Measure.REQUESTS
    driver: Driver = Driver.TPUDEPLOY
    tokenizer: str = ""
    questions: str = ""
    count: int | None = None
    seconds: float = 0.0
    ended: Ended = Ended.NOT_YET

    def arm(self, side: Side) -> Arm:
        return self.a if side is Side.A else self.b


class Finding(StrEnum):
    """What an effect is, as B stands to A."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # whatever there is lies within the margin
    NONE = "no difference"  # none was found


@frozen
class Effect:
    """`a` and `b` are geometric means over repeats; `change` is b/a less 1, from `low` to `high` with 95 % confidence.

    `chance` is how likely as large a one is where there is none. `smallest` is the change that so many repeats, which
    scatter so, would find four times in five.
    """

    a: float
    b: float
    change: float
    low: float
    high: float
    chance: float
    smallest: float
    repeats: int


class CacheUse(StrEnum):
    """Whether a server's start had its programs from the compile cache."""

    HIT = "hit"
    PARTLY = "partly a hit"
    MISS = "miss"
    UNKNOWN = "unknown"  # the log does not say


@frozen
class Repeat:
    """One measured turn: its run, and how the server that it measured came up.

    `cache` is what the log says; `is_warm` is what follows for the start, None where nothing does. `is_inferred`: it
    follows from the engine's compile time alone, beside those of the same arm's other starts.
    """

    run: str
    place: int
    side: Side
    start: Start | None
    cache: CacheUse
    is_warm: bool | None
    is_inferred: bool = False


@frozen
class StartRow:
    """One measure of the servers' starts. `a` and `b` are geometric means in seconds, None of no start.

    `effect` and `finding` are None where there are too few starts to tell.
    """

    measure: Measure
    a: float | None
    b: float | None
    a_count: int
    b_count: int
    effect: Effect | None
    finding: Finding | None


@frozen
class Row:
    """One measure of one cell. `is_doubted` where a figure of it is not believed."""

    point: Point
    measure: Measure
    effect: Effect
    finding: Finding
    is_doubted: bool = False
