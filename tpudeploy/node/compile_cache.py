"""The compile cache in a bucket: the folder of the machine that it fills, and the key of what its programs depend on.

Compiled programs depend on the software (the image's digest, which includes jax and libtpu, and the setup steps), on
the model, on the chips, and on every flag and variable except those that are known not to matter. The engine looks up
each program by its content, so a key that is too narrow costs a compilation, and a wrong program is never used.

Why: decision 45 in docs/decisions.md.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterator, Sequence

from tpudeploy.catalog.engines import CACHE_VARIABLE, DEFAULT_CACHE, cache_variable
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.deployment import BucketFolder, CompileCache, Container
from tpudeploy.node.mounts import host_path

# Flags and variables that do not change the programs: those of the API, of logs and of paths.
_AROUND = """
api-key allowed-headers allowed-methods allowed-origins chat-template disable-log-stats download-dir
enable-auto-tool-choice enable-log-requests host port reasoning-parser response-role root-path
safetensors-load-strategy served-model-name ssl-ca-certs ssl-certfile ssl-keyfile tool-call-parser uvicorn-log-level
"""
_AROUND_FLAGS = frozenset(_AROUND.split())
_AROUND_VARIABLES = frozenset(
    (
        CACHE_VARIABLE,
        "DO_NOT_TRACK",
        "HF_ENDPOINT",
        "HF_HOME",
        "HF_HUB_OFFLINE",
        "VLLM_LOGGING_LEVEL",
        "VLLM_NO_USAGE_STATS",
    )
)
_KEY = 20  # hexadecimal digits: 80 bits tell settings apart that one bucket ever sees


def inside(container: Container) -> str:
    """Return the folder of the compile cache in the container."""
    return container.environment.get(cache_variable(container.image), DEFAULT_CACHE)


def compile_cache(spec: ProfileSpec, container: Container, kind: AcceleratorType) -> CompileCache | None:
    """Return the cache, or None if the profile names no bucket or the cache is in no volume (a check reports that)."""
    folder = host_path(container, inside(container))
    if spec.serving.xla_cache_bucket is None or folder is None:
        return None
    return CompileCache(
        bucket=BucketFolder.parse(spec.serving.xla_cache_bucket),
        key=program_key(spec, container, kind),
        digest=container.image.partition("@sha256:")[2],
        folder=folder,
    )


def program_key(spec: ProfileSpec, container: Container, kind: AcceleratorType) -> str:
    """Return a key that is equal for two servers on one image if neither compiles what the other has not."""
    settings = {
        "model": spec.model.id,
        "chips": kind.name,
        "flags": sorted(_flags(container.serve[3:])),
        "variables": sorted(pair for pair in container.environment.items() if pair[0] not in _AROUND_VARIABLES),
        "setup": container.setup,
    }

    return hashlib.sha256(json.dumps(settings).encode()).hexdigest()[:_KEY]


def _flags(words: Sequence[str]) -> Iterator[tuple[str, ...]]:
    """Yield each flag that changes the programs, with its values."""
    starts = [n for n, word in enumerate(words) if word.startswith("--")]
    for start, end in zip(starts, [*starts[1:], len(words)], strict=True):
        name = words[start].partition("=")[0].removeprefix("--")
        if name not in _AROUND_FLAGS and name.removeprefix("no-") not in _AROUND_FLAGS:
            yield tuple(words[start:end])
