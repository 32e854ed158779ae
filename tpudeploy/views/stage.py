"""How far a boot is, as people say it: `compiling 120 of 199, about 4 min left`."""

from __future__ import annotations

from tpudeploy.core.stage import COMPILING, PER_CENT, WARM_UP, WEIGHTS
from tpudeploy.domain.stage import Stage
from tpudeploy.views import words


def in_words(of: Stage, detail: str) -> str:
    """`detail` is the machine's own word, for what has none of ours; "" where there is nothing to say but the phase."""
    what, rest = _what(of, detail), left(of)
    return f"{what or of.name}, {rest}" if rest else what


def left(of: Stage) -> str:
    if of.left_seconds is None:
        return ""
    return f"{'at least' if of.is_least else 'about'} {words.minutes(of.left_seconds)} left"


def _what(of: Stage, detail: str) -> str:
    if of.name == COMPILING:
        graphs = "" if of.done is None else f" {of.done}" if of.of is None else f" {of.done} of {of.of}"
        return f"compiling{graphs}"
    if of.name == WEIGHTS:
        share = "" if of.of != PER_CENT else f", {of.done} %"
        return f"loading weights{share}"
    if of.name == WARM_UP:
        return "warming up"
    return f"{detail} ({of.done} % of the image's layers)" if of.of == PER_CENT else detail
