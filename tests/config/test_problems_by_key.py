"""Each wrong key or value is one problem: a code, a place, and what to do."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from config.sources import SMALL, load, place, problems

from tpudeploy.config.profile import Profile

_SERVING = 'serving: {image: "vllm/vllm-tpu:v0.32.0"}\n'
_RESERVATION = "projects/my-project/locations/us-east5-b/reservations/r"


def with_serving(lines: str) -> str:
    """SMALL with `lines` under `serving`, the first of them in line 7."""
    body = "".join(f"  {line}\n" for line in lines.splitlines())
    return SMALL.replace(_SERVING, "serving:\n  image: vllm/vllm-tpu:v0.32.0\n" + body)


AT_THE_TOP: list[tuple[str, str, str]] = [
    ("replica: 2\n", "TPU1201 6:1+7", 'did you mean "replicas"?'),
    ("max_model_len: 4096\n", "TPU1201 6:1+13", 'did you mean "serving.max_model_len"?'),
    ("zorgon: null\n", "TPU1201 6:1+6", ""),
    ("replicas: two\n", "TPU1203 6:11+3", ""),
    ("replicas: true\n", "TPU1203 6:11+4", ""),
    ("replicas: 1.0\n", "TPU1203 6:11+3", ""),
    ('replicas: "1"\n', "TPU1203 6:11+3", "leave out the quotes: 1"),
    ("replicas: 0\n", "TPU1205 6:11+1", ""),
    ("lifecycle: [a]\n", "TPU1203 6:12+3", ""),
    ("lifecycle: {prevent_destroy: yes}\n", "TPU1203 6:30+3", ""),
    ("lifecycle: {update: in-plac}\n", "TPU1204 6:21+7", 'did you mean "in-place"?'),
    ("lifecycle: {update: [in-place]}\n", "TPU1204 6:21+10", ""),
    ("lifecycle: {ignore_changes: [serving.imag]}\n", "TPU1332 6:30+12", 'did you mean "serving.image"?'),
    ("health: {timeout: 45}\n", "TPU1206 6:19+2", "90s, 15m, 2h or 7d"),
    ("health: {timeout: 0s}\n", "TPU1206 6:19+2", "90s, 15m, 2h or 7d"),
    ("health: {timeout: 1h30m}\n", "TPU1206 6:19+5", "90s, 15m, 2h or 7d"),
    ('health: {prompt: ""}\n', "TPU1206 6:18+2", "not empty"),
    ("placement: {backend: gce}\n", "TPU1204 6:22+3", ""),
    ("placement: {zones: us-east5-b}\n", "TPU1204 6:20+10", ""),
    ("placement: {zones: [us-east5]}\n", "TPU1206 6:21+8", "us-east5-b"),
    ("placement: {zones: []}\n", "TPU1205 6:20+2", ""),
    ("placement: {zones: [us-east5-b, us-east5-b]}\n", "TPU1324 6:33+10", "keep one"),
    ("placement: {zones: [us-esat5-b]}\n", "TPU1325 6:21+10", 'did you mean "us-east5-b"?'),
    ("placement: {provisioning: [spott]}\n", "TPU1204 6:28+5", 'did you mean "spot"?'),
    ("placement: {provisioning: spot}\n", "TPU1203 6:27+4", "write a list: [spot]"),
    ("placement: {provisioning: [spot, spot]}\n", "TPU1324 6:34+4", "keep one"),
    ("placement: {provisioning: [spot, flex-start]}\n", "TPU1320 6:34+10", "max_run_duration"),
    ("placement: {provisioning: [flex-start], max_run_duration: 8d}\n", "TPU1321 6:59+2", "7d"),
    ("placement: {provisioning: [flex-start], max_run_duration: soon}\n", "TPU1206 6:59+4", "7d"),
    ("placement: {provisioning: [reserved]}\n", "TPU1322 6:28+8", "reservation"),
    (f"placement: {{reservation: {_RESERVATION}}}\n", "TPU1323 6:26+55", "provisioning"),
    (
        f"placement: {{zones: [us-east5-a], provisioning: [reserved], reservation: {_RESERVATION}}}\n",
        "TPU1323 6:73+55",
        "add us-east5-b",
    ),
    (
        "placement: {reservation: projects/p/locations/here/reservations/r, provisioning: [reserved]}\n",
        "TPU1206 6:26+40",
        "",
    ),
    ("placement: {reservation: r, provisioning: [reserved]}\n", "TPU1206 6:26+1", "projects/my-project"),
    ("placement: {project: My_Project}\n", "TPU1206 6:22+10", "my-project"),
    ("placement: {max_parallel_requests: 0}\n", "TPU1205 6:36+1", ""),
    ("placement: {max_price_per_chip_hour: -1}\n", "TPU1205 6:38+2", ""),
    ("placement: {service_account: me}\n", "TPU1206 6:30+2", "gserviceaccount.com"),
    ("placement: {network: {externalip: true}}\n", "TPU1201 6:23+10", 'did you mean "external_ip"?'),
    ("placement: {network: {tags: [A_B]}}\n", "TPU1206 6:30+3", ""),
    ("placement: {labels: {Team: x}}\n", "TPU1330 6:22+4", "lower case"),
    ("placement: {labels: {team: A B}}\n", "TPU1330 6:28+3", "lower case"),
    ("placement: {labels: {tpudeploy-name: x}}\n", "TPU1330 6:22+14", "reserved"),
    ("placement: {labels: {year: 2026}}\n", "TPU1203 6:28+4", 'quote it: "2026"'),
    ("secrets: {1TOKEN: a}\n", "TPU1315 6:11+6", "letters"),
    ("secrets: {HF_TOKEN: a b}\n", "TPU1317 6:21+3", "id"),
    ("secrets: {HF_TOKEN: projects/p/secrets/s}\n", "TPU1317 6:21+20", "versions/V"),
    ("health: {prompt: ${HOME}}\n", "TPU1017 6:19+1", "quote"),
]


@pytest.mark.parametrize(("line", "expected", "hint"), AT_THE_TOP)
def test_a_wrong_key_is_one_problem_with_place_and_advice(line: str, expected: str, hint: str) -> None:
    (diagnostic,) = problems(SMALL + line)
    assert place(diagnostic) == expected
    assert hint in diagnostic.hint


_SHARED_ATTENTION = "args: {additional_config: {sharding: {sharding_strategy: {enable_dp_attention: true}}}}"
UNDER_SERVING: list[tuple[str, str, str]] = [
    ("hbm_utilization: 0", "TPU1205 7:20+1", "0.9"),
    ("hbm_utilization: 1.01", "TPU1205 7:20+4", "0.9"),
    ("port: 65536", "TPU1205 7:9+5", "8000"),
    ("padding_gap: -1", "TPU1205 7:16+2", ""),
    ("kv_cache_dtype: fp88", "TPU1204 7:19+4", 'did you mean "fp8"?'),
    ("shm_size: 10", "TPU1206 7:13+2", "10gb"),
    ("shm_size: 10x", "TPU1206 7:13+3", "10GiB"),
    ("container_name: -x", "TPU1206 7:19+2", ""),
    ("xla_cache_path: cache", "TPU1206 7:19+5", "absolute"),
    ("xla_cache_bucket: gs://bucket/a b", "TPU1206 7:21+15", "gs://bucket/folder"),
    ("enable_prefix_caching: true", "TPU1201 7:3+21", "serving.args"),
    ("tensor_parallel_size: 3", "TPU1302 7:25+1", "1, 2 or 4"),
    ("tensor_parallel_size: 8", "TPU1302 7:25+1", "1, 2 or 4"),
    ("tensor_parallel_size: 4\ndata_parallel_size: 2", "TPU1302 7:25+1", "tensor_parallel_size may be 1 or 2"),
    ("tensor_parallel_size: 2\ndata_parallel_size: 3", "TPU1302 7:25+1", "product may be 1, 2 or 4"),
    ("tensor_parallel_size: 0", "TPU1205 7:25+1", ""),
    ("data_parallel_size: 3", "TPU1302 7:23+1", "1, 2 or 4"),
    ("tensor_parallel_size: 2", "TPU1304 7:25+1", "data_parallel_size: 2"),
    ("volumes: {data: /data}", "TPU1331 7:13+4", "absolute"),
    ("volumes: {/data: 1}", "TPU1203 7:20+1", 'quote it: "1"'),
    ("volumes: {/data: data}", "TPU1331 7:20+4", "absolute"),
    ("volumes: {/data: '/data:ro'}", "TPU1331 7:20+10", "colon"),
    ("volumes: {/a: /data, /b: /data/}", "TPU1331 7:28+6", "keep one"),
    ("setup: pip install x", "TPU1203 7:10+13", "[pip install x]"),
    ("setup: [null]", "TPU1203 7:11+4", ""),
    ("env: {1A: x}", "TPU1315 7:9+2", "letters"),
    ("env: {A: 1.10}", "TPU1203 7:12+4", 'quote it: "1.10"'),
    ("env: {HF_TOKEN: x}", "TPU1316 7:9+8", "secrets"),
    ("args: {max_model_len: 4096}", "TPU1312 7:10+13", "serving.max_model_len"),
    ("args: {gpu_memory_utilization: 0.9}", "TPU1312 7:10+22", "serving.hbm_utilization"),
    ("args: {revision: main}", "TPU1312 7:10+8", "model.revision"),
    ("args: {model: x}", "TPU1310 7:10+5", "model.id"),
    ("args: {api_key: x}", "TPU1312 7:10+7", "VLLM_API_KEY"),
    ("args: {enable_prefix_cachin: true}", "TPU1310 7:10+20", "enable_prefix_caching"),
    ("args: {no_enable_prefix_caching: true}", "TPU1310 7:10+24", "enable_prefix_caching: false"),
    ("args: {pipeline_parallel_size: 3}", "TPU1302 7:34+1", "1, 2 or 4"),
    ("tensor_parallel_size: 4\nargs: {pp: 2}", "TPU1302 7:25+1", "1, 2 or 4"),
    ("env: {VLLM_TPU_BUKCET_PADDING_GAP: '512'}", "TPU1333 7:9+27", "serving.padding_gap"),
    ("env: {SKIP_JAX_PRECOMPILEE: '1'}", "TPU1333 7:9+20", "SKIP_JAX_PRECOMPILE"),
    ("env: {NEW_MODEL_DESIGN: 'yes'}", "TPU1335 7:27+5", "write 0, 1, true or false"),
    ("env: {VLLM_ENGINE_READY_TIMEOUT_S: 30m}", "TPU1335 7:38+3", "write an integer"),
    ("env: {MODEL_IMPL_TYPE: jax}", "TPU1335 7:26+3", "write auto, vllm, flax_nnx or jetpack"),
    ("env: {VLLM_LOGING_LEVEL: DEBUG}", "TPU1333 7:9+17", "VLLM_LOGGING_LEVEL"),
    ("args: {ssl_keyfile: /etc/key.pem}", "TPU1318 7:10+11", "in front of the endpoint"),
    ("args: {root_path: /llm}", "TPU1318 7:10+9", "in front of the endpoint"),
    ("args: {quantization: gptq}", "TPU1334 7:10+12", "TPU has auto_awq, compressed-tensors, "),
    (
        "args: {additional_config: {enable_continue_decode: true}, pp: 4}",
        "TPU1319 7:10+17",
        "leave it out",
    ),
    (
        "args: {additional_config: {enable_continue_decode: true}, runner: pooling}",
        "TPU1319 7:10+17",
        "leave it out",
    ),
    (
        "data_parallel_size: 4\nenv: {TPU_MULTIPROCESS_DP: '1'}\n" + _SHARED_ATTENTION,
        "TPU1319 9:10+17",
        "leave the variable out",
    ),
    ("args: {host: 127.0.0.1}", "TPU1318 7:10+4", "leave it out"),
    ("args: {headless: true}", "TPU1318 7:10+8", "leave it out"),
    ("args: {enable_auto_tool_choice: true}", "TPU1319 7:10+23", "tool_call_parser: gemma4"),
    ("data_parallel_size: 4\nargs: {enable_lora: true}", "TPU1319 8:10+11", "replicas"),
    ("args: {speculative_config: {method: ngarm}}", "TPU1311 7:39+5", 'did you mean "ngram"?'),
    ("args: {speculative_config: {methd: ngram}}", "TPU1311 7:31+5", 'did you mean "method"?'),
    ("args: {speculative_config: {method: ngram, num_speculative_tokens: 0}}", "TPU1311 7:70+1", ""),
    ("args: {speculative_config: {method: ngram}}", "TPU1311 7:10+18", "num_speculative_tokens: 3"),
    ("args: {speculative_config: {method: medusa, model: a/b}}", "TPU1311 7:10+18", "ngram, eagle3"),
    (
        "args: {speculative_config: {method: mtp, num_speculative_tokens: 2}}",
        "TPU1311 7:10+18",
        "gemma-4-E2B-it-assistant",
    ),
    ("args: {spec_method: gemma4_mtp, spec_tokens: 2}", "TPU1311 7:10+11", "gemma-4-E2B-it-assistant"),
    ("args: {compilation_config: {inductor_passes: {mine: a_pass}}}", "TPU1311 7:10+18", "my_package.my_pass"),
    ("args: {kernel_config: {linear_backend_per_quant: {}}}", "TPU1311 7:10+13", "leave it out"),
    ("args: {numa_bind: true, numa_bind_cpus: ''}", "TPU1311 7:43+2", ""),
    ("args: {served_model_name: [chat, '']}", "TPU1311 7:36+2", ""),
    ("args: {disable_sliding_window: true}", "TPU1319 7:10+22", "leave it out"),
    ("args: {compilation_config: {mode: FAST}}", "TPU1311 7:37+4", ""),
    ("args: {compilation_config: {cudagraph_mod: NONE}}", "TPU1311 7:31+13", 'did you mean "cudagraph_mode"?'),
    ("args: {structured_outputs_config: {backend: xgramar}}", "TPU1311 7:47+7", 'did you mean "xgrammar"?'),
    (
        "args: {kv_transfer_config: {kv_connector: TPUConnector, kv_role: kv_bth}}",
        "TPU1311 7:68+6",
        'did you mean "kv_both"?',
    ),
    ("args: {kv_transfer_config: {kv_connector: TPUConnector}}", "TPU1311 7:10+18", "kv_both"),
    ("args: {kv_transfer_config: {kv_connector: TPUConector}}", "TPU1311 7:45+11", 'did you mean "TPUConnector"?'),
    (
        "args: {kv_transfer_config: {kv_connector: TPUConnector, kv_role: kv_both}}",
        "TPU1311 7:10+18",
        "kv_connector_module_path: tpu_inference.distributed.tpu_connector",
    ),
    ("args: {compilation_config: {debug_dump_path: 5}}", "TPU1311 7:48+1", ""),
    ("args: {compilation_config: {pass_config: {a: 1}}}", "TPU1311 7:45+1", ""),
    ("args: {compilation_config: {custom_ops: [rms]}}", "TPU1311 7:44+3", ""),
    ("args: {attention_config: {backend_per_kind: {mamb: FLASH_ATTN}}}", "TPU1311 7:48+4", 'did you mean "mamba"?'),
    ("args: {config_format: mistarl}", "TPU1311 7:25+7", 'did you mean "mistral"?'),
    ("args: {tokenizer_mode: mistarl}", "TPU1311 7:26+7", 'did you mean "mistral"?'),
    ("args: {custom_histogram_buckets: {ttft: [1]}}", "TPU1311 7:37+4", ""),
    ("args: {custom_histogram_buckets: {time_to_first_token: [2, 1]}}", "TPU1311 7:10+24", "[0.1, 1]"),
    ("args: {distributed_executor_backend: MP}", "TPU1311 7:40+2", ""),
    ("args: {device_ids: '0,a'}", "TPU1311 7:22+5", ""),
    ("args: {device_ids: '0,0'}", "TPU1319 7:10+10", "0"),
    ("args: {lora_modules: [sql]}", "TPU1311 7:25+3", ""),
    ("args: {lora_modules: [{name: sql}]}", "TPU1311 7:25+11", ""),
    ("args: {numa_bind: true, numa_bind_cpus: [a-b]}", "TPU1311 7:44+3", ""),
    ("args: {numa_bind_nodes: [0]}", "TPU1319 7:10+15", "numa_bind: true"),
    ("args: {quantization: fp8_per_tensor}", "TPU1334 7:10+12", "compressed-tensors"),
    ("args: {engram_config: {}}", "TPU1334 7:10+13", "leave it out"),
    ("args: {kernel_config: {moe_backend: flashinfer_moe_ep_mega_deep_gemm}}", "TPU1311 7:10+13", "leave it out"),
    ("args: {attention_config: {hisparse_config: {}}}", "TPU1311 7:10+16", "leave it out"),
    ("args: {ec_transfer_config: {ec_connector: x}}", "TPU1311 7:10+18", "ec_producer"),
    ("args: {eplb_config: {num_redundant_experts: 1}}", "TPU1311 7:10+11", "leave it out"),
    ("args: {limit_mm_per_prompt: {images: {count: -1}}}", "TPU1311 7:48+2", ""),
    ("args: {quantization: mxfp8}", "TPU1334 7:10+12", "compressed-tensors"),
    ("args: {mm_shm_cache_max_object_size_mb: 0}", "TPU1319 7:10+31", "shm"),
    ("args: {mm_encoder_fp8_scale_path: /s}", "TPU1319 7:10+25", "fp8"),
    ("args: {mamba_ssu_algorithm: simple}", "TPU1319 7:10+19", "leave it out"),
    ("args: {ray_workers_use_nsight: true}", "TPU1319 7:10+22", "leave it out"),
    ("args: {grpc_port: 1}", "TPU1319 7:10+9", "HTTP"),
    ("args: {data_parallel_size_local: 2}", "TPU1319 7:10+24", "at most 1"),
    ("max_num_seqs: 8\nargs: {max_num_active_seqs: 9}", "TPU1319 8:10+19", "at most 8"),
    ("max_model_len: 4k\nargs: {long_prefill_token_threshold: 4001}", "TPU1319 8:10+28", "at most 4000"),
    ("args: {decode_context_parallel_size: 3}", "TPU1319 7:10+28", "divisor"),
    ("args: {data_parallel_rank: 0}", "TPU1318 7:10+18", ""),
    ("max_num_seqs: 8\nargs: {per_request_spec_decode_metrics: summary}", "TPU1319 8:10+31", "speculative_config"),
    ("args: {mm_tensor_ipc: torch_shm}", "TPU1319 7:10+13", "direct_rpc"),
    ("args: {offload_backend: prefetch}", "TPU1319 7:10+15", "offload_group_size"),
    ("args: {pooler_config: {logit_sigma: 0}}", "TPU1311 7:10+13", "leave it out"),
    ("args: {reasoning_config: {reasoning_parser: gema4}}", "TPU1311 7:10+16", 'did you mean "gemma4"?'),
    ("args: {structured_outputs_config: {reasoning_parser: gema4}}", "TPU1311 7:10+25", 'did you mean "gemma4"?'),
    ("args: {show_hidden_metrics_for_version: soon}", "TPU1311 7:43+4", "0.31"),
    ("args: {profiler_config: {capture_torch_profiler: true}}", "TPU1311 7:10+15", "profiler: torch"),
    ("args: {ubatch_size: many}", "TPU1311 7:23+4", ""),
    ("args: {ubatch_size: 7}", "TPU1334 7:10+11", "leave it out"),
    ("args: {enable_sleep_mode: true}", "TPU1334 7:10+17", "leave it out"),
    ("args: {enable_eplb: true}", "TPU1334 7:10+11", "leave it out"),
    ("args: {watermark_config: {key: 1}}", "TPU1334 7:10+16", "leave it out"),
    ("args: {kda_prefill_backend: flashkda}", "TPU1334 7:10+19", "auto"),
    ("args: {moe_backend: flashinfer_moe_ep_mega_deep_gemm}", "TPU1334 7:10+11", "leave it out"),
    ("args: {spec_tokens: 3}", "TPU1311 7:10+11", "method: ngram"),
    ("args: {spec_method: ngram}", "TPU1311 7:10+11", "num_speculative_tokens: 3"),
    ("args: {spec_method: medusa, spec_model: a/b, spec_tokens: 1}", "TPU1311 7:10+11", "ngram, eagle3"),
    (
        "args: {spec_tokens: 2, speculative_config: {method: ngram, num_speculative_tokens: 2}}",
        "TPU1319 7:10+11",
        "keep one",
    ),
    ("args: {limit_mm_per_prompt: {image: -1}}", "TPU1311 7:39+2", ""),
    ("args: {limit_mm_per_prompt: {image: {count: two}}}", "TPU1311 7:47+3", ""),
    ("args: {enable_auto_tool_choice: true, tool_call_parser: gema4}", "TPU1311 7:59+5", 'did you mean "gemma4"?'),
    ("args: {reasoning_parser: gema4}", "TPU1311 7:28+5", 'did you mean "gemma4"?'),
    ("args: {quantization: fp9}", "TPU1311 7:24+3", 'did you mean "fp8"?'),
    ("args: {load_format: dumy}", "TPU1311 7:23+4", 'did you mean "dummy"?'),
    ("args: {attention_backend: FLASH_ATN}", "TPU1311 7:29+9", 'did you mean "FLASH_ATTN"?'),
    ("args: {shutdown_timeout: -1}", "TPU1311 7:28+2", ""),
    ("args: {enable_lora: true, max_loras: 0}", "TPU1311 7:40+1", ""),
    ("args: {collect_detailed_traces: [model]}", "TPU1319 7:10+23", "otlp_traces_endpoint"),
    ("args: {enable_log_outputs: true}", "TPU1319 7:10+18", "enable_log_requests"),
    ("args: {seed: [1]}", "TPU1311 7:16+3", ""),
    ("args: {seed: {a: 1}}", "TPU1311 7:16+6", ""),
    ("args: {seed: true}", "TPU1311 7:16+4", ""),
    ("args: {speculative_config: true}", "TPU1311 7:30+4", ""),
    ("args: {enable-prefix-caching: true, enable_prefix_caching: false}", "TPU1313 7:39+21", "keep one"),
]


@pytest.mark.parametrize(("line", "expected", "hint"), UNDER_SERVING)
def test_a_wrong_key_under_serving_is_one_problem_with_place_and_advice(line: str, expected: str, hint: str) -> None:
    (diagnostic,) = problems(with_serving(line))
    assert place(diagnostic) == expected
    assert hint in diagnostic.hint


def test_an_idle_limit_beside_an_engine_that_counts_no_requests_is_one_problem_on_the_flag() -> None:
    text, idle = with_serving("args: {disable_log_stats: true}"), "lifecycle: {idle: 30m}\n"
    (diagnostic,) = problems(text + idle)
    assert place(diagnostic) == "TPU1347 7:10+17"
    assert "lifecycle.end" in diagnostic.hint
    assert not problems(text)
    assert not problems(with_serving("port: 8000") + idle)


MISSING: list[tuple[str, str, str]] = [
    ("version: 1\n", "TPU1202 1:1+4", "version: 1"),
    ("name: demo\n", "TPU1202 1:1+7", "name: "),
    ("model: {id: google/gemma-4-E2B-it}\n", "TPU1202 1:1+7", "id: google/"),
    ("tpu: {type: v6e-4}\n", "TPU1202 1:1+7", "type: v6e-4"),
    (_SERVING, "TPU1202 1:1+7", "image: "),
]


@pytest.mark.parametrize(("line", "expected", "hint"), MISSING)
def test_a_missing_key_is_named_whole_with_an_example(line: str, expected: str, hint: str) -> None:
    (diagnostic,) = problems(SMALL.replace(line, ""))
    assert place(diagnostic) == expected.replace("+4", "+1").replace("+7", "+1")
    assert hint in diagnostic.hint


REPLACED: list[tuple[str, str, str, str]] = [
    ("version: 1", "version: 2", "TPU1206 1:10+1", "only version"),
    ("version: 1", "version: 1.0", "TPU1206 1:10+3", "only version"),
    ("version: 1", "version: true", "TPU1206 1:10+4", "only version"),
    ("name: demo", "name: Demo", "TPU1206 2:7+4", "lower case"),
    ("name: demo", f"name: {'a' * 41}", "TPU1206 2:7+41", "40"),
    ("name: demo", "nmae: demo", "TPU1201 2:1+4", 'did you mean "name"?'),
    ("google/gemma-4-E2B-it", "a/b/c", "TPU1206 3:13+5", "gs://"),
    ("google/gemma-4-E2B-it}", "a/b, revision: 1.10}", "TPU1203 3:28+4", 'quote it: "1.10"'),
    ("v6e-4", "v6e-5", "TPU1301 4:13+5", 'did you mean "v6e-'),
    ("v6e-4", "v3-8", "TPU1207 4:13+4", "v6e-8"),
    ("v6e-4", "v6e-16", "TPU1307 4:13+6", "pipeline_parallel_size: 4"),
    ("v6e-4}", "v6e-4, runtime_version: 2.0}", "TPU1203 4:37+3", 'quote it: "2.0"'),
    ("v6e-4}", "v6e-4, runtime_version: v2-alpha-tpuv5-lite}", "TPU1303 4:37+19", "v2-alpha-tpuv6e"),
    ("v6e-4}", "v6e-4, boot_disk_size: 200}", "TPU1206 4:36+3", "GiB"),
    ("vllm/vllm-tpu:v0.32.0", "vllm/VLLM", "TPU1206 5:18+11", "vllm/vllm-tpu"),
    ("vllm/vllm-tpu:v0.32.0", "vllm/vllm-tpu:nightly", "TPU1340 5:18+23", "digest"),
    ("vllm/vllm-tpu:v0.32.0", "host:5000/vllm-tpu", "TPU1340 5:18+20", "digest"),
    ("vllm/vllm-tpu:v0.32.0", "vllm/vllm-tpu:gemma4", "TPU1340 5:18+22", "digest"),
    ("vllm/vllm-tpu:v0.32.0", "vllm/vllm-tpu:v0.32", "TPU1340 5:18+21", "digest"),
    ("vllm/vllm-tpu:v0.32.0", "vllm/vllm-openai:v0.32.0", "TPU1342 5:18+26", "vllm/vllm-tpu:v0.32.0"),
    ("vllm/vllm-tpu:v0.32.0", "mirror.local/vllm-openai:v0.32.0-cu129", "TPU1342 5:18+40", "vllm/vllm-tpu:v0.32.0"),
]


@pytest.mark.parametrize(("right", "wrong", "expected", "hint"), REPLACED)
def test_a_wrong_required_value_is_one_problem_with_place_and_advice(
    right: str, wrong: str, expected: str, hint: str
) -> None:
    (diagnostic,) = problems(SMALL.replace(right, wrong))
    assert place(diagnostic) == expected
    assert hint in diagnostic.hint


TWICE: list[tuple[str, str, tuple[int, int]]] = [
    ("port: 8000\nargs: {port: 1}", "TPU1313 8:10+4", (7, 3)),
    ("args: {port: 1}\nport: 8000", "TPU1313 7:10+4", (8, 3)),
    ("args:\n  tensor-parallel-size: 4\ntensor_parallel_size: 4", "TPU1313 8:5+20", (9, 3)),
    ('padding_gap: 1\nenv: {VLLM_TPU_BUCKET_PADDING_GAP: "1"}', "TPU1314 8:9+27", (7, 3)),
    ("xla_cache_path: /x\nenv: {VLLM_XLA_CACHE_PATH: /y}", "TPU1314 8:9+19", (7, 3)),
]


@pytest.mark.parametrize(("lines", "expected", "also"), TWICE)
def test_the_same_flag_or_variable_from_two_places_names_both(lines: str, expected: str, also: tuple[int, int]) -> None:
    (diagnostic,) = problems(with_serving(lines))
    assert place(diagnostic) == expected
    assert diagnostic.also is not None
    assert (diagnostic.also.line, diagnostic.also.column) == also


def test_a_variable_in_env_and_secrets_names_both() -> None:
    (diagnostic,) = problems(with_serving("env: {HF_TOKEN: x}") + "secrets: {HF_TOKEN: hf-token}\n")
    assert place(diagnostic) == "TPU1314 7:9+8"
    assert diagnostic.also is not None
    assert (diagnostic.also.line, diagnostic.also.column) == (8, 11)


def test_a_misspelt_required_key_is_one_problem_and_not_two() -> None:
    (diagnostic,) = problems(SMALL.replace("type:", "typ:"))
    assert (diagnostic.code, diagnostic.path, diagnostic.hint) == ("TPU1201", "tpu.typ", 'did you mean "type"?')


def test_all_problems_come_at_once_in_the_order_of_the_file() -> None:
    text = SMALL.replace("v6e-4", "v6e-5") + "replicas: 0\nplacement: {provisioning: [flex-start]}\nhealth: {via: x}\n"
    assert [place(d).split("+")[0] for d in problems(text)] == [
        "TPU1301 4:13",
        "TPU1205 6:11",
        "TPU1320 7:28",
        "TPU1204 8:15",
    ]


def test_a_duplicate_key_hides_no_missing_one() -> None:
    diagnostics = problems(SMALL.replace("name: demo\n", "") + "replicas: 1\nreplicas: 2\n")
    assert [d.code for d in diagnostics] == ["TPU1202", "TPU1021"]


def test_a_broken_overlay_hides_no_problem_of_the_file_it_lies_over() -> None:
    text = SMALL.replace("v6e-4", "v6e-5").replace("name: demo\n", "")
    diagnostics = problems(text, others={"o.yaml": "name: [\n"}, overlays=["o.yaml"])
    assert [(d.code, d.location.file if d.location else "") for d in diagnostics] == [
        ("TPU1017", "o.yaml"),
        ("TPU1301", "p.yaml"),
    ]


def test_a_pinned_image_on_the_right_slice_is_worth_no_word() -> None:
    assert load(SMALL).warnings == ()
    digest = f"vllm/vllm-tpu@sha256:{'0' * 64}"
    assert load(SMALL.replace("vllm/vllm-tpu:v0.32.0", digest)).warnings == ()


def test_every_other_key_of_the_format_is_accepted() -> None:
    text = with_serving(
        """\
tensor_parallel_size: 2
data_parallel_size: 2
dtype: bfloat16
kv_cache_dtype: fp8_e5m2
hbm_utilization: 1
block_size: 32
max_model_len: 16384
max_num_seqs: 256
max_num_batched_tokens: 4096
padding_gap: 0
xla_cache_path: /dev/shm/vllm_cache
port: 65535
shm_size: 10gb
volumes: {/dev/shm: /dev/shm, /data: /data}
container_name: vllm-gemma4
args: {speculative_config: {method: ngram, num_speculative_tokens: 3}, seed: null, allowed_origins: ["*"], trust_remote_code: true}
env: {HF_HOME: /dev/shm}
setup: ["pip install x"]
"""
    )
    profile = load(
        text
        + f"""\
secrets: {{HF_TOKEN: hf-token, VLLM_API_KEY: projects/p/secrets/s/versions/latest}}
placement:
  project: my-project
  zones: [us-east5-b, europe-west4-a]
  provisioning: [reserved, flex-start, spot, on-demand]
  reservation: {_RESERVATION}
  max_run_duration: 7d
  valid_until: 2h
  max_parallel_requests: 4
  max_price_per_chip_hour: 2.00
  network: {{network: vpc, subnetwork: projects/p/regions/r/subnetworks/s, external_ip: false, tags: [a-b]}}
  service_account: vllm@my-project.iam.gserviceaccount.com
  labels: {{team: search, empty: ""}}
replicas: 3
lifecycle: {{prevent_destroy: true, replace: destroy-before-create, ignore_changes: [serving.image, serving.env.A]}}
health: {{timeout: 30m, via: iap, prompt: "Grüß Gott"}}
"""
    )
    assert profile.warnings == ()
    assert profile.placement.zones == ("us-east5-b", "europe-west4-a")
    assert float(profile.placement.max_run_duration or 0) == 7 * 86400
    assert int(profile.serving.shm_size or 0) == 10 * 1024**3
    assert Profile.model_validate(profile.model_dump()).model_dump() == profile.model_dump()
    assert "seed" not in profile.serving.args


def test_a_key_that_is_not_written_is_known_not_to_be() -> None:
    spec = load(with_serving("port: 8000\nblock_size: null"))
    assert spec.serving.model_fields_set == {"image", "port"}


def keys_of_the_format() -> Iterator[str]:
    """Yield the dotted path of each key that editors' schema has."""
    schema = json.loads((Path(__file__).parents[2] / "profiles/profile.schema.json").read_text(encoding="utf-8"))

    def walk(part: Any, path: str) -> Iterator[str]:
        for name, value in part.get("properties", {}).items():
            yield f"{path}{name}"
            for choice in (value, *value.get("anyOf", ()), *value.get("allOf", ())):
                yield from walk(
                    schema["definitions"].get(choice.get("$ref", "").rpartition("/")[2], {}), f"{path}{name}."
                )

    return walk(schema, "")


def test_a_number_that_no_key_takes_is_a_problem_of_each_key_even_where_it_is_alone() -> None:
    keys = set(keys_of_the_format()) - {"extends"}  # which no option sets
    assert len(keys) > 80
    for key in keys:
        codes = {problem.code for problem in problems(SMALL, sets=[f"{key}=.inf"])}
        assert "TPU1025" in codes, key
        assert problems(SMALL, sets=[f"{key}=-3"]), key
