"""Models that the engine itself was asked about: what `size` says of them, and that its blocks are the engine's own."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pytest
from sizing.profiles import budget, deployment, diagnostics_of

from tpudeploy.catalog import _engine_models, families, releases
from tpudeploy.catalog.families import answers
from tpudeploy.domain.budget import EngineSettings, HbmBudget, Unsized
from tpudeploy.domain.model import Implementation
from tpudeploy.sizing.weights import active_parameters, checkpoint_bytes, parameters, weights_bytes_per_chip

ROWS = [json.loads(line) for line in _engine_models.MODELS.splitlines() if line]
_BLOCKS = Path(__file__).parent / "data" / "engine_blocks.jsonl"
# Llama's class has a counter, Gemma 3's vision tower its positions as integers.
_BESIDE = 16_386
BY_TITLE = {answers.title(row["id"], row["settings"]): row for row in ROWS}
# What each release's own loader puts on a chip: by models' titles and the number of chips.
ANSWERED = [(release, title, row) for release in releases.VERSIONS for title, row in releases.weights(release).items()]
BLOCKS = [json.loads(line) for line in _BLOCKS.read_text(encoding="utf-8").splitlines()]
GEMMA_2 = next(row["config"] for row in ROWS if row["id"] == "google/gemma-2-9b-it")
SIZED = [row for row in ROWS if "weights" in row]
# The published number of parameters, in billions as on the model cards or in full where they are published in full.
PUBLISHED = {
    "google/gemma-2-2b-it": 2_614_341_888,
    "google/gemma-2-9b-it": 9_241_705_984,
    "google/gemma-2-27b-it": 27_227_128_320,
    "ibm-granite/granite-3.3-8b-instruct": 8.17e9,
    "allenai/OLMo-2-1124-7B-Instruct": 7.30e9,
    "HuggingFaceTB/SmolLM3-3B": 3_075_098_624,
    "microsoft/phi-4": 14.7e9,
    "microsoft/Phi-4-mini-instruct": 3.84e9,
    "mistralai/Mistral-Small-3.2-24B-Instruct-2506": 24.0e9,
    "openai/gpt-oss-20b": 20.9e9,
    "openai/gpt-oss-120b": 116.8e9,
    "Qwen/Qwen2.5-VL-7B-Instruct": 8_292_166_656,
    "Qwen/Qwen3-VL-8B-Instruct": 8_767_123_696,
    "zai-org/GLM-4.5-Air": 106.9e9,
    "MiniMaxAI/MiniMax-M2": 228.7e9,
}


def settings_of(row: Mapping[str, Any], chips: int, length: int) -> dict[str, Any]:
    keys = {"dtype": "serving.dtype", "runner": "serving.args.runner"}
    settings = {keys.get(name, f"serving.env.{name}"): value for name, value in row["settings"].items()}
    if settings.pop("serving.env.enable_dp_attention", None):
        strategy = {"sharding": {"sharding_strategy": {"enable_dp_attention": True}}}
        settings["serving.args.additional_config"] = strategy
    return {
        "model.id": row["id"],
        "tpu.type": f"v6e-{chips}" if chips in (1, 4, 8) else "v6e-4",
        "serving.tensor_parallel_size": chips,
        "serving.max_model_len": length,
        "serving.max_num_seqs": 256,
        "serving.max_num_batched_tokens": 2_048,
        "serving.args": {},
        **settings,
    }


@pytest.mark.parametrize(
    ("model_id", "words", "way"),
    [
        ("neuralmagic/Meta-Llama-3.1-8B-Instruct-FP8", "its weights stay in bfloat16", "env.MODEL_IMPL_TYPE: vllm"),
        ("Qwen/Qwen3-32B-AWQ", "auto_awq quantization method not supported", "serving.dtype: bfloat16"),
        ("nvidia/Llama-3.1-8B-Instruct-FP8", "modelopt quantization is currently not supported", "another model"),
        ("deepseek-ai/DeepSeek-V3.1", "MLA models require both", "NEW_MODEL_DESIGN"),
        ("nvidia/DeepSeek-R1-NVFP4", "MLA models require both", ""),
        ("unsloth/Llama-4-Scout-17B-16E-Instruct", "by a class of", "env.MODEL_IMPL_TYPE: vllm"),
    ],
)
def test_a_copy_that_the_engine_refuses_is_refused_in_its_words(model_id: str, words: str, way: str) -> None:
    settings = {"model.id": model_id, "serving.args": {}, "serving.image": "vllm/vllm-tpu:v0.32.0"}
    (refusal,) = [each for each in diagnostics_of(settings) if each.code == "TPU2131"]
    assert words in refusal.message
    assert way in str(refusal.hint)


def test_vllms_own_class_loads_what_the_plug_ins_does_not() -> None:
    settings = {"model.id": "Qwen/Qwen2.5-7B-Instruct", "serving.args": {}, "serving.image": "vllm/vllm-tpu:v0.32.0"}
    (fault,) = [each for each in diagnostics_of(settings) if each.code == "TPU2128"]
    assert "'Qwen2Config' object has no attribute 'text_config'" in fault.message
    settings["serving.env.MODEL_IMPL_TYPE"] = "vllm"
    assert not [each for each in diagnostics_of(settings) if each.code == "TPU2128"]
    assert budget(settings).weights_bytes_per_chip == 15_239_622_080  # the engine's own loader's


def test_the_table_is_as_it_was_written() -> None:
    lines = [line for line in _engine_models.MODELS.splitlines() if line]
    assert hashlib.sha256("\n".join(lines).encode()).hexdigest() == _engine_models.DIGEST


@pytest.mark.parametrize("row", BLOCKS, ids=lambda row: f"{row['id']} on {row['chips']}{row['settings'] or ''}")
def test_the_blocks_are_those_of_the_engines_own_code(row: Mapping[str, Any]) -> None:
    sized = deployment(settings_of(row, row["chips"], row["max_model_len"])).budget
    if isinstance(sized, Unsized):
        assert sized.is_refused or sized.is_impossible  # its class would load another model, or cannot be split
        return
    assert sized.num_blocks == row["num_blocks"]


@pytest.mark.parametrize(
    ("release", "title", "row"), [each for each in ANSWERED if each[1] not in BY_TITLE], ids=lambda each: str(each)[:60]
)
def test_a_familys_rule_splits_the_weights_as_a_releases_own_loader_does(
    release: str, title: str, row: Mapping[str, int]
) -> None:
    name, _, settings = title.partition(" ")
    model = families.known_model(name)
    assert model is not None
    if settings:
        model = families.run_by(model, Implementation(settings.removeprefix("MODEL_IMPL_TYPE=")))
    for chips, size in row.items():
        engine = EngineSettings(tensor_parallel=int(chips), max_model_len=2_048, release=release)
        assert 0 <= size - sum(weights_bytes_per_chip(model, engine).values()) <= _BESIDE, chips


@pytest.mark.parametrize(
    ("release", "title", "row"), [each for each in ANSWERED if each[1] in BY_TITLE], ids=lambda each: str(each)[:60]
)
def test_a_release_puts_on_a_chip_what_its_own_loader_answered(
    release: str, title: str, row: Mapping[str, int | str]
) -> None:
    for chips, answer in row.items():
        settings = settings_of(BY_TITLE[title], int(chips), 512)
        sized = deployment({**settings, "serving.image": f"vllm/vllm-tpu:v{release}"}).budget
        budget_or_bound = sized if isinstance(sized, HbmBudget) else sized.at_least
        if isinstance(answer, str):
            assert isinstance(sized, Unsized)
            assert answer in sized.because
        else:
            assert budget_or_bound is not None, sized
            assert budget_or_bound.weights_bytes_per_chip == answer
            assert any(f"tpu-inference {release}'s own loader" in note for note in budget_or_bound.estimates)


@pytest.mark.parametrize("row", SIZED, ids=lambda row: f"{row['id']}{row['settings'] or ''}")
def test_a_listed_model_has_its_weights_on_every_number_of_chips_that_was_asked(row: Mapping[str, Any]) -> None:
    for chips, size in row["weights"].items():
        sized = deployment(settings_of(row, int(chips), 512)).budget
        budget_or_bound = sized if isinstance(sized, HbmBudget) else sized.at_least
        assert budget_or_bound is not None, sized
        assert budget_or_bound.weights_bytes_per_chip == size


@pytest.mark.parametrize("model_id", PUBLISHED)
def test_a_listed_model_has_the_published_number_of_parameters(model_id: str) -> None:
    model = families.find_model(model_id)
    assert model is not None
    assert parameters(model) == pytest.approx(PUBLISHED[model_id], rel=0.005)
    assert 0 < active_parameters(model) <= parameters(model)
    assert checkpoint_bytes(model) > 0


def test_a_mixture_of_experts_multiplies_with_a_part_of_its_parameters() -> None:
    model = families.find_model("zai-org/GLM-4.5-Air")
    assert model is not None
    assert active_parameters(model) == pytest.approx(12e9, rel=0.1)  # "A12B" on its card


def test_a_fine_tune_is_sized_by_the_shapes_of_its_config() -> None:
    config = {**GEMMA_2, "max_position_embeddings": 4_096}
    sized = budget({"model.id": "somebody/my-gemma", "tpu.type": "v6e-8", "serving.args": {}}, config)
    assert (
        sized.weights_bytes_per_chip
        == budget({"model.id": "google/gemma-2-9b-it", "tpu.type": "v6e-8"}).weights_bytes_per_chip
    )
    assert (sized.model.name, sized.model.max_position) == ("somebody/my-gemma", 4_096)


def test_a_config_of_other_shapes_is_not_sized_as_a_listed_one() -> None:
    config = {**GEMMA_2, "num_hidden_layers": 41}
    sized = deployment({"model.id": "somebody/my-gemma", "tpu.type": "v6e-8", "serving.args": {}}, config).budget
    assert isinstance(sized, Unsized)
    assert "Gemma2ForCausalLM" in sized.because


PHI_4 = next(row["config"] for row in ROWS if row["id"] == "microsoft/phi-4")


@pytest.mark.parametrize(
    ("fields", "is_sized"),
    [
        ({"head_dim": PHI_4["hidden_size"] // PHI_4["num_attention_heads"]}, True),
        ({"num_local_experts": 0, "quantization_config": None}, True),
        ({"head_dim": 512}, False),
        ({"num_local_experts": 64}, False),
        ({"kv_lora_rank": 512}, False),
        ({"quantization_config": {"quant_method": "fp8"}}, False),
    ],
    ids=str,
)
def test_a_field_that_a_listed_model_leaves_out_may_make_it_another(fields: Mapping[str, Any], is_sized: bool) -> None:
    config = {**PHI_4, **fields}
    sized = deployment({"model.id": "somebody/my-phi", "tpu.type": "v6e-1", "serving.args": {}}, config).budget
    assert isinstance(sized, HbmBudget) is is_sized


def test_a_copy_by_another_organization_is_sized_by_its_name() -> None:
    sized = budget({"model.id": "unsloth/gemma-2-9b-it", "tpu.type": "v6e-8", "serving.args": {}})
    assert any("google/gemma-2-9b-it" in text for text in sized.estimates)


def test_a_refused_model_is_an_error_in_the_engines_words_with_what_helps() -> None:
    (refusal,) = [each for each in diagnostics_of({"model.id": "deepseek-ai/DeepSeek-R1"}) if each.code == "TPU2131"]
    assert "MLA models require both the NEW_MODEL_DESIGN=1" in refusal.message
    sized = deployment({"model.id": "deepseek-ai/DeepSeek-R1"}).budget
    assert sized.fits is False


def test_a_refusal_is_that_of_one_engine_and_says_nothing_of_another() -> None:
    changes = {"model.id": "deepseek-ai/DeepSeek-R1", "serving.image": "vllm/vllm-torchtpu:v0.29.0"}
    assert not [each for each in diagnostics_of(changes) if each.code == "TPU2131"]
    sized = deployment(changes).budget
    assert isinstance(sized, Unsized)
    assert not sized.is_refused


def test_experts_that_are_split_otherwise_than_the_engine_was_asked_are_not_sized() -> None:
    changes = {"model.id": "openai/gpt-oss-20b", "serving.args": {"enable_expert_parallel": True}}
    sized = deployment({**changes, "tpu.type": "v6e-1"}).budget
    assert isinstance(sized, Unsized)
    assert "enable-expert-parallel" in sized.because
