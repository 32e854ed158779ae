"""What the hunts came to, as a table, and whether it is what we promise."""

from __future__ import annotations

import math
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from random import Random
from statistics import fmean

from bench.hunting.kinds import Kind
from bench.hunting.outcome import Outcome
from bench.hunting.policies import COMMAND_LINE, EITHER, FLOOR, INSTANCES, ORACLE, row
from bench.hunting.run import Row
from bench.hunting.setting import HOUR, MINUTE, Apis, Setting

_COLUMNS = ("policy", "median", "p90", "p99", "never", "creates", "left", "doubles", "x oracle", "worlds/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Estimate:
    """A figure of these worlds, and the interval that holds it in 95 of 100 draws of as many worlds."""

    value: float
    low: float
    high: float

    def __str__(self) -> str:
        return f"{self.value:.2f} [{self.low:.2f}, {self.high:.2f}]"


@dataclass(frozen=True, slots=True, kw_only=True)
class Goal:
    """What is promised of one figure of one of our rows. `unit` is what the figure counts in; `at_best` is what so many
    requests could reach in these worlds without knowing a window (hunting/oracle.py), 0 where that is not reckoned.
    """

    kind: str
    policy: str
    figure: str
    unit: str
    most: float
    estimate: Estimate
    at_best: float = 0.0

    @property
    def is_met(self) -> bool:
        return self.estimate.value <= self.most

    def __str__(self) -> str:
        excludes = "does not include it" if self.estimate.low > self.most else "includes it: more worlds would tell"
        unreachable = f" At best it could be {self.at_best:.2f} here." if self.at_best > self.most else ""
        return (
            f"{self.kind}: {self.policy}: {self.figure} is {self.estimate} {self.unit}; the goal is at most"
            f" {self.most:.2f}. The interval {excludes}.{unreachable}"
        )


SWEEP = "sweep"
# Double grants a deployment, where windows follow no closer upon each other: else they are no fault of the policy's.
DOUBLES, DOUBLES_FROM = 0.05, 8 * HOUR
# In the oracle's times: the median in lured worlds; the median and p90 elsewhere, by how many requests there may be.
LURED = 1.5
ELSEWHERE: Mapping[int | None, Mapping[float, float]] = {None: {0.5: 1.10}, 8: {0.5: 1.20, 0.9: 1.35}}
# In lured worlds: our wasted chip-minutes in the sweep's.
WASTED = 0.2
_OF_ORACLE, _OF_SWEEP, _OF_ONE_API = "of the oracle's", "of the sweep's", "of the better API's alone"
_RESAMPLES, _TAIL = 400, 0.025
# The columns with their widths; the first two hold names.
_NAMES = 2
_KIND_COLUMNS = (
    ("worlds", 22),
    ("policy", 22),
    ("p50", 17),
    ("goal", 4),
    ("p90", 17),
    ("goal", 4),
    ("never", 5),
    ("behind", 6),
    ("doubles", 7),
    ("doomed", 6),
    ("wasted", 7),
    ("goal", 5),
)
LEGEND = """\
p50, p90   of the times to a slice that lasts, in the oracle's, with the interval of 95 in 100 draws of such worlds
at best    what so many requests can reach that know no window and make no mistake (hunting/oracle.py)
never      deployments that never served; behind: those that the sweep served sooner
doubles    slices that were given back, a deployment; doomed: slices that Google took back soon
wasted     chip-minutes, a deployment, that both were billed for; the goal is a fifth of the sweep's\
"""


def kind_header() -> str:
    return _kind_line([title for title, _ in _KIND_COLUMNS])


def kind_lines(name: str, kind: Kind, rows: Mapping[str, Row]) -> Iterator[str]:
    """One line for each row but the oracle's: its times in the oracle's, quantile by quantile, and what it wasted."""
    most = {(goal.policy, goal.figure): goal.most for goal in goals(name, kind, rows) if goal.unit == _OF_ORACLE}
    for policy, one in rows.items():
        if policy == ORACLE:
            continue
        cells = [name, policy]
        for share in (0.5, 0.9):
            goal = most.get((policy, _p(share)))
            cells += [str(_ratio(one, rows[ORACLE], share)), "" if goal is None else f"{goal:.2f}"]
        if not policy.startswith(FLOOR):
            cells += _costs(kind, policy, one, rows.get(SWEEP))
        yield _kind_line(cells)


def _costs(kind: Kind, policy: str, one: Row, sweep: Row | None) -> Iterator[str]:
    outcomes = one.outcomes
    other = None if policy == SWEEP else sweep
    yield f"{fmean(math.isinf(o.usable_at) for o in outcomes):.0%}"
    yield "" if other is None else f"{_behind(one, other):.0%}"
    yield f"{fmean(o.doubles for o in outcomes):.3f}"
    yield f"{fmean(o.doomed for o in outcomes):.2f}"
    yield f"{_wasted(one):,.1f}"
    if other is not None and kind.is_lured and _wasted(other):
        yield f"{WASTED * _wasted(other):,.1f}"


def goals(name: str, kind: Kind, rows: Mapping[str, Row]) -> Iterator[Goal]:
    """Return what is promised of this kind of worlds beside what it came to."""
    if kind.setting.apis is not Apis.ONE:
        yield from _goals_of_two_apis(name, rows)
        return
    sweep = rows.get(SWEEP)
    numbers = {None: ELSEWHERE[None]} if COMMAND_LINE in rows else ELSEWHERE
    for requests, elsewhere in numbers.items():
        policy = COMMAND_LINE if COMMAND_LINE in rows else row(requests)
        ours, floor = rows.get(policy), rows.get(row(requests, FLOOR))
        if ours is None:
            continue
        goal = partial(Goal, kind=name, policy=policy)
        for share, most in _most_of_oracle(kind, elsewhere).items():
            at_best = 0.0 if floor is None else _ratio(floor, rows[ORACLE], share).value
            estimate = _ratio(ours, rows[ORACLE], share)
            yield goal(figure=_p(share), unit=_OF_ORACLE, most=most, estimate=estimate, at_best=at_best)
        if sweep is None:
            continue
        for share in (0.5, 0.9):
            yield goal(figure=_p(share), unit=_OF_SWEEP, most=1.0, estimate=_ratio(ours, sweep, share))
        if kind.is_lured and _wasted(sweep):
            waste = _estimate(ours, sweep, lambda outcomes: fmean(o.wasted for o in outcomes))
            yield goal(figure="the waste", unit=_OF_SWEEP, most=WASTED, estimate=waste)


def _most_of_oracle(kind: Kind, elsewhere: Mapping[float, float]) -> Mapping[float, float]:
    if kind.median is not None:
        return {0.5: kind.median}
    return {0.5: LURED} if kind.is_lured else elsewhere


def _goals_of_two_apis(name: str, rows: Mapping[str, Row]) -> Iterator[Goal]:
    """Both APIs together are no later than the better one alone."""
    for requests in ELSEWHERE:
        either = row(requests, EITHER)
        alone = [rows[one] for one in (row(requests), row(requests, INSTANCES)) if one in rows]
        if either not in rows or not alone:
            continue
        for share in (0.5, 0.9):
            better = min(alone, key=lambda one: quantile([o.usable_at for o in one.outcomes], share))
            estimate = _ratio(rows[either], better, share)
            yield Goal(kind=name, policy=either, figure=_p(share), unit=_OF_ONE_API, most=1.0, estimate=estimate)


def _p(share: float) -> str:
    return f"p{share * 100:.0f}"


def _behind(one: Row, other: Row) -> float:
    """Return the share of the worlds in which the other one served sooner."""
    pairs = zip(one.outcomes, other.outcomes, strict=True)
    return fmean(theirs.usable_at < ours.usable_at for ours, theirs in pairs)


def _wasted(one: Row) -> float:
    return fmean(o.wasted for o in one.outcomes)


def _ratio(one: Row, other: Row, share: float) -> Estimate:
    return _estimate(one, other, lambda outcomes: quantile([o.usable_at for o in outcomes], share))


def _estimate(one: Row, other: Row, figure: Callable[[Sequence[Outcome]], float]) -> Estimate:
    """Return the ratio of a figure of two policies in the same worlds, by the bootstrap: worlds are drawn in pairs."""
    random, count = Random(1), len(one.outcomes)
    ratios = []
    for _ in range(_RESAMPLES):
        drawn = random.choices(range(count), k=count)
        ratios.append(_quotient(*(figure([row.outcomes[i] for i in drawn]) for row in (one, other))))
    value = _quotient(figure(one.outcomes), figure(other.outcomes))
    return Estimate(value=value, low=quantile(ratios, _TAIL), high=quantile(ratios, 1 - _TAIL))


def _quotient(one: float, other: float) -> float:
    """What both never reach, or both reach at once, is alike."""
    return 1.0 if one == other else math.inf if other == 0 else one / other


def _kind_line(cells: Sequence[str]) -> str:
    texts = []
    for number, (cell, (_, width)) in enumerate(zip(cells, _KIND_COLUMNS, strict=False)):
        texts.append(cell.ljust(width) if number < _NAMES else cell.rjust(width))
    return "  ".join(texts).rstrip()


def headline(setting: Setting, worlds: int, seed: int) -> str:
    quota = "no quota" if setting.quota is None else f"{setting.quota} chips a region"
    return (
        f"gaps {setting.gap / HOUR:g} h (sigma {setting.sigma:g}), windows {setting.window / MINUTE:g} min, "
        f"{setting.ours:.0%} ours; {setting.shared:.0%} of gaps shared, reopening {setting.reopening}\n"
        f"{setting.zones} zones in {setting.regions} regions, flex-start in {setting.flex:.0%}, spot in "
        f"{setting.spot:.0%}; refusals {setting.refusals}, code 13 {setting.code13:.0%}, "
        f"{setting.preempt:g} preemptions/h, {quota}; {worlds:,} worlds, seed {seed}"
    )


def lines(rows: Mapping[str, Row]) -> Iterator[str]:
    cells = [_COLUMNS, *(tuple(_cells(name, rows[name], rows[ORACLE])) for name in rows)]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    for first, *others in cells:
        yield "  ".join([first.ljust(widths[0]), *(c.rjust(w) for c, w in zip(others, widths[1:], strict=True))])


def broken(setting: Setting, rows: Mapping[str, Row]) -> Iterator[str]:
    """What is not as promised, in words."""
    for requests, most in ELSEWHERE.items():
        name = row(requests)
        ours = rows.get(name)
        if ours is None:
            continue
        ratio = _median(ours) / _median(rows[ORACLE])
        if not ratio <= most[0.5]:
            yield f"{name}: the median is {ratio:.2f} of the oracle's; promised: {most[0.5]}"
        if leftovers := sum(o.left for o in ours.outcomes):
            yield f"{name}: {leftovers} requests were left behind; promised: none"
        doubles = fmean(o.doubles for o in ours.outcomes)
        if setting.gap >= DOUBLES_FROM and doubles >= DOUBLES:
            yield f"{name}: {doubles:.3f} double grants a deployment; promised: under {DOUBLES}"


def quantile(values: Sequence[float], share: float) -> float:
    """The smallest value that so many are not above; one of the values, so that infinity is no trouble."""
    ordered = sorted(values)
    return ordered[max(0, math.ceil(share * len(ordered)) - 1)]


def _median(one: Row) -> float:
    return quantile([o.usable_at for o in one.outcomes], 0.5)


def _cells(name: str, one: Row, oracle: Row) -> Iterator[str]:
    times = [o.usable_at for o in one.outcomes]
    yield name
    yield from (_minutes(quantile(times, share)) for share in (0.5, 0.9, 0.99))
    yield f"{fmean(math.isinf(t) for t in times):.1%}"
    yield f"{fmean(o.creates for o in one.outcomes):.1f}"
    yield str(sum(o.left for o in one.outcomes))
    yield f"{fmean(o.doubles for o in one.outcomes):.3f}"
    yield f"{_median(one) / _median(oracle):.2f}"
    yield f"{len(one.outcomes) / one.seconds:,.0f}"


def _minutes(seconds: float) -> str:
    return "never" if math.isinf(seconds) else f"{seconds / MINUTE:,.1f} min"
