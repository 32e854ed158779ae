"""The block size as the platform derives it, and how many blocks a rank gets.

Sources: tpu_inference 0.32.0 platforms/tpu_platform.py:452-473, layers/vllm/backends/flash_attn.py:109-145,
worker/tpu_worker.py:512-570; vLLM 0.32.0 v1/core/kv_cache_utils.py:1627.
"""

from __future__ import annotations

from tpudeploy.domain.budget import Engine
from tpudeploy.sizing.numbers import ceil_div, power_of_two

_HALF_SMEM_BYTES = 1024 * 1024 // 2  # block tables get half of the 1 MiB scalar memory
_ENTRY_BYTES = 4
_SMALLEST, _LARGEST = 16, 256
_LONG = 8_192


def block_size(engine: Engine) -> int:
    """Tokens of one block: the profile's, unguarded; else the platform's, no smaller than its guard allows."""
    return engine.block_size or max(_default(engine.max_model_len), guarded(engine))


def guarded(engine: Engine) -> int:
    """The smallest block with which the block tables fit in scalar memory.

    power_of_two(ceil(max_model_len / (524,288 B // max_num_seqs // 4 B)))
    """
    entries = max(_HALF_SMEM_BYTES // engine.max_num_seqs // _ENTRY_BYTES, 1)
    return power_of_two(ceil_div(engine.max_model_len, entries))


def num_blocks(engine: Engine, *, hbm_bytes: int, weights_bytes: int, bytes_per_block: int) -> int:
    """Blocks of one rank; its chips are counted together, as the worker does.

    available = int(chips x hbm x utilization - chips x weights);  blocks = available // (chips x bytes_per_block)
    """
    chips = engine.tensor_parallel
    available = int(chips * hbm_bytes * engine.utilization - chips * weights_bytes)
    if engine.blocks_override is not None and available > 0:
        return engine.blocks_override
    return max(available // (chips * bytes_per_block), 0)


def _default(max_model_len: int) -> int:
    """16 beyond 8,192 tokens; else a sixteenth of the length, from 16 to 256."""
    if max_model_len > _LONG:
        return _SMALLEST
    return min(max(power_of_two(max_model_len) // 16, _SMALLEST), _LARGEST)
