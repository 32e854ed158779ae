"""The stand-in's compile cache: a file a program, as JAX keeps them, found again by what is in it.

JAX names an entry by a hash of the program, the compiler and the chips, and keeps only what took a second to compile.
The log's own figures of the measured boot: of 447.75 s of engine start, 393.98 s were compilation. The groups of graphs
that took a second each and more make 401 s of it; read from the cache they take the rest of what is left of these.
"""

from __future__ import annotations

import hashlib
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from tpudeploy.emulator.machine.vllm.arguments import Arguments
from tpudeploy.emulator.machine.vllm.engine import Engine

LEAST_SECONDS = 1.0  # JAX's jax_persistent_cache_min_compile_time_secs
READ_SHARE = 0.02  # of what compiling a program takes, to read it from the cache: what brings the sum to the log's
# The stand-in's programs depend on these, beside the model, the image, the chips and the number of blocks.
FLAGS = (
    *("tensor-parallel-size", "data-parallel-size", "dtype", "kv-cache-dtype", "block-size", "max-model-len"),
    *("max-num-seqs", "max-num-batched-tokens", "speculative-config", "limit-mm-per-prompt", "additional-config"),
)
GAP = "VLLM_TPU_BUCKET_PADDING_GAP"


@dataclass(frozen=True, slots=True, kw_only=True)
class Programs:
    """`folder` None: nothing is cached. `identity` is what all programs of this server were compiled for."""

    folder: Path | None
    identity: str

    def has(self, name: str) -> bool:
        """Return whether a program can be read back: an incomplete file, or one of another server, does not count."""
        entry = self._entry(name)
        return entry is not None and entry.is_file() and entry.read_bytes() == self._content(name)

    def keep(self, name: str) -> None:
        entry = self._entry(name)
        if entry is None:
            return
        entry.parent.mkdir(parents=True, exist_ok=True)
        entry.write_bytes(self._content(name))

    def _entry(self, name: str) -> Path | None:
        function = name.partition(" --> ")[0]  # JAX names the file by the function; its shapes are in the hash
        slug = "".join(c if c.isalnum() else "_" for c in function)
        return None if self.folder is None else self.folder / f"jit_{slug}-{self._hash(name)}-cache"

    def _content(self, name: str) -> bytes:
        return (self._hash(f"content of {name}") * 16).encode()

    def _hash(self, name: str) -> str:
        return hashlib.sha256(f"{self.identity}\n{name}".encode()).hexdigest()


def programs_of(engine: Engine, arguments: Arguments, task: Mapping[str, Any]) -> Programs:
    inputs: Sequence[object] = (
        engine.name,  # a copy of the weights is the same model
        task["image_digest"],
        task["accelerator_type"],
        engine.cache.blocks,
        *(arguments.flags.get(flag) for flag in FLAGS),
        task["environment"].get(GAP),
    )
    folder = task["cache_folder"]
    return Programs(folder=None if folder is None else Path(folder), identity=repr(inputs))
