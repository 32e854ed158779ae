"""List the environment variables that vLLM and tpu_inference read, and the values that they accept."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping
from difflib import SequenceMatcher
from functools import lru_cache

from tpudeploy.catalog import releases

# What libtpu reads, and tpu_inference sets for some of its processes.
_OF_LIBTPU = "TPU_CHIPS_PER_PROCESS_BOUNDS TPU_PROCESS_ADDRESSES TPU_PROCESS_BOUNDS"
_READERS: Mapping[str, Callable[[str], object]] = {"integer": int, "number": float}


@lru_cache(maxsize=8)
def _rules(release: str | None) -> Mapping[str, str]:
    """Return what the value of each variable must be, in the words of its row."""
    return {**dict.fromkeys(_OF_LIBTPU.split(), ""), **releases.table(release)["variables"]}


def names(release: str | None = None) -> Collection[str]:
    """Return the name of every variable that vLLM or tpu_inference reads."""
    return _rules(release).keys()


def is_read(name: str, release: str | None = None) -> bool:
    return name in names(release)


def expected_instead(name: str, value: str, release: str | None = None) -> str | None:
    """Return what the engine takes for this variable if it refuses `value`, or None if it accepts it."""
    kind, *more = _rules(release).get(name, "").split() or [""]
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
    return is_read(name) and not name.endswith(_SECRET_ENDINGS)


def closest_variable(name: str, release: str | None = None) -> str | None:
    """Return the variable that `name` misspells by a letter or two, or None."""
    if is_read(name, release):
        return None
    similar_length = [other for other in names(release) if abs(len(name) - len(other)) <= _MOST_LETTERS_APART]
    ratios = {other: SequenceMatcher(None, name.upper(), other).ratio() for other in similar_length}
    best = max(ratios, key=lambda other: ratios[other], default=None)
    return best if best is not None and ratios[best] > _LEAST_RATIO else None


_SECRET_ENDINGS = ("KEY", "KEY_ID", "TOKEN", "SECRET", "PASSWORD")
# `VLLM_TPU_BUKCET_PADDING_GAP` has 0.96. Names of other programs are below this.
_LEAST_RATIO = 0.9
_MOST_LETTERS_APART = 2
