"""Measured boots, and the behaviour of the stand-in where none was measured.

Sources: boot logs of a v6e-1 (32,768 tokens, 17,996 blocks) and of a v6e-4 (16,384 tokens, TP 4, 18,523 blocks),
both of google/gemma-4-E2B-it. Nothing else has figures, and the log says so; on purpose, the product's
arithmetic is not used.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.emulator.machine.vllm.arguments import Arguments


@dataclass(frozen=True, slots=True, kw_only=True)
class Cache:
    """The KV cache of a boot. `origin`: measured, scenario, or unmeasured, for which no figures are reported."""

    block_size: int
    blocks: int
    memory: str
    origin: str

    @property
    def tokens(self) -> int:
        return self.blocks * self.block_size


@dataclass(frozen=True, slots=True, kw_only=True)
class MeasuredBoot:
    """Matches a server whose arguments, with vLLM's defaults, say all of `flags`."""

    model: str
    accelerator_type: str
    max_model_len: int
    flags: Mapping[str, str]
    cache: Cache


DEFAULTS = {  # the block size has none: it follows from the lengths
    "gpu-memory-utilization": "0.92",
    "kv-cache-dtype": "auto",
    "max-num-seqs": "256",
    "tensor-parallel-size": "1",
}
UNMEASURED = ("additional-config", "data-parallel-size", "quantization", "speculative-config")  # each takes memory
UNMEASURED_CACHE = Cache(block_size=64, blocks=8192, memory="", origin="unmeasured")
MEASURED = (
    MeasuredBoot(
        model="google/gemma-4-E2B-it",
        accelerator_type="v6e-1",
        max_model_len=32_768,
        flags={
            "tensor-parallel-size": "1",
            "gpu-memory-utilization": "0.92",
            "kv-cache-dtype": "auto",
            "max-num-seqs": "256",
            "block-size": "64",
        },
        cache=Cache(
            block_size=64,
            blocks=17_996,
            memory="total_hbm_limit_gb=31.24GiB | total_hbm_limit_cap_gb=28.74GiB | "
            "total_hbm_used_gb=8.97GiB | total_hbm_avail_gb=19.77GiB",
            origin="measured",
        ),
    ),
    MeasuredBoot(
        model="google/gemma-4-E2B-it",
        accelerator_type="v6e-4",
        max_model_len=16_384,
        flags={
            "tensor-parallel-size": "4",
            "gpu-memory-utilization": "0.4",
            "kv-cache-dtype": "fp8",
            "max-num-seqs": "256",
            "block-size": "32",
        },
        cache=Cache(block_size=32, blocks=18_523, memory="", origin="measured"),
    ),
)


def cache_of(arguments: Arguments, task: Mapping[str, Any], max_model_len: int) -> Cache:
    """Return the cache by the scenario, else of a measured boot, else one without figures."""
    measured = next((row.cache for row in MEASURED if _matches(row, arguments, task, max_model_len)), UNMEASURED_CACHE)
    block_size = int(arguments.text("block-size") or measured.block_size)
    blocks = int(arguments.text("num-gpu-blocks-override") or measured.blocks)
    if task["kv_blocks"] is None and task["block_size"] is None:
        same = (block_size, blocks) == (measured.block_size, measured.blocks)
        return measured if same else Cache(block_size=block_size, blocks=blocks, memory="", origin="unmeasured")
    return Cache(
        block_size=task["block_size"] or block_size, blocks=task["kv_blocks"] or blocks, memory="", origin="scenario"
    )


def _matches(row: MeasuredBoot, arguments: Arguments, task: Mapping[str, Any], max_model_len: int) -> bool:
    place = (row.model, row.accelerator_type, row.max_model_len)
    same_place = place == (arguments.public_name, task["accelerator_type"], max_model_len)
    return (
        same_place
        and not any(arguments.has(flag) for flag in UNMEASURED)
        and all(_same(arguments.text(flag, DEFAULTS.get(flag, value)), value) for flag, value in row.flags.items())
    )


def _same(value: str, measured_value: str) -> bool:
    """Compare numbers by value: 0.90 is 0.9."""
    try:
        return float(value) == float(measured_value)
    except ValueError:
        return value == measured_value
