"""List the flags and variables of vLLM that a key of the format sets, so that a profile must not set them itself."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.config.nodes import Path

FLAG_OF_KEY: Mapping[Path, str] = {
    ("model", "revision"): "revision",
    ("serving", "tensor_parallel_size"): "tensor-parallel-size",
    ("serving", "data_parallel_size"): "data-parallel-size",
    ("serving", "dtype"): "dtype",
    ("serving", "kv_cache_dtype"): "kv-cache-dtype",
    ("serving", "hbm_utilization"): "gpu-memory-utilization",
    ("serving", "block_size"): "block-size",
    ("serving", "max_model_len"): "max-model-len",
    ("serving", "max_num_seqs"): "max-num-seqs",
    ("serving", "max_num_batched_tokens"): "max-num-batched-tokens",
    ("serving", "port"): "port",
}
VARIABLE_OF_KEY: Mapping[Path, str] = {
    ("serving", "padding_gap"): "VLLM_TPU_BUCKET_PADDING_GAP",
    ("serving", "xla_cache_path"): "VLLM_XLA_CACHE_PATH",
}
# Flags that would put a secret on a command line, with the variable that vLLM reads instead.
SECRET_OF_FLAG: Mapping[str, str] = {"api-key": "VLLM_API_KEY", "hf-token": "HF_TOKEN"}
