"""The engines that serve on TPU: the images that hold one, the tags that name a release, and what differs by release.

Tags: vllm-project/tpu-inference .buildkite/nightly_releases.yml (`v0.32.0`, `nightly`, `nightly-DATE-COMMIT-COMMIT`,
`latest`, `gemma4`).
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import lru_cache

from tpudeploy.catalog import releases
from tpudeploy.domain.engine import Engine, EngineKind, EngineOrigin, EngineRelease

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


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class EngineFault:
    """A fault of tpu-inference from release `first` to `last`.

    It shows where the value of `flag` contains `word`, or where the plug-in's own class runs a model of `architecture`
    with an output table of its own.
    """

    first: str
    last: str
    what: str
    fix: str
    source: str
    flag: str = ""
    word: str = ""
    architecture: str = ""

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
    # Asked of each of these releases, with its own loader and a config of Qwen2.5-7B-Instruct.
    EngineFault(
        first="0.29.0",
        last="0.32.0",
        architecture="Qwen2ForCausalLM",
        what="stops with \"'Qwen2Config' object has no attribute 'text_config'\": where the output table is not tied, "
        "its class for Qwen 2 reads a field that only multimodal configs have",
        fix="write serving.env.MODEL_IMPL_TYPE: vllm, and vLLM's own class loads it",
        source="tpu_inference models/jax/qwen2.py",
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
    labels: Mapping[str, str] | None = None,
    boots: Mapping[str, str] | None = None,
) -> Engine:
    """Return the engine of an image: its kind by the image's labels or name, its release by the best witness.

    `digest` is what the image is pinned to, unless it is written. `locked` are the digests of other names, as in the
    lock file; `labels` are the texts of `words_of_labels` and `boots` the versions that engines reported, by digest.
    """
    engine = _by_name(image)
    digest = digest or image.partition("@")[2]
    if not digest:
        return engine
    text = (labels or {}).get(digest)
    kind, label = _of_labels(text or "")
    kind = engine.kind if kind is EngineKind.UNKNOWN else kind
    if kind is EngineKind.UNKNOWN:
        return Engine(kind=kind, image=image, labels=text)
    is_tag = engine.kind is kind and engine.release is not None
    witnesses = (
        (EngineOrigin.BOOT, (boots or {}).get(digest, "")),
        (EngineOrigin.TAG, engine.release or "" if is_tag else ""),
        (EngineOrigin.LABELS, label),
        (EngineOrigin.LOCK_FILE, _release_of_pins(kind, digest, locked or {})),
    )
    for origin, version in witnesses:
        match = _RELEASE.fullmatch(version)
        if match is not None:
            return Engine(kind=kind, image=image, release=match["release"], origin=origin, labels=text)
    return Engine(kind=kind, image=image, labels=text)


def _release_of_pins(kind: EngineKind, digest: str, images: Mapping[str, str]) -> str:
    """Return the release of another name of this digest, or ""."""
    others = (_by_name(name) for name, to in images.items() if to == digest)
    return next((other.release for other in others if other.kind is kind and other.release), "")


# Labels that name what is in an image, by the OCI image specification, and names of engines in them. That the
# publishers of vllm-tpu set any is UNVERIFIED: docker/Dockerfile of tpu-inference sets none, a company's build may.
VERSION_LABEL = "org.opencontainers.image.version"
NAMING_LABELS = tuple(f"org.opencontainers.image.{key}" for key in ("title", "source", "url", "ref.name"))
_KIND_OF_NAME = {**KIND_OF_IMAGE, "tpu-inference": EngineKind.TPU_INFERENCE, "torchtpu": EngineKind.TORCHTPU}
_MOST_OF_LABEL = 64


def words_of_labels(labels: Mapping[str, str]) -> str:
    """Return what the labels of an image say of its engine: `tpu-inference 0.31.0`, one half of it, or "".

    An image inherits the labels of the one that it is built on, such as the version of a Linux, so a version counts
    only beside the name of an engine, or alone if it has the form of all releases of vLLM, 0.x.y.
    """
    names = [labels[name] for name in NAMING_LABELS if labels.get(name)]
    parts = [part for name in names for part in re.split(r"[/:@]", name.lower().removesuffix(".git"))]
    kinds = {kind for part in parts if (kind := _KIND_OF_NAME.get(part)) is not None}
    match = _RELEASE.fullmatch(labels.get(VERSION_LABEL, "")[:_MOST_OF_LABEL])
    release = "" if match is None else match["release"]
    if len(kinds) == 1:
        return f"{kinds.pop()} {release}".strip()
    return release if not names and numbers(release)[:1] == (0,) else ""


def _of_labels(text: str) -> tuple[EngineKind, str]:
    """Return the engine and the release in a text of `words_of_labels`."""
    name, _, release = text.rpartition(" ")
    if text in set(EngineKind):
        name, release = text, ""
    return EngineKind(name) if name in set(EngineKind) else EngineKind.UNKNOWN, release


def needs_labels(image: str) -> bool:
    """Return whether the name and the tag of an image leave its engine or its release open."""
    return _by_name(image).release is None


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


def basis(version: str | None) -> str:
    """Return the engine and the release whose arithmetic is used for a version: what figures are for."""
    return f"{EngineKind.TPU_INFERENCE} {release(version).version}"


def has_own_figures(engine: Engine) -> bool:
    """Return whether the arithmetic is that of the image's release, or its engine has none."""
    return engine.kind in DIFFERENCES or (engine.kind is EngineKind.TPU_INFERENCE and is_known(engine.release))


def figures_of(engine: Engine) -> str:
    """Return which release figures are for, and what the image has instead."""
    row = basis(engine.release)
    return f"For {row}" if has_own_figures(engine) else f"Figures are for {row}; the image has {engine.title}"


def is_known(version: str | None) -> bool:
    """Return whether the arithmetic has rules of its own for this version."""
    return version in releases.VERSIONS
