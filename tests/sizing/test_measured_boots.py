"""What was measured on real chips is predicted: blocks and tokens within 0.1 %, weights to the byte."""

from __future__ import annotations

from typing import Any

import pytest
from sizing.vectors import GIB, sized

# Blocks that the engine's own log names: slice, settings, blocks.
BOOTS: list[tuple[str, dict[str, Any], int]] = [
    ("v6e-4", {"kv_dtype": "fp8", "utilization": 0.40}, 18_523),
    ("v6e-1", {"max_model_len": 32_768}, 17_996),
    ("v5litepod-1", {}, 10_043),
    ("v5litepod-1", {"kv_dtype": "fp8"}, 10_043),
    ("v5litepod-1", {"kv_dtype": "fp8_e4m3", "max_model_len": 32_768}, 5_021),
    ("v5litepod-1", {"utilization": 0.95}, 10_903),
    ("v5litepod-1", {"utilization": 0.95, "max_model_len": 32_768}, 5_451),
]


@pytest.mark.parametrize(("slice_type", "settings", "blocks"), BOOTS)
def test_blocks_of_a_measured_boot_are_predicted_within_a_thousandth(
    slice_type: str, settings: dict[str, Any], blocks: int
) -> None:
    assert sized("E2B", slice_type, **settings).num_blocks == pytest.approx(blocks, rel=0.001)


def test_tokens_and_concurrency_of_a_measured_boot_are_predicted() -> None:
    budget = sized("E2B", "v6e-1", max_model_len=32_768)
    assert budget.block_size == 64
    assert budget.kv_cache_tokens == pytest.approx(1_151_744, rel=0.001)
    assert budget.max_concurrency == pytest.approx(35.15, abs=0.01)


@pytest.mark.parametrize(("chips", "weights"), [(1, 9_631_988_294), (4, 2_494_036_550), (8, 1_304_377_926)])
def test_weights_of_e2b_equal_the_engines_own_to_the_byte(chips: int, weights: int) -> None:
    assert sized("E2B", "v6e-8", tensor_parallel=chips).weights_bytes_per_chip == weights


@pytest.mark.parametrize(
    ("name", "chips", "gib"),
    [
        ("E4B", 1, 14.3189),
        ("E4B", 4, 3.7179),
        ("E4B", 8, 1.9511),
        ("31B", 1, 58.251),
        ("31B", 4, 14.598),
        ("31B", 8, 7.322),
    ],
)
def test_weights_of_other_models_equal_the_engines_own(name: str, chips: int, gib: float) -> None:
    assert sized(name, "v6e-8", tensor_parallel=chips).weights_bytes_per_chip / GIB == pytest.approx(gib, abs=0.0005)


# Utilization 0.90, length 16,384: model, slice, weights and KV in GiB a chip, bytes a token and chip in bfloat16 and
# fp8, tokens in both. Weights of the last two columns of 0.90 x 31.246 GiB.
TABLE: list[tuple[str, str, float, float, int, int, int, int]] = [
    ("E2B", "v6e-1", 8.97, 19.15, 18_432, 18_432, 1_115_552, 1_115_552),
    ("E2B", "v6e-4", 2.32, 25.80, 18_432, 18_432, 1_502_816, 1_502_816),
    ("E2B", "v6e-8", 1.22, 26.91, 18_432, 18_432, 1_567_360, 1_567_360),
    ("E4B", "v6e-1", 14.32, 13.80, 57_344, 28_672, 258_400, 516_832),
    ("E4B", "v6e-4", 3.72, 24.40, 28_672, 28_672, 913_856, 913_856),
    ("E4B", "v6e-8", 1.95, 26.17, 28_672, 28_672, 980_000, 980_000),
    # With the second table and the positions that torchax keeps; the engine's own loader has 24.55, 6.50 and 3.49.
    ("12B", "v6e-1", 24.53, 3.59, 344_064, 180_224, 11_200, 21_408),
    ("12B", "v6e-4", 6.49, 21.63, 98_304, 57_344, 236_288, 405_088),
    ("12B", "v6e-8", 3.48, 24.64, 57_344, 57_344, 461_376, 461_376),
    ("26B-A4B", "v6e-4", 15.29, 12.83, 61_440, 35_840, 224_224, 384_416),
    ("26B-A4B", "v6e-8", 7.68, 20.44, 35_840, 35_840, 612_448, 612_448),
    ("31B", "v6e-4", 14.60, 13.52, 225_280, 122_880, 64_448, 118_144),
    ("31B", "v6e-8", 7.32, 20.80, 122_880, 71_680, 181_728, 311_552),
]


@pytest.mark.parametrize("row", TABLE, ids=lambda row: f"{row[0]} on {row[1]}")
def test_every_gemma_4_on_every_slice_holds_what_the_reference_computes(
    row: tuple[str, str, float, float, int, int, int, int],
) -> None:
    name, slice_type, weights, kv, bytes_a_token, bytes_in_fp8, tokens, tokens_in_fp8 = row
    plain = sized(name, slice_type, utilization=0.90)
    fp8 = sized(name, slice_type, utilization=0.90, kv_dtype="fp8")
    assert plain.weights_bytes_per_chip / GIB == pytest.approx(weights, abs=0.011)
    assert plain.kv_bytes_per_chip / GIB == pytest.approx(kv, abs=0.011)
    assert (plain.kv_bytes_per_token_per_chip, fp8.kv_bytes_per_token_per_chip) == (bytes_a_token, bytes_in_fp8)
    assert plain.kv_cache_tokens == pytest.approx(tokens, rel=0.001)
    assert fp8.kv_cache_tokens == pytest.approx(tokens_in_fp8, rel=0.001)


@pytest.mark.parametrize(("name", "gib"), [("26B-A4B", 50.65), ("31B", 58.25)])
def test_the_large_models_do_not_fit_on_one_chip(name: str, gib: float) -> None:
    budget = sized(name, "v6e-1", utilization=0.90)
    assert budget.weights_bytes_per_chip / GIB == pytest.approx(gib, abs=0.01)
    assert not budget.fits
    assert budget.num_blocks == 0


def test_block_of_e2b_is_twelve_small_pages_and_three_large_ones() -> None:
    budget = sized("E2B", "v6e-4", kv_dtype="fp8", utilization=0.40)
    assert budget.bytes_per_block == 12 * 32_768 + 3 * 65_536 == 589_824


def test_four_copies_of_e2b_hold_three_times_what_one_over_four_chips_does() -> None:
    copies = sized("E2B", "v6e-4", utilization=0.90, tensor_parallel=1, data_parallel=4)
    spread = sized("E2B", "v6e-4", utilization=0.90)
    assert copies.kv_cache_tokens == pytest.approx(4_460_000, rel=0.002)
    assert copies.kv_cache_tokens / spread.kv_cache_tokens == pytest.approx(3.0, abs=0.04)


def test_more_chips_than_kv_heads_hold_copies_of_the_cache() -> None:
    each = {sized("E2B", "v6e-8", tensor_parallel=chips).kv_bytes_per_token_per_chip for chips in (1, 2, 4, 8)}
    assert each == {18_432}


def test_splitting_experts_pads_less_than_splitting_their_width() -> None:
    by_width = sized("26B-A4B", "v6e-4").weights["experts"]
    by_expert = sized("26B-A4B", "v6e-4", is_expert_parallel=True).weights["experts"]
    # 26B has 128 experts a layer of width 704: a quarter, 176, is padded to 256; a whole one to 768.
    assert by_width == 30 * 128 * 2_816 * (2 * 256 + 176) * 2
    assert by_expert == 30 * 32 * 2_816 * (2 * 768 + 704) * 2


def test_checkpoint_of_e2b_is_the_size_that_the_log_names() -> None:
    from tpudeploy.sizing.weights import checkpoint_bytes

    assert checkpoint_bytes(sized("E2B", "v6e-1").model) / GIB == pytest.approx(9.54, abs=0.005)
