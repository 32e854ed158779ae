"""Experiment: an A/B of one value of a profile, with its two arms and the result. Its figures are in its runs."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.starts import MeasuredStart
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Driver, Ended, Side, Sweep


class InEffect(StrEnum):
    """Whether the value of an arm is in effect in its engine."""

    YES = "yes"
    NO = "no"
    UNTOLD = "untold"  # no source reports it


@dataclass(frozen=True, slots=True, kw_only=True)
class Arm:
    """One arm. `value` is written as in `--set PATH=`.

    `fingerprint` is that of the whole deployment with this value, before tags are pinned. `told` are the settings that
    its engine reported when it served, and `in_effect` is the conclusion for the value, None before. `sheet` is the id
    of its answers, or "".
    """

    value: str
    fingerprint: str
    told: Mapping[str, str] = field(default_factory=dict)
    in_effect: InEffect | None = None
    sheet: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class Experiment:
    """The request of an A/B, and those results that no run holds.

    `questions` names the questions for both arms, or is ""; `count` is their number, None for all.

    `file` is the profile, `line` is the line of it that sets the compared value, or None, and `written` is the arm with
    that value, or None.

    `seconds` is the time so far, restarts included; `ended` is as in a run.
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


class AbFinding(StrEnum):
    """The result of a comparison of B with A."""

    BETTER = "better"
    WORSE = "worse"
    SAME = "same"  # any difference is within the margin
    NONE = "no difference"  # no difference was detected


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredEffect:
    """One effect. `a` and `b` are geometric means over repeats; `change` is b/a - 1, `low` to `high` its 95 % interval.

    `chance` is the probability of a change this large without a real difference (the p-value). `smallest` is the
    change that this number of repeats with this scatter would detect four times in five.
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Repeat:
    """One measured turn: its run, and how the server that it measured came up.

    `cache` is what the log says; `is_warm` is what follows for the start, None where nothing does. `is_inferred`: it
    follows from the engine's compile time alone, beside those of the same arm's other starts.
    """

    run: str
    place: int
    side: Side
    start: MeasuredStart | None
    cache: CacheUse
    is_warm: bool | None
    is_inferred: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class StartRow:
    """One measure of the servers' starts. `a` and `b` are geometric means in seconds, None of no start.

    `effect` and `finding` are None where there are too few starts to tell.
    """

    measure: Measure
    a: float | None
    b: float | None
    a_count: int
    b_count: int
    effect: MeasuredEffect | None
    finding: AbFinding | None


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasureRow:
    """One measure of one cell. `is_doubted` if one of its figures cannot be trusted."""

    point: Point
    measure: Measure
    effect: MeasuredEffect
    finding: AbFinding
    is_doubted: bool = False
