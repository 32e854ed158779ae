"""What a profile says reaches the arithmetic as vLLM would take it, or the sizing says that it cannot tell."""

from __future__ import annotations

from typing import Any

import pytest
from sizing.profiles import budget, deployment

from tpudeploy.domain.budget import Unsized

ARGS, ENV = "serving.args", "serving.env"


def test_what_is_not_written_is_vllms_own_default() -> None:
    nothing: dict[str, Any] = {"serving.max_num_batched_tokens": None, "serving.max_model_len": None, ARGS: {}}
    engine = budget(nothing).engine
    assert engine.utilization == 0.92
    assert engine.max_num_seqs == 256
    assert engine.max_num_batched_tokens == 2_048
    assert engine.max_model_len == 131_072
    assert engine.tensor_parallel == 1


def test_a_model_that_sees_images_whole_gets_a_step_for_the_largest() -> None:
    settings = {"model.id": "google/gemma-4-31B-it", "tpu.type": "v6e-8", "serving.max_num_batched_tokens": None}
    assert budget(settings).engine.max_num_batched_tokens == 2_496


def test_every_chip_is_used_by_one_copy_unless_copies_are_asked_for() -> None:
    assert budget({"tpu.type": "v6e-4"}).engine.tensor_parallel == 4
    copies = budget({"tpu.type": "v6e-4", "serving.data_parallel_size": 2}).engine
    assert (copies.tensor_parallel, copies.data_parallel) == (2, 2)


@pytest.mark.parametrize("limits", [{"image": 0, "video": 0}, '{"image": 0, "audio": {"count": 0}}'])
def test_limits_of_zero_for_all_make_a_model_of_text(limits: Any) -> None:
    assert not budget({f"{ARGS}.limit_mm_per_prompt": limits}).engine.is_multimodal


def test_a_limit_that_leaves_images_keeps_the_graphs_for_them() -> None:
    assert budget({f"{ARGS}.limit_mm_per_prompt": {"image": 4, "audio": 0}}).engine.is_multimodal


def test_ngram_speculation_turns_asynchronous_scheduling_off() -> None:
    proposing = {f"{ARGS}.speculative_config": {"method": "ngram", "num_speculative_tokens": 3}}
    engine = budget(proposing).engine
    assert engine.speculation is not None
    assert engine.speculation.tokens == 3
    assert not engine.is_async


def test_blocks_that_are_overridden_are_taken_as_written() -> None:
    sized = budget({f"{ARGS}.num_gpu_blocks_override": 1_000})
    assert sized.num_blocks == 1_000
    assert any("num_gpu_blocks_override" in text for text in sized.estimates)


def test_variables_of_the_engine_change_the_buckets() -> None:
    assert budget({f"{ENV}.MIN_TOKEN_BUCKET": "64"}).compilation.token_buckets[0] == 64
    bucketized = {f"{ENV}.ATTN_BUCKETIZED_NUM_REQS": "1", f"{ENV}.ATTN_CUSTOM_NUM_REQS_BUCKETS": "32,64"}
    assert budget(bucketized).compilation.graphs["backbone"] == 9 * 3
    assert budget({f"{ENV}.SKIP_JAX_PRECOMPILE": "1"}).compilation.total == 0
    assert budget({f"{ARGS}.enforce_eager": True}).compilation.total == 0


def test_sizes_for_compilation_are_added() -> None:
    added = budget({f"{ARGS}.additional_config": {"compilation_sizes": [3000]}})
    assert 3_000 in added.compilation.token_buckets


def test_a_vision_tower_on_every_chip_takes_more_of_each() -> None:
    mode = {f"{ARGS}.additional_config": {"mm-encoder-tp-mode": "data"}, "tpu.type": "v6e-4"}
    assert budget(mode).weights["vision"] > budget({"tpu.type": "v6e-4"}).weights["vision"]


def test_a_model_without_a_vision_tower_is_not_doubted_for_one() -> None:
    sized = budget({"model.id": "google/gemma-4-12B-it", "tpu.type": "v6e-4"})
    assert not any("tower" in text for text in sized.estimates)


def test_float32_doubles_weights_and_cache() -> None:
    wide, plain = budget({"serving.dtype": "float32"}), budget()
    assert wide.weights_bytes_per_chip == 2 * plain.weights_bytes_per_chip
    assert wide.kv_bytes_per_token_per_chip == 2 * plain.kv_bytes_per_token_per_chip


def test_load_format_and_fast_prefill_change_nothing() -> None:
    same = {f"{ARGS}.load_format": "dummy", f"{ARGS}.kv_sharing_fast_prefill": True}
    assert budget(same).to_dict() == budget().to_dict()


@pytest.mark.parametrize(
    ("settings", "word"),
    [
        ({f"{ARGS}.quantization": "compressed-tensors"}, "weights' sizes"),
        ({f"{ARGS}.speculative_config": {"method": "eagle3", "model": "x", "num_speculative_tokens": 3}}, "eagle3"),
        ({"tpu.type": "v6e-4", f"{ARGS}.pipeline_parallel_size": 2}, "stages"),
        ({f"{ARGS}.enable_lora": True}, "adapters"),
        ({f"{ARGS}.additional_config": {"quantization": {"qwix": {}}}}, "quantization"),
        ({f"{ARGS}.additional_config": {"sharding": {}}}, "sharding"),
        ({f"{ENV}.NEW_MODEL_DESIGN": "1"}, "NEW_MODEL_DESIGN"),
        ({f"{ENV}.USE_BATCHED_RPA_KERNEL": "1"}, "KV cache otherwise"),
        ({f"{ENV}.MODEL_IMPL_TYPE": "vllm"}, "MODEL_IMPL_TYPE"),
        ({f"{ENV}.TPU_MULTIPROCESS_DP": "0"}, "one process"),
        ({"model.id": "somebody/something"}, "somebody/something"),
    ],
)
def test_what_the_arithmetic_does_not_know_is_said(settings: dict[str, Any], word: str) -> None:
    sized = deployment(settings).budget
    assert isinstance(sized, Unsized)
    assert word in sized.because
    assert not sized.is_impossible


@pytest.mark.parametrize(
    "settings",
    [
        {f"{ARGS}.pipeline_parallel_size": 1},
        {f"{ARGS}.enable_lora": False},
        {f"{ENV}.NEW_MODEL_DESIGN": "0"},
        {f"{ENV}.MODEL_IMPL_TYPE": "flax_nnx"},
    ],
)
def test_what_is_written_as_its_default_is_no_reason(settings: dict[str, Any]) -> None:
    assert budget(settings).fits
