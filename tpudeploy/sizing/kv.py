"""The KV cache's shape: the block size, bytes of a block on one chip, blocks of a rank, and blocks of a request.

Sources: tpu_inference 0.32.0 platforms/tpu_platform.py check_and_update_config, layers/vllm/backends/flash_attn.py,
worker/tpu_worker.py, runner/kv_cache.py, runner/kv_cache_manager.py and
kernels/ragged_paged_attention/v3; vLLM 0.32.0 v1/core/kv_cache_utils.py.
"""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import dataclass

from tpudeploy.domain.budget import EngineSettings
from tpudeploy.domain.model import Attention, Implementation, LanguageModel, RecurrentState
from tpudeploy.sizing.numbers import HALF_LANES, LANES, align, ceil_div, itemsize, power_of_two

_WORD = 4  # bytes: elements of smaller types are packed into words of four
_HALF_SMEM_BYTES = 1024 * 1024 // 2  # block tables get half of the 1 MiB scalar memory
_ENTRY_BYTES = 4
_SMALLEST, _LARGEST = 16, 256
_SLOTS_A_REQUEST = 8  # tpu_inference 0.32.0 core/hybrid_coordinator.py, DEFAULT_MAMBA_CACHE_MULTIPLIER
_LONG = 8_192


def block_size(engine: EngineSettings) -> int:
    """Return the tokens of one block: the profile's, as it is; else the platform's, no smaller than its guard allows.

    The platform's is 16 beyond 8,192 tokens; else a sixteenth of the length, from 16 to 256.
    """
    if engine.block_size:
        return engine.block_size
    default = _SMALLEST
    if engine.max_model_len <= _LONG:
        default = min(max(power_of_two(engine.max_model_len) // 16, _SMALLEST), _LARGEST)
    return max(default, least_block_size(engine))


def least_block_size(engine: EngineSettings) -> int:
    """Return the smallest block with which the block tables fit in scalar memory.

    power_of_two(ceil(max_model_len / (524,288 B // max_num_seqs // 4 B)))
    """
    entries = max(_HALF_SMEM_BYTES // engine.max_num_seqs // _ENTRY_BYTES, 1)
    return power_of_two(ceil_div(engine.max_model_len, entries))


def scalar_memory_refusal(engine: EngineSettings) -> str:
    """Return the compiler's words where block tables fill all of scalar memory, or "".

    libtpu 0.0.48, for a v6e chip that is absent: the kernel of tpu_inference 0.32.0 compiles for 256 requests of 1,016
    blocks, and not of 1,024; of 2,048, the words are those of an allocation.
    """
    size = _ENTRY_BYTES * engine.max_num_seqs * ceil_div(engine.max_model_len, block_size(engine))
    if size > 2 * _HALF_SMEM_BYTES:
        return f"Allocation (size={size}) would exceed memory (size={2 * _HALF_SMEM_BYTES})"
    return "Ran out of memory in memory space smem" if size == 2 * _HALF_SMEM_BYTES else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class KernelRefusal:
    """The compiler's refusal of the attention kernel in steps of `tokens` or more, in its words."""

    tokens: int
    words: str


# By heads, KV heads and head size on a chip, and the block: libtpu 0.0.48, for a v6e chip that is absent, refuses the
# kernel of tpu_inference 0.32.0 in steps of these tokens, and for 32 heads also of 8,192. Of 32 heads it compiles 16
# and 512 tokens. Its arrays grow with KV heads, and with fewer queries for each. No boot was seen.
_REFUSALS = {
    (16, 16, 128, 256): KernelRefusal(
        tokens=2_048, words="Ran out of memory in memory space vmem. Used 139.59M of 127.94M vmem."
    ),
    (32, 32, 128, 256): KernelRefusal(
        tokens=2_048, words="Ran out of memory in memory space vmem. Used 278.82M of 127.94M vmem."
    ),
    (64, 64, 64, 256): KernelRefusal(
        tokens=8_192, words="CompileTimeScopedVmemOom: Ran out of memory in memory space vmem while allocating on stack"
    ),
}
_REFUSES = "0.32.0"


def vector_memory_refusal(model: LanguageModel, engine: EngineSettings, generation: str) -> KernelRefusal | None:
    """Return the compiler's refusal of these heads in steps of this size, where it was asked about exactly them."""
    is_asked = generation == "v6e" and engine.release == _REFUSES and model.implementation is Implementation.JAX
    if not is_asked or itemsize(engine.cache_dtype) != _WORD // 2:
        return None
    chips, block = engine.tensor_parallel, block_size(engine)
    shapes = ((kind.heads // chips, kind.kv_heads // chips, kind.head_dim, block) for kind in model.attention)
    refusals = (_REFUSALS[shape] for shape in shapes if shape in _REFUSALS)
    return next((each for each in refusals if engine.max_num_batched_tokens >= each.tokens), None)


def num_blocks(
    engine: EngineSettings,
    *,
    hbm_bytes: int,
    weights_bytes: int,
    bytes_per_block: int,
    states: tuple[RecurrentState, ...] = (),
) -> int:
    """Return the blocks of one rank; its chips are counted together, as the worker does.

    available = int(chips x hbm x utilization - chips x weights);  blocks = available // (chips x bytes_per_block)
    """
    if not bytes_per_block:
        return 0  # an encoder caches nothing
    if states:
        return _pools(engine, hbm_bytes, weights_bytes, bytes_per_block, states).blocks
    chips = engine.tensor_parallel
    available = int(chips * hbm_bytes * engine.utilization - chips * weights_bytes)
    if engine.blocks_override is not None and available > 0:
        return engine.blocks_override
    return max(available // (chips * bytes_per_block), 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class Pools:
    """The two pools of a hybrid model in one rank: blocks of attention layers, and slots of recurrent layers."""

    blocks: int
    slots: int


def state_bytes_per_chip(
    engine: EngineSettings,
    *,
    hbm_bytes: int,
    weights_bytes: int,
    bytes_per_block: int,
    states: tuple[RecurrentState, ...],
) -> int:
    """Return the bytes of the recurrent states' pool on one chip."""
    slots = _pools(engine, hbm_bytes, weights_bytes, bytes_per_block, states).slots if states else 0
    return slots * _slot_bytes(states) // engine.tensor_parallel


def _pools(
    engine: EngineSettings, hbm_bytes: int, weights_bytes: int, bytes_per_block: int, states: tuple[RecurrentState, ...]
) -> Pools:
    """Return the split of what is left (kv_cache_manager.py, _maybe_set_compact_mamba_num_blocks_override).

    Each request has slots, and one more stands for none. With prefix caching, eight a request keep checkpoints, of
    which two must be there; if the attention blocks then serve fewer requests, both pools are sized for as many as fit.
    """
    chips, slot = engine.tensor_parallel, _slot_bytes(states)
    available = int(chips * hbm_bytes * engine.utilization - chips * weights_bytes)
    least = (0 if engine.speculation is None else engine.speculation.tokens) + 1 + engine.has_prefix_caching
    each = max(_SLOTS_A_REQUEST, least) if engine.has_prefix_caching else least
    fewest, slots = engine.max_num_seqs * least + 1, engine.max_num_seqs * each + 1
    block_bytes = chips * bytes_per_block
    if engine.blocks_override is not None:
        spare = available - engine.blocks_override * block_bytes
        return Pools(blocks=engine.blocks_override, slots=min(slots, max(spare, 0) // slot))
    blocks = max(available - slots * slot, 0) // block_bytes
    request = ceil_div(engine.max_model_len, block_size(engine))
    if slots > fewest and blocks // request < slots // each:
        served = min(engine.max_num_seqs, max(available, 0) // (request * block_bytes + each * slot))
        slots = max(fewest, served * each + 1)
        blocks = max(available - slots * slot, 0) // block_bytes
    return Pools(blocks=blocks, slots=slots)


def _slot_bytes(states: tuple[RecurrentState, ...]) -> int:
    return sum(state.layers * state.slot_bytes for state in states)


@dataclass(frozen=True, slots=True, kw_only=True)
class KvLayout:
    """Each of `windows` is a group of layers with block tables of its own; None is a group without a window."""

    bytes_per_block: int
    windows: tuple[int | None, ...]


def layout(model: LanguageModel, engine: EngineSettings, block_size: int) -> KvLayout:
    """Return the bytes of one block on one chip, summed over the layers that share it."""
    pages = [(kind, page_bytes(kind, engine, block_size)) for kind in model.attention if kind.cached]
    if not pages:
        return KvLayout(bytes_per_block=0, windows=())
    if _windows_count(model):
        return _grouped_layout(pages)
    # One group: every layer is cached at full length (kv_cache_manager.py get_kv_cache_spec).
    return KvLayout(bytes_per_block=sum(kind.cached * page for kind, page in pages), windows=(None,))


def bytes_per_token(model: LanguageModel, engine: EngineSettings) -> int:
    """Return the cache's bytes on one chip for each token of a request of full length."""
    block = block_size(engine)
    shape = layout(model, engine, block)
    blocks = blocks_per_request(shape, engine, block, engine.max_model_len)
    return shape.bytes_per_block * blocks // align(engine.max_model_len, block)


def page_bytes(kind: Attention, engine: EngineSettings, block_size: int) -> int:
    """Return the bytes of one block of one layer on one chip.

    page = block_size x align(2 x heads, 4 / itemsize) x align(head_dim, 128) x itemsize
    heads = KV heads on this chip; with fewer heads than chips, each chip holds a copy (utils.py get_padded_num_heads).
    """
    size = itemsize(engine.cache_dtype)
    if kind.is_latent:
        return block_size * kind.head_dim * size
    packing = max(_WORD // size, 1)
    heads = max(kind.kv_heads // engine.tensor_parallel, 1)
    if kind.head_dim == HALF_LANES:  # its kernel lays K and V side by side in the lanes
        return block_size * align(heads, packing) * LANES * size
    return block_size * align(2 * heads, packing) * align(kind.head_dim, LANES) * size


def blocks_per_request(shape: KvLayout, engine: EngineSettings, block_size: int, tokens: int) -> int:
    """Return the blocks of one request of `tokens`, summed over the groups, which draw from one pool.

    Without a window: ceil(tokens / block_size). With one: the window and what is in flight, and one block because a
    window need not begin where a block does (v1/kv_cache_interface.py max_admission_blocks_per_request).
    """
    steps = 2 if engine.is_async else 1  # config/vllm.py max_concurrent_batches: two batches overlap
    in_flight = steps * engine.max_num_batched_tokens
    blocks = 0
    for window in shape.windows:
        if window is None:
            blocks += ceil_div(tokens, block_size)
        else:
            blocks += ceil_div(min(window - 1 + in_flight, tokens), block_size) + 1
    return blocks


def _windows_count(model: LanguageModel) -> bool:
    """Return whether windows save memory: only on the torchax path, and only where all heads are of one size."""
    sizes = {align(kind.head_dim, LANES) for kind in model.attention}
    has_window = any(kind.window is not None for kind in model.attention)
    return model.implementation is Implementation.TORCHAX and len(sizes) == 1 and has_window


def _grouped_layout(pages: Iterable[tuple[Attention, int]]) -> KvLayout:
    """Return groups of equally many layers of one kind: as many as the smaller kind has (kv_cache_utils.py).

    Kinds of nearly equal number make one group each: largest < 1.5 x smallest.
    """
    kinds = list(pages)
    counts = [kind.cached for kind, _ in kinds]
    size = max(counts) if max(counts) * 2 < min(counts) * 3 else min(counts)
    windows = tuple(kind.window for kind, _ in kinds for _ in range(ceil_div(kind.cached, size)))
    return KvLayout(bytes_per_block=size * max(page for _, page in kinds), windows=windows)
