"""What the hunts came to, as a table, and whether it is what we promise."""

from __future__ import annotations

import math
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from statistics import fmean

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
