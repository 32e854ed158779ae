"""Format the progress of a boot: `compiling 120 of 199, about 4 min left`."""

from __future__ import annotations

from tpudeploy.core.stage import COMPILING, PER_CENT, WARM_UP, WEIGHTS
from tpudeploy.domain.stage import Stage
from tpudeploy.views import words


def progress(stage: Stage, detail: str) -> str:
    """Return the progress, or "" if only the phase is known. Other stages show `detail`, the machine's own text."""
    what, remaining = _activity(stage, detail), time_left(stage)
    return f"{what or stage.name}, {remaining}" if remaining else what


def time_left(stage: Stage) -> str:
    if stage.left_seconds is None:
        return ""
    return f"{'at least' if stage.is_least else 'about'} {words.minutes(stage.left_seconds)} left"


def _activity(stage: Stage, detail: str) -> str:
    if stage.name == COMPILING:
        graphs = "" if stage.done is None else f" {stage.done}" if stage.of is None else f" {stage.done} of {stage.of}"
        return f"compiling{graphs}"
    if stage.name == WEIGHTS:
        share = "" if stage.of != PER_CENT else f", {stage.done} %"
        return f"loading weights{share}"
    if stage.name == WARM_UP:
        return "warming up"
    return f"{detail} ({stage.done} % of the image's layers)" if stage.of == PER_CENT else detail
