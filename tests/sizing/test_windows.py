"""Layers with a window are grouped as vLLM's own functions group them (asked of vLLM 0.32: 32-token blocks)."""

from __future__ import annotations

import pytest
from sizing.vectors import sized


@pytest.mark.parametrize(
    ("name", "slice_type", "bytes_per_block", "blocks_per_request"),
    [
        ("google/gemma-3-1b-it", "v6e-1", 131_072, 2_150),
        ("google/gemma-3-4b-it", "v6e-1", 655_360, 2_246),
        ("google/gemma-3-12b-it", "v6e-4", 524_288, 1_957),
        ("google/gemma-3-27b-it", "v6e-8", 327_680, 2_246),
    ],
)
def test_gemma_3_is_cached_as_vllm_groups_it(
    name: str, slice_type: str, bytes_per_block: int, blocks_per_request: int
) -> None:
    budget = sized(name, slice_type, block_size=32)
    assert budget.bytes_per_block == bytes_per_block
    assert budget.blocks_per_request == blocks_per_request


def test_long_requests_cost_less_a_token_where_layers_have_a_window() -> None:
    short = sized("google/gemma-3-27b-it", "v6e-8", max_model_len=16_384)
    long = sized("google/gemma-3-27b-it", "v6e-8", max_model_len=131_072)
    assert long.kv_bytes_per_token_per_chip < short.kv_bytes_per_token_per_chip


def test_gemma_4_caches_every_layer_at_full_length() -> None:
    budget = sized("26B-A4B", "v6e-4")
    assert budget.blocks_per_request == budget.engine.max_model_len // budget.block_size
