"""The engines that serve on TPU: the images that hold one, the tags that name a release, and what differs by release.

Tags: vllm-project/tpu-inference .buildkite/nightly_releases.yml (`v0.32.0`, `nightly`, `nightly-DATE-COMMIT-COMMIT`,
`latest`, `gemma4`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from functools import lru_cache

from tpudeploy.catalog import releases
from tpudeploy.domain.engine import Engine, EngineKind, EngineOrigin, EngineRelease
from tpudeploy.domain.frozen import frozen

# By the last part of an image's name, which mirrors keep.
KIND_OF_IMAGE: Mapping[str, EngineKind] = {
    "vllm-tpu": EngineKind.TPU_INFERENCE,
    "vllm-torchtpu": EngineKind.TORCHTPU,
}
_RELEASE = re.compile(
    r"v?(?P<release>[0-9]+\.[0-9]+\.[0-9]+(?:[.-]?(?:rc|a|b|dev)[0-9]+)?)(?:\.?post[0-9]+)?(?:[-+_.].*)?"
)
_NUMBERS = re.compile(r"([0-9]+)\.([0-9]+)\.([0-9]+)")

# The day on which PyPI got each release of vllm-tpu, release candidates left out (read on 2026-11-28).
RELEASED: Mapping[str, str] = {
    "0.9.3": "20250527",
    "0.10.1": "20250917",
    "0.11.1": "20251016",
    "0.12.0": "20251206",
    "0.13.3": "20251230",
    "0.18.0": "20260420",
    "0.19.0": "20260505",
    "0.20.0": "20260521",
    "0.21.0": "20260605",
    "0.22.0": "20260616",
    "0.23.0": "20260624",
    "0.24.0": "20260707",
    "0.25.0": "20260722",
    "0.26.0": "20260731",
    "0.27.0": "20260820",
    "0.28.0": "20260827",
    "0.29.0": "20260910",
    "0.30.0": "20260930",
    "0.31.0": "20261006",
    "0.32.0": "20261022",
}
_MOVING = frozenset({"", "latest", "nightly"})  # tags that the publisher moves to each newer build
_NIGHTLY = re.compile(r"nightly-(20[0-9]{6})(?:-.*)?")

# The newest release that is published, where the arithmetic knows none.
PUBLISHED: Mapping[EngineKind, str] = {EngineKind.TORCHTPU: "0.29.0"}


@frozen
class EngineDifference:
    """What is not as in tpu-inference. `ignored` are variables that the engine does not read.

    `memory` says why the arithmetic is not for it. `cache_variable` names the folder of compiled programs.
    """

    memory: str
    ignored: frozenset[str]
    cache_variable: str
    source: str


DIFFERENCES: Mapping[EngineKind, EngineDifference] = {
    EngineKind.TORCHTPU: EngineDifference(
        memory="`vllm-torchtpu` is another engine than the tpu-inference of vllm-tpu: each layer gets the page of the "
        "largest head, a profiling run decides what is left for the KV cache, and the sizes of its programs are not "
        "known",
        ignored=frozenset(
            {
                "MODEL_IMPL_TYPE",
                "NUM_PRECOMPILE_WORKERS",
                "SKIP_JAX_PRECOMPILE",
                "TPU_MULTIPROCESS_DP",
                "VLLM_TPU_BUCKET_PADDING_GAP",
                "VLLM_XLA_CACHE_PATH",
            }
        ),
        cache_variable="TORCH_TPU_TIER3_COMPILATION_CACHE_ROOT",
        source="vllm-torchtpu 0.29.0, read in its source and not run",
    ),
}


# The folder of compiled programs.
CACHE_VARIABLE = "VLLM_XLA_CACHE_PATH"
DEFAULT_CACHE = "/root/.cache/vllm/xla_cache"  # vLLM's own, in its container: ~/.cache/vllm/xla_cache


def cache_variable(image: str) -> str:
    """Return the variable that names the folder of compiled programs to the engine of an image."""
    difference = DIFFERENCES.get(_by_name(image).kind)
    return CACHE_VARIABLE if difference is None else difference.cache_variable


@frozen
class EngineFault:
    """A fault of tpu-inference from release `first` to `last`, where the value of a flag contains `word`."""

    first: str
    last: str
    flag: str
    word: str
    what: str
    fix: str
    source: str

    def affects(self, engine: Engine) -> bool:
        if engine.kind is not EngineKind.TPU_INFERENCE or engine.release is None:
            return False
        return numbers(self.first) <= numbers(engine.release) <= numbers(self.last)


FAULTS: tuple[EngineFault, ...] = (
    EngineFault(
        first="0.27.0",
        last="0.29.0",
        flag="kv-transfer-config",
        word="TPUConnectorHMA",
        what="stops at its start with the connector TPUConnectorHMA",
        fix="use v0.30.0 or newer, or the connector TPUConnector",
        source="llm-d pull request 2533",
    ),
)


@lru_cache(maxsize=256)
def _by_name(image: str) -> Engine:
    """Return the engine as far as the name and the tag of an image tell it."""
    name, _, _ = image.partition("@")
    tag = _tag(image)
    path = name.removesuffix(f":{tag}")
    kind = KIND_OF_IMAGE.get(path.rpartition("/")[2], EngineKind.UNKNOWN)
    match = _RELEASE.fullmatch(tag)
    if kind is EngineKind.UNKNOWN or match is None:
        return Engine(kind=kind, image=image)
    return Engine(kind=kind, image=image, release=match["release"], origin=EngineOrigin.TAG)


def _tag(image: str) -> str:
    name, _, _ = image.partition("@")
    _, colon, tag = name.rpartition(":")
    return tag if colon and "/" not in tag else ""


def identify(
    image: str,
    digest: str | None = None,
    *,
    locked: Mapping[str, str] | None = None,
    boots: Mapping[str, str] | None = None,
) -> Engine:
    """Return the engine of an image: its kind by the image's name, its release by the best witness.

    `digest` is what the image is pinned to, unless it is written. `locked` are the digests of other names, as in the
    lock file, and `boots` the versions that engines reported, by digest.
    """
    engine = _by_name(image)
    if engine.kind is EngineKind.UNKNOWN:
        return engine
    digest = digest or image.partition("@")[2]
    report = (boots or {}).get(digest, "") if digest else ""
    match = _RELEASE.fullmatch(report)
    if match is not None:
        return Engine(kind=engine.kind, image=image, release=match["release"], origin=EngineOrigin.BOOT)
    if engine.release is not None or not digest:
        return engine
    for name, to in (locked or {}).items():
        other = _by_name(name)
        if to == digest and other.kind is engine.kind and other.release is not None:
            return Engine(kind=engine.kind, image=image, release=other.release, origin=EngineOrigin.LOCK_FILE)
    return engine


def lacks(image: str, last: str | None) -> str:
    """Return why an image that names no release has surely not what release `last` had last, or "".

    None stands for what no release had.
    """
    engine = _by_name(image)
    if engine.kind is not EngineKind.TPU_INFERENCE or engine.release is not None or "@" in image:
        return ""
    tag = _tag(image)
    night = _NIGHTLY.fullmatch(tag)
    if last is None:
        is_older = night is not None and night[1] <= RELEASED[releases.NEWEST]
        return f"{tag} is older, and no release before has it" if is_older else ""
    later = min((day for version, day in RELEASED.items() if numbers(version) > numbers(last)), default="")
    if tag in _MOVING:
        return f"{tag or 'latest'} is a newer build"
    return f"{tag} is newer than {last}" if night is not None and later and night[1] >= later else ""


def release_in(text: str) -> str:
    """Return the release in a tag or in the version that an engine reports, without its local part, or ""."""
    match = _RELEASE.fullmatch(text)
    return "" if match is None else match["release"]


def names_release(tag: str) -> bool:
    """Return whether a tag names a release, whatever the image is."""
    return _RELEASE.fullmatch(tag) is not None


@lru_cache(maxsize=256)
def numbers(version: str) -> tuple[int, ...]:
    """Return the numbers of a version, (0, 32, 0), or () for a text without them."""
    match = _NUMBERS.match(version)
    return () if match is None else tuple(map(int, match.groups()))


@lru_cache(maxsize=64)
def release(version: str | None) -> EngineRelease:
    """Return the row whose arithmetic is used for a version: its own, else the next older one, or the oldest.

    An unknown version is sized as the newest.
    """
    target = version or releases.NEWEST
    older = [each for each in releases.VERSIONS if numbers(each) <= numbers(target)]
    content = releases.table(older[-1] if older else releases.VERSIONS[0])
    return EngineRelease(
        version=content["release"],
        libtpu=content["packages"]["libtpu"],
        caps_ladder=content["rules"]["token_buckets"]["is_capped"],
    )


def is_known(version: str | None) -> bool:
    """Return whether the arithmetic has rules of its own for this version."""
    return version in releases.VERSIONS
