"""What tpu-inference's own tests say of models and features by chip, written by tests/oracle/dump_support.py.

Never edit by hand. Columns: chip, kind, name, and the cells of its row: `pass`, `untested`, or the matrix's words.
"""

REPOSITORY = "vllm-project/tpu-inference"
COMMIT = "b8692ff01fa191343836996c27a39dc95f008b88"
DATE = "2026-08-22"
RELEASE = "0.27.0"

ROWS = """
v6e model Qwen/Qwen3-Embedding-8B pass pass untested
v6e model Qwen/Qwen2.5-VL-7B-Instruct pass pass pass
v6e model Qwen/Qwen3-Omni-30B-A3B-Instruct untested untested untested
v6e model Qwen/Qwen3-VL-8B-Instruct untested untested untested
v6e model Qwen/Qwen3.5-9B untested untested untested
v6e model deepseek-ai/DeepSeek-OCR untested untested untested
v6e model google/gemma-4-26B-A4B-it not_enough_hbm not_enough_hbm not_enough_hbm
v6e model google/gemma-4-31B-it pass pass not_enough_hbm
v6e model google/gemma-4-E2B-it pass pass pass
v6e model google/gemma-4-E4B-it pass pass pass
v6e model meta-llama/Llama-4-Maverick-17B-128E-Instruct/multimodal untested untested untested
v6e model MiniMaxAI/MiniMax-M2.5 untested untested untested
v6e model Qwen/Qwen3-30B-A3B pass pass pass
v6e model Qwen/Qwen3-32B pass pass pass
v6e model Qwen/Qwen3-4B pass pass pass
v6e model Qwen/Qwen3-Coder-480B-A35B-Instruct not_enough_hbm not_enough_hbm not_enough_hbm
v6e model Qwen/Qwen3.5-397B-A17B not_enough_hbm not_enough_hbm not_enough_hbm
v6e model deepseek-ai/DeepSeek-Math-V2 untested untested untested
v6e model deepseek-ai/DeepSeek-R1 not_enough_hbm not_enough_hbm untested
v6e model deepseek-ai/DeepSeek-V3.1 untested untested untested
v6e model deepseek-ai/DeepSeek-V3.2 untested untested untested
v6e model deepseek-ai/DeepSeek-V3.2-Speciale untested untested untested
v6e model google/gemma-3-27b-it pass pass pass
v6e model meta-llama/Llama-3.1-8B-Instruct pass pass pass
v6e model meta-llama/Llama-3.3-70B-Instruct pass pass pass
v6e model mistralai/Mistral-Small-4-119B-2603/text-only untested untested untested
v6e model moonshotai/Kimi-K2-Thinking untested untested untested
v6e model moonshotai/Kimi-K2.6 not_enough_hbm not_enough_hbm untested
v6e model openai/gpt-oss-120b not_enough_hbm not_enough_hbm untested
v6e model openai/gpt-oss-20b untested untested untested
v6e model zai-org/GLM-5 untested untested untested
v6e feature Chunked_Prefill pass pass
v6e feature DCN-based_P/D_disaggregation pass pass
v6e feature KV_Cache_Offload pass pass
v6e feature LoRA_Torch pass pass
v6e feature Multimodal_Inputs pass pass
v6e feature Out-of-tree_model_support pass pass
v6e feature Prefix_Caching pass pass
v6e feature Single_Program_Multi_Data pass pass
v6e feature Speculative_Decoding:_DFlash pass pass
v6e feature Speculative_Decoding:_Eagle3 pass pass
v6e feature Speculative_Decoding:_Ngram pass pass
v6e feature Step_Pooling_(Embedding) pass untested
v6e feature async_scheduler pass pass
v6e feature hybrid_kv_cache pass untested
v6e feature multi-host untested untested
v6e feature runai_model_streamer_loader pass untested
v6e feature sampling_params pass untested
v6e feature structured_decoding pass untested
v6e parallelism CP untested untested untested untested
v6e parallelism DP pass pass untested untested
v6e parallelism EP pass pass untested untested
v6e parallelism PP pass pass pass pass
v6e parallelism SP pass untested untested untested
v6e parallelism TP pass pass untested untested
tpu7x model Qwen/Qwen3-Embedding-8B pass pass untested
tpu7x model Qwen/Qwen2.5-VL-7B-Instruct pass pass pass
tpu7x model Qwen/Qwen3-Omni-30B-A3B-Instruct untested untested untested
tpu7x model Qwen/Qwen3-VL-8B-Instruct untested untested untested
tpu7x model Qwen/Qwen3.5-9B untested untested untested
tpu7x model deepseek-ai/DeepSeek-OCR untested untested untested
tpu7x model google/gemma-4-26B-A4B-it pass pass pass
tpu7x model google/gemma-4-31B-it pass pass pass
tpu7x model google/gemma-4-E2B-it pass pass pass
tpu7x model google/gemma-4-E4B-it pass pass pass
tpu7x model meta-llama/Llama-4-Maverick-17B-128E-Instruct/multimodal untested untested untested
tpu7x model MiniMaxAI/MiniMax-M2.5 untested untested untested
tpu7x model Qwen/Qwen3-30B-A3B pass pass pass
tpu7x model Qwen/Qwen3-32B pass pass pass
tpu7x model Qwen/Qwen3-4B pass pass pass
tpu7x model Qwen/Qwen3-Coder-480B-A35B-Instruct pass pass pass
tpu7x model Qwen/Qwen3.5-397B-A17B pass pass pass
tpu7x model deepseek-ai/DeepSeek-Math-V2 untested untested untested
tpu7x model deepseek-ai/DeepSeek-R1 pass pass untested
tpu7x model deepseek-ai/DeepSeek-V3.1 untested untested untested
tpu7x model deepseek-ai/DeepSeek-V3.2 untested untested untested
tpu7x model deepseek-ai/DeepSeek-V3.2-Speciale untested untested untested
tpu7x model google/gemma-3-27b-it pass pass pass
tpu7x model meta-llama/Llama-3.1-8B-Instruct pass pass pass
tpu7x model meta-llama/Llama-3.3-70B-Instruct pass pass pass
tpu7x model mistralai/Mistral-Small-4-119B-2603/text-only untested pass untested
tpu7x model moonshotai/Kimi-K2-Thinking untested untested untested
tpu7x model moonshotai/Kimi-K2.6 pass pass untested
tpu7x model openai/gpt-oss-120b pass pass untested
tpu7x model openai/gpt-oss-20b untested untested untested
tpu7x model zai-org/GLM-5 untested untested untested
tpu7x feature Chunked_Prefill pass pass
tpu7x feature DCN-based_P/D_disaggregation pass pass
tpu7x feature KV_Cache_Offload pass pass
tpu7x feature LoRA_Torch pass pass
tpu7x feature Multimodal_Inputs pass pass
tpu7x feature Out-of-tree_model_support pass pass
tpu7x feature Prefix_Caching pass pass
tpu7x feature Single_Program_Multi_Data pass pass
tpu7x feature Speculative_Decoding:_DFlash pass pass
tpu7x feature Speculative_Decoding:_Eagle3 pass pass
tpu7x feature Speculative_Decoding:_Ngram pass pass
tpu7x feature Step_Pooling_(Embedding) pass untested
tpu7x feature async_scheduler pass pass
tpu7x feature hybrid_kv_cache pass untested
tpu7x feature multi-host pass untested
tpu7x feature runai_model_streamer_loader pass untested
tpu7x feature sampling_params pass untested
tpu7x feature structured_decoding pass untested
tpu7x parallelism CP untested untested untested untested
tpu7x parallelism DP pass pass untested untested
tpu7x parallelism EP pass pass untested untested
tpu7x parallelism PP pass pass pass pass
tpu7x parallelism SP pass untested untested untested
tpu7x parallelism TP pass pass untested untested
"""
