"""What the hunts came to, as a table, and whether it is what we promise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

from bench.hunting.kinds import Kind
from bench.hunting.policies import ORACLE, row
from bench.hunting.run import Row
from bench.hunting.setting import HOUR, MINUTE, Setting

_COLUMNS = ("policy", "median", "p90", "p99", "never", "creates", "left", "doubles", "x oracle", "worlds/s")


@dataclass(frozen=True, slots=True, kw_only=True)
class Promise:
    """Of our row with so many requests at once: the median, in the oracle's, and double grants a deployment."""

    requests: int | None
    ratio: float
    doubles: float = 0.05


PROMISES = (Promise(requests=None, ratio=1.15), Promise(requests=8, ratio=1.25))
# Where windows follow so closely upon each other, a second grant is no fault of the policy's: shown, not promised.
DOUBLES_FROM = 8 * HOUR


# In lured worlds: our median in the oracle's, and our wasted chip-minutes in the sweep's.
LURED, WASTED = 1.5, 0.2
SWEEP = "sweep"
_KIND_COLUMNS = ("worlds", "policy", "p50", "p90", "never", "doubles", "doomed", "wasted chip-min")


def kind_header() -> str:
    return _kind_line(_KIND_COLUMNS)


def kind_lines(name: str, rows: Mapping[str, Row]) -> Iterator[str]:
    """One line for each policy but the oracle: its times in the oracle's, quantile by quantile, and what it wasted."""
    for policy, one in rows.items():
        if policy == ORACLE:
            continue
        outcomes = one.outcomes
        never = fmean(math.isinf(o.usable_at) for o in outcomes)
        yield _kind_line(
            (
                name,
                policy,
                *(f"{_ratio(one, rows[ORACLE], share):.2f}" for share in (0.5, 0.9)),
                f"{never:.1%}",
                f"{fmean(o.doubles for o in outcomes):.3f}",
                f"{fmean(o.doomed for o in outcomes):.2f}",
                f"{fmean(o.wasted for o in outcomes):,.1f}",
            )
        )


def kind_broken(name: str, kind: Kind, rows: Mapping[str, Row]) -> Iterator[str]:
    """What is not as promised in this kind of worlds, in words."""
    sweep, oracle = rows.get(SWEEP), rows[ORACLE]
    for requests, most, most_p90 in ((None, 1.10, math.inf), (8, 1.20, 1.35)):
        ours = rows.get(row(requests))
        if ours is None:
            continue
        for share, limit in ((0.5, LURED if kind.is_lured else most), (0.9, math.inf if kind.is_lured else most_p90)):
            ratio = _ratio(ours, oracle, share)
            if ratio > limit:
                yield f"{name}: {row(requests)}: p{share * 100:.0f} is {ratio:.2f} of the oracle's; promised: {limit}"
            if sweep is not None and ratio > _ratio(sweep, oracle, share):
                yield f"{name}: {row(requests)}: p{share * 100:.0f} is worse than the sweep's"
        wasted = fmean(o.wasted for o in ours.outcomes)
        swept = 0.0 if sweep is None else fmean(o.wasted for o in sweep.outcomes)
        if kind.is_lured and swept and wasted > WASTED * swept:
            yield f"{name}: {row(requests)}: {wasted:.0f} chip-minutes wasted, the sweep {swept:.0f}; promised: a fifth"


def _ratio(one: Row, oracle: Row, share: float) -> float:
    return quantile([o.usable_at for o in one.outcomes], share) / quantile(
        [o.usable_at for o in oracle.outcomes], share
    )


def _kind_line(cells: Sequence[str]) -> str:
    first, second, *others = cells
    return "  ".join([first.ljust(24), second.ljust(24), *(c.rjust(15 if c is others[-1] else 8) for c in others)])


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
    for promise in PROMISES:
        ours = rows.get(row(promise.requests))
        if ours is None:
            continue
        name, ratio = row(promise.requests), _median(ours) / _median(rows[ORACLE])
        if not ratio <= promise.ratio:
            yield f"{name}: the median is {ratio:.2f} of the oracle's; promised: {promise.ratio}"
        if left := sum(o.left for o in ours.outcomes):
            yield f"{name}: {left} requests were left behind; promised: none"
        doubles = fmean(o.doubles for o in ours.outcomes)
        if setting.gap >= DOUBLES_FROM and doubles >= promise.doubles:
            yield f"{name}: {doubles:.3f} double grants a deployment; promised: under {promise.doubles}"


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
