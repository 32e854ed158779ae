"""The KV cache's shape: bytes of a block on one chip, and the blocks that a request needs.

Sources: tpu_inference 0.32.0 runner/kv_cache.py:51-91,200-220, runner/kv_cache_manager.py:488-714 and
kernels/ragged_paged_attention/v3; vLLM 0.32.0 v1/core/kv_cache_utils.py:1362-1503 for layers with a window.
"""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.domain.budget import Engine
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.model import Attention, Implementation, LanguageModel
from tpudeploy.sizing.blocks import block_size
from tpudeploy.sizing.numbers import HALF_LANES, LANES, align, ceil_div, itemsize

_WORD = 4  # bytes: elements of smaller types are packed into words of four


@frozen
class KvLayout:
    """Each of `windows` is a group of layers with block tables of its own; None is a group without a window."""

    bytes_per_block: int
    windows: tuple[int | None, ...]


def layout(model: LanguageModel, engine: Engine, block_size: int) -> KvLayout:
    """The bytes of one block on one chip, summed over the layers that share it."""
    pages = [(kind, page_bytes(kind, engine, block_size)) for kind in model.attention if kind.cached]
    if _windows_count(model):
        return _grouped(pages)
    # One group: every layer is cached at full length (kv_cache_manager.py:569-575,634-647).
    return KvLayout(bytes_per_block=sum(kind.cached * page for kind, page in pages), windows=(None,))


def bytes_per_token(model: LanguageModel, engine: Engine) -> int:
    """Return the cache's bytes on one chip for each token of a request of full length."""
    block = block_size(engine)
    of = layout(model, engine, block)
    blocks = blocks_per_request(of, engine, block, engine.max_model_len)
    return of.bytes_per_block * blocks // (ceil_div(engine.max_model_len, block) * block)


def page_bytes(kind: Attention, engine: Engine, block_size: int) -> int:
    """Bytes of one block of one layer on one chip.

    page = block_size x align(2 x heads, 4 / itemsize) x align(head_dim, 128) x itemsize
    heads = KV heads on this chip; with fewer heads than chips, each chip holds a copy (utils.py:334-340).
    """
    size = itemsize(engine.cache_dtype)
    packing = max(_WORD // size, 1)
    heads = max(kind.kv_heads // engine.tensor_parallel, 1)
    if kind.head_dim == HALF_LANES:  # its kernel lays K and V side by side in the lanes
        return block_size * align(heads, packing) * LANES * size
    return block_size * align(2 * heads, packing) * align(kind.head_dim, LANES) * size


def blocks_per_request(of: KvLayout, engine: Engine, block_size: int, tokens: int) -> int:
    """Blocks of one request of `tokens`, summed over the groups, which draw from one pool.

    Without a window: ceil(tokens / block_size). With one: the window and what is in flight, and one block because a
    window need not begin where a block does (v1/kv_cache_interface.py:859-885).
    """
    steps = 2 if engine.is_async else 1  # config/vllm.py:577: two batches overlap
    in_flight = steps * engine.max_num_batched_tokens
    return sum(
        ceil_div(tokens, block_size)
        if window is None
        else ceil_div(min(window - 1 + in_flight, tokens), block_size) + 1
        for window in of.windows
    )


def _windows_count(model: LanguageModel) -> bool:
    """Windows save memory only on the torchax path, and only where all heads are of one size."""
    sizes = {align(kind.head_dim, LANES) for kind in model.attention}
    has_window = any(kind.window is not None for kind in model.attention)
    return model.implementation is Implementation.TORCHAX and len(sizes) == 1 and has_window


def _grouped(pages: Iterable[tuple[Attention, int]]) -> KvLayout:
    """Groups of equally many layers of one kind: as many as the smaller kind has (kv_cache_utils.py:1445-1489).

    Kinds of nearly equal number make one group each: largest < 1.5 x smallest.
    """
    kinds = list(pages)
    counts = [kind.cached for kind, _ in kinds]
    size = max(counts) if max(counts) * 2 < min(counts) * 3 else min(counts)
    windows = tuple(kind.window for kind, _ in kinds for _ in range(ceil_div(kind.cached, size)))
    return KvLayout(bytes_per_block=size * max(page for _, page in kinds), windows=windows)
