"""List the environment variables that vLLM and tpu_inference read, and the values that they accept."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache

# What files of tpu_inference 0.32.0 read from the environment directly, beside its envs.py.
_READ_DIRECTLY = """
    CLOUD_TPU_TASK_ID TPU_CHIPS_PER_PROCESS_BOUNDS TPU_KV_TRANSFER_PORT TPU_MAX_HOST_KV_BUFFER_SIZE TPU_MOE_ENABLE_SP
    TPU_P2P_WAIT_PULL_TIMEOUT TPU_PROCESS_ADDRESSES TPU_PROCESS_BOUNDS TPU_PROCESS_PORT TPU_SIDE_CHANNEL_PORT
    TPU_VISIBLE_CHIPS
"""
_READERS: Mapping[str, Callable[[str], object]] = {"integer": int, "number": float}


@cache
def _rules() -> Mapping[str, tuple[str, ...]]:
    """Return what the value of each variable must be, as the words of its row in the table."""
    from tpudeploy.catalog import _vllm_variables  # only for profiles that set variables

    rows = (row.split() for row in _vllm_variables.VARIABLES.strip().splitlines())
    return dict.fromkeys(_READ_DIRECTLY.split(), ()) | {name: tuple(words) for name, *words in rows}


@cache
def names() -> frozenset[str]:
    """Return the name of every variable that vLLM or tpu_inference reads."""
    return frozenset(_rules())


def is_read(name: str) -> bool:
    return name in names()


def expected_instead(name: str, value: str) -> str | None:
    """Return what the engine takes for this variable if it refuses `value`, or None if it accepts it."""
    kind, *more = _rules().get(name) or [""]
    if not kind or (not value and "empty" in more):
        return None
    if kind in _READERS:
        try:
            _READERS[kind](value)
        except ValueError:
            return f"an {kind}" if kind == "integer" else f"a {kind}"
        return None
    choices = kind.split("|")
    actual = value.lower() if "any-case" in more else value
    return None if actual in choices else ", ".join(choices[:-1]) + f" or {choices[-1]}"


def is_setting(name: str) -> bool:
    """Return whether the engine reads it as a setting: `MIN_TOKEN_BUCKET` counts tokens, `VLLM_API_KEY` is a secret."""
    return name in names() and not name.endswith(_SECRET_ENDINGS)


def closest_variable(name: str) -> str | None:
    """Return the variable that `name` misspells by a letter or two, or None."""
    from difflib import SequenceMatcher

    if name in names():
        return None
    similar_length = [other for other in names() if abs(len(name) - len(other)) <= _MOST_LETTERS_APART]
    ratios = {other: SequenceMatcher(None, name.upper(), other).ratio() for other in similar_length}
    best = max(ratios, key=lambda other: ratios[other], default=None)
    return best if best is not None and ratios[best] > _LEAST_RATIO else None


_SECRET_ENDINGS = ("KEY", "KEY_ID", "TOKEN", "SECRET", "PASSWORD")
# `VLLM_TPU_BUKCET_PADDING_GAP` has 0.96. Names of other programs are below this.
_LEAST_RATIO = 0.9
_MOST_LETTERS_APART = 2
