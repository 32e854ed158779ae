"""List the keys of the format, as the schema defines them, and the flags and variables of vLLM that they set."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import lru_cache
from typing import get_args

from pydantic.fields import FieldInfo

from tpudeploy.config.nodes import Path
from tpudeploy.config.schema import ProfileSpec, Section


@lru_cache(maxsize=1024)
def fields_at(path: Path, root: type[Section] = ProfileSpec) -> Mapping[str, FieldInfo] | None:
    """Return the keys below `path`; None for a section whose keys a person chooses, and for a path without keys."""
    section: type[Section] | None = root
    for part in path:
        info = section.model_fields.get(str(part)) if section else None
        section = section_of(info) if info else None
    return section.model_fields if section else None


def field_at(path: Path, root: type[Section] = ProfileSpec) -> FieldInfo:
    """Return the key at `path`, or the one whose list has an item there."""
    key = tuple(part for part in path if isinstance(part, str))
    return (fields_at(key[:-1], root) or {})[key[-1]]


def section_of(info: FieldInfo) -> type[Section] | None:
    """Return the section that a key holds, one that may be absent included, or None."""
    for annotation in get_args(info.annotation) or (info.annotation,):
        if isinstance(annotation, type) and issubclass(annotation, Section):
            return annotation
    return None


def all_keys(path: Path = ()) -> Iterator[Path]:
    """Yield every key of the format, in its order."""
    for name in fields_at(path) or ():
        yield (*path, name)
        yield from all_keys((*path, name))


FLAG_OF_KEY: Mapping[Path, str] = {
    ("model", "revision"): "revision",
    ("serving", "tensor_parallel_size"): "tensor-parallel-size",
    ("serving", "data_parallel_size"): "data-parallel-size",
    ("serving", "dtype"): "dtype",
    ("serving", "kv_cache_dtype"): "kv-cache-dtype",
    ("serving", "hbm_utilization"): "gpu-memory-utilization",
    ("serving", "block_size"): "block-size",
    ("serving", "max_model_len"): "max-model-len",
    ("serving", "max_num_seqs"): "max-num-seqs",
    ("serving", "max_num_batched_tokens"): "max-num-batched-tokens",
    ("serving", "port"): "port",
}
VARIABLE_OF_KEY: Mapping[Path, str] = {
    ("serving", "padding_gap"): "VLLM_TPU_BUCKET_PADDING_GAP",
    ("serving", "xla_cache_path"): "VLLM_XLA_CACHE_PATH",
}
# Flags that would put a secret on a command line, with the variable that vLLM reads instead.
SECRET_OF_FLAG: Mapping[str, str] = {"api-key": "VLLM_API_KEY", "hf-token": "HF_TOKEN"}
