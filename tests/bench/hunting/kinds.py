"""The kinds of worlds that `make hunt` prints, side by side: plain ones, and such as have habits."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, replace

from bench.hunting.setting import HOUR, MINUTE, Apis, Deletion, Habit, Reopening, Setting

from tpudeploy.domain.deployment import Provisioning

FLEX, SPOT = Provisioning.FLEX_START, Provisioning.SPOT
_BOOT = 4 * MINUTE
# Windows of a minute at least and of two in the mean, in zones that answer after half a minute.
_SHORT = Setting(gap=2 * HOUR, window=2 * MINUTE, shortest=MINUTE, boot=_BOOT)
_MEDIAN = 1.6


@dataclass(frozen=True, slots=True, kw_only=True)
class Kind:
    """`models` in order of preference. `is_lured`: the zone that is listed first gives what does not last.

    A kind with a `slow` zone is for the command line alone: nothing else waits for replies.
    """

    setting: Setting
    models: tuple[Provisioning, ...] = (FLEX, SPOT)
    is_lured: bool = False
    # What the median may be of the oracle's, instead of table.py's figures.
    median: float | None = None


def _lured(habit: Habit, *models: Provisioning) -> Kind:
    return Kind(setting=Setting(gap=8 * HOUR, boot=_BOOT, habit=habit), models=models, is_lured=True)


KINDS: Mapping[str, Kind] = {
    "gaps 2 h": Kind(setting=Setting(gap=2 * HOUR)),
    "gaps 8 h": Kind(setting=Setting(gap=8 * HOUR)),
    "gaps 24 h": Kind(setting=Setting(gap=24 * HOUR)),
    "early preemption, spot": _lured(Habit.EARLY_PREEMPTION, SPOT),
    "early preemption, both": _lured(Habit.EARLY_PREEMPTION, FLEX, SPOT),
    "code 13, spot": _lured(Habit.INTERNAL_ERROR, SPOT),
    "code 13, both": _lured(Habit.INTERNAL_ERROR, FLEX, SPOT),
    "reopening together": Kind(setting=Setting(gap=2 * HOUR, boot=_BOOT, regions=1, reopening=Reopening.TOGETHER)),
    "at night": Kind(setting=Setting(gap=2 * HOUR, boot=_BOOT, night=True)),
    "deletion ignored": Kind(setting=Setting(gap=8 * HOUR, boot=_BOOT, code13=0.3, deletion=Deletion.IGNORED)),
    "deletion late": Kind(setting=Setting(gap=8 * HOUR, boot=_BOOT, code13=0.3, deletion=Deletion.LATE)),
    "no quota in regions": Kind(setting=Setting(gap=8 * HOUR, no_quota=0.5)),
    # What one answer costs, and how short a window can be: four requests at a time see one window in three.
    "short windows": Kind(setting=_SHORT, models=(SPOT,), median=_MEDIAN),
    "short, preempted": Kind(
        setting=replace(_SHORT, habit=Habit.EARLY_PREEMPTION), models=(SPOT,), is_lured=True, median=_MEDIAN
    ),
    "short, flapping": Kind(
        setting=replace(_SHORT, habit=Habit.FLAPPING), models=(SPOT,), is_lured=True, median=_MEDIAN
    ),
    "short, slow neighbor": Kind(setting=replace(_SHORT, slow=15.0), models=(SPOT,), is_lured=True, median=_MEDIAN),
    "two APIs, apart": Kind(setting=Setting(gap=8 * HOUR, apis=Apis.APART)),
    "two APIs, quota apart": Kind(setting=Setting(gap=8 * HOUR, apis=Apis.APART, no_quota=0.5)),
    "two APIs, same chips": Kind(setting=Setting(gap=8 * HOUR, apis=Apis.ALIKE, no_quota=0.5)),
}
