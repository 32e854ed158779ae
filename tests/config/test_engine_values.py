"""What the engine accepts is accepted, and what is said of it is said for the version of the image alone."""

from __future__ import annotations

import shlex

import pytest
from config.sources import SMALL, load, problems

from tpudeploy.domain.diagnostics import Severity
from tpudeploy.node.serving import serve

_IMAGE = 'serving: {image: "vllm/vllm-tpu:v0.32.0"}'


def with_serving(lines: str, image: str = "vllm/vllm-tpu:v0.32.0") -> str:
    body = "".join(f"  {line}\n" for line in lines.splitlines())
    return SMALL.replace(_IMAGE, f"serving:\n  image: {image}\n{body}")


ACCEPTED: list[tuple[str, str]] = [
    ("max_model_len: auto", "--max-model-len auto"),
    ("max_model_len: -1", "--max-model-len auto"),
    ("max_model_len: 16k", "--max-model-len 16000"),
    ("max_model_len: 16K", "--max-model-len 16384"),
    ("max_model_len: 25.6k", "--max-model-len 25600"),
    ("max_num_batched_tokens: 4K", "--max-num-batched-tokens 4096"),
    ("kv_cache_dtype: float16", "--kv-cache-dtype float16"),
    ("args: {host: 0.0.0.0}", "--host 0.0.0.0"),
    ("args: {enable_auto_tool_choice: true, tool_call_parser: gemma4}", "--tool-call-parser gemma4"),
    ("args: {load_format: Dummy}", "--load-format Dummy"),
    ("args: {attention_backend: flash_attn}", "--attention-backend flash_attn"),
    ("args: {speculative_config: {method: ngram, num_speculative_tokens: '3'}}", "--speculative-config"),
    ("args: {speculative_config: {method: mtp, num_speculative_tokens: 2, model: a/b-assistant}}", "a/b-assistant"),
    ("args: {speculative_config: {method: qwen3_5_mtp, num_speculative_tokens: 2, model: a/b}}", "qwen3_5_mtp"),
    ("args: {compilation_config: {mode: 3, cudagraph_mode: none}}", "--compilation-config"),
    ("args: {limit_mm_per_prompt: {image: 4, video: {count: 1, num_frames: 8}}}", "--limit-mm-per-prompt"),
    ("args: {tool_call_parser: mine, tool_parser_plugin: /p.py, enable_auto_tool_choice: true}", "mine"),
    ("args: {max_loras: 0}", "--max-loras 0"),
    ("args: {chat_template: '{{ messages }}'}", "--chat-template '{{ messages }}'"),
    ("args: {max_num_queued_tokens: 4k}", "--max-num-queued-tokens 4k"),
    ("args: {reasoning_parser: gemma4, structured_outputs_config: {reasoning_parser: mine}}", "gemma4"),
    ("args: {reasoning_parser: gemma4, reasoning_config: {reasoning_parser: mine}}", "gemma4"),
    ("args: {quantization: fp8}", "--quantization fp8"),
    ("args: {quantization: awq}", "--quantization awq"),
    ("args: {quantization: unquantized}", "--quantization unquantized"),
    ("args: {spec_method: ngram, spec_tokens: 3}", "--spec-method ngram"),
    ("args: {lora_modules: [sql=/lora/sql, {name: b, path: /b}], enable_lora: true}", "sql=/lora/sql"),
    ("args: {config_format: hf, tokenizer_mode: hf}", "--config-format hf"),
    ("args: {custom_histogram_buckets: {time_to_first_token: [0.1, 1]}}", "time_to_first_token"),
    ("args: {numa_bind: true, numa_bind_cpus: ['0-3', '4-7'], numa_bind_nodes: [0, 0]}", "0-3 4-7"),
    ("args: {limit_mm_per_prompt: {images: 1}}", "images"),
    ("args: {enable_eplb: false, enable_sleep_mode: false, kda_prefill_backend: auto}", "--no-enable-eplb"),
    ("args: {decode_context_parallel_size: 2}", "--decode-context-parallel-size 2"),
    ("args: {mm_processor_cache_type: shm, mm_shm_cache_max_object_size_mb: 64}", "64"),
    ("args: {distributed_executor_backend: my.module.Executor}", "my.module.Executor"),
    ("env: {MIN_TOKEN_BUCKET: '32'}", ""),
    ("env: {VLLM_LOGGING_LEVEL: DEBUG}", ""),
    ("env: {MY_OWN_VARIABLE: x}", ""),
]


@pytest.mark.parametrize(("line", "words"), ACCEPTED)
def test_what_the_engine_accepts_is_accepted_and_passed_on(line: str, words: str) -> None:
    text = with_serving(line)
    assert problems(text) == ()
    assert words in shlex.join(serve(load(text), tensor_parallel_size=4)) or words in " ".join(
        serve(load(text), tensor_parallel_size=4)
    )


@pytest.mark.parametrize("value", ["16.5K", "16q", "0", "-2", "true", "automatic", "''"])
def test_a_length_that_the_engine_does_not_read_is_refused(value: str) -> None:
    (diagnostic,) = problems(with_serving(f"max_model_len: {value}"))
    assert diagnostic.severity is Severity.ERROR


@pytest.mark.parametrize(
    "image",
    [
        *(f"vllm/vllm-tpu:{tag}" for tag in ("v0.32.0", "nightly-20260801", "nightly-20260801-1a2b3c4-5d6e7f8")),
        *("vllm/vllm-tpu:2026-08-01", "vllm/vllm-tpu:1a2b3c4d", "example.com/mine/vllm-tpu:0.32.0"),
    ],
)
def test_a_tag_that_names_a_release_a_date_or_a_commit_does_not_float(image: str) -> None:
    assert problems(SMALL.replace("vllm/vllm-tpu:v0.32.0", image)) == ()


def test_of_another_version_the_tables_warn_and_the_words_are_passed_on() -> None:
    text = with_serving(
        "args: {brand_new_flag: [1, 2], quick: false, ratio: 0.5, options: {a: 1}}", image="vllm/vllm-tpu:v0.40.1"
    )
    diagnostics = problems(text)
    assert {d.severity for d in diagnostics} == {Severity.WARNING}
    assert "vLLM 0.32.0 has no flag" in diagnostics[0].message
    assert "the image has vLLM 0.40.1" in diagnostics[0].message
    assert [d.code for d in diagnostics] == ["TPU1310"] * 4
    words = serve(load(text), tensor_parallel_size=4)
    assert words[-9:] == ("4", "--brand-new-flag", "1", "2", "--no-quick", "--ratio", "0.5", "--options", '{"a":1}')


def test_stages_leave_their_share_of_the_chips_to_each_copy() -> None:
    assert problems(with_serving("args: {pipeline_parallel_size: 2}")) == ()
    (idle,) = problems(with_serving("tensor_parallel_size: 1\nargs: {pipeline_parallel_size: 2}"))
    assert "uses 2 of the 4 chips" in idle.message


@pytest.mark.parametrize(
    "line",
    [
        "args: {enable_sleep_mode: true}",
        "args: {numa_bind_nodes: [0]}",
        "args: {spec_tokens: 3}",
        "args: {grpc_port: 1}",
        "args: {quantization: mxfp8}",
    ],
)
def test_what_the_tables_refuse_of_their_version_is_a_warning_for_another_one(line: str) -> None:
    (refusal,) = problems(with_serving(line))
    assert refusal.severity is Severity.ERROR
    digest = f"vllm/vllm-tpu@sha256:{'a' * 64}"
    images = ("vllm/vllm-tpu:v0.40.1", "vllm/vllm-tpu:nightly-20260801-6dce67d", digest, "vllm/vllm-torchtpu:v0.32.0")
    for image in images:
        (warning,) = problems(with_serving(line, image=image))
        assert (warning.code, warning.severity) == (refusal.code, Severity.WARNING)


def test_shared_tensors_of_one_rank_need_workers_that_are_spawned() -> None:
    text = with_serving("args: {mm_tensor_ipc: torch_shm}").replace("v6e-4", "v6e-1")
    (problem,) = problems(text)
    assert "VLLM_WORKER_MULTIPROC_METHOD: spawn" in problem.hint
    assert problems(text + "  env: {VLLM_WORKER_MULTIPROC_METHOD: spawn}\n") == ()


@pytest.mark.parametrize(
    "flag", ["additional_config", "speculative_config", "compilation_config", "kv_transfer_config"]
)
@pytest.mark.parametrize("text", ["'{broken'", "'{\"a\": '", "'{}}'"])
def test_text_that_begins_like_a_mapping_and_is_none_is_refused_on_its_line(flag: str, text: str) -> None:
    codes = {problem.code for problem in problems(with_serving(f"args: {{{flag}: {text}}}"))}
    assert "TPU1311" in codes


@pytest.mark.parametrize("word", ["flashinfer_moe_ep_mega_cutedsl", "flashinfer_moe_ep_mega_deep_gemm"])
def test_a_kernel_of_cuda_is_refused_in_each_release_that_has_it(word: str) -> None:
    refusals = problems(with_serving(f"args: {{moe_backend: {word}}}", "vllm/vllm-tpu:v0.31.0"))
    assert any("kernel of CUDA" in each.message for each in refusals)
