"""The options of `vllm serve`, one line each, written by tests/oracle/dump_vllm_flags.py; never edit by hand.

Columns: name, style, value type, aliases. An indented line holds the choices of the flag above it.
"""

VLLM_VERSION = "0.32.0"

TABLE = """\
additional-config json object
aggregate-engine-logging switch bool
all2all-backend value text
    allgather_reducescatter deepep_high_throughput deepep_low_latency deepep_v2 flashinfer_all2allv
    flashinfer_nvlink_one_sided flashinfer_nvlink_two_sided moonep mori_high_throughput
    mori_low_latency naive nixl_ep pplx
allow-credentials toggle bool
allow-deprecated-quantization toggle bool
allowed-headers json array
allowed-local-media-path value text
allowed-media-domains words text
allowed-methods json array
allowed-origins json array
anthropic-disabled-thinking-effort value text
    auto high low max medium none xhigh
api-key words text
api-server-count value int asc
async-scheduling toggle bool
attention-backend value text
attention-config json object ac
aux-output-config json object
block-size value int
chat-template value text
chat-template-content-format value text
    auto openai string
code-revision value text
cohere-format value text
cohere-is-reasoning-model toggle bool
collect-detailed-traces words text
    all model worker
compilation-config json object cc
config value text
config-format value text
convert value text
    auto classify embed none
cp-kv-cache-interleave-size value int
cpu-distributed-timeout-seconds value int
cpu-offload-gb value float
cpu-offload-params words text
cudagraph-capture-sizes words int
cudagraph-metrics toggle bool
custom-histogram-buckets json object
data-parallel-address value text dpa
data-parallel-backend value text dpb
data-parallel-external-lb toggle bool dpe
data-parallel-hybrid-lb toggle bool dph
data-parallel-multi-port-external-lb switch bool dpm
data-parallel-rank value int dpn
data-parallel-rpc-port value int dpp
data-parallel-size value int dp
data-parallel-size-local value int dpl
data-parallel-start-rank value int dpr
data-parallel-supervisor-port value int
dbo-decode-token-threshold value int
dbo-prefill-token-threshold value int
dcp-comm-backend value text
    a2a ag_rs
dcp-kv-cache-interleave-size value int
dcp-q-replicate toggle bool
decode-context-parallel-size value int dcp
default-chat-template-kwargs json object
default-mm-loras json object
device-ids value text
diffusion-config json object dc
disable-access-log-for-endpoints value text
disable-cascade-attn toggle bool
disable-chunked-mm-input toggle bool
disable-custom-all-reduce toggle bool
disable-fastapi-docs toggle bool
disable-hybrid-kv-cache-manager toggle bool
disable-log-stats switch bool
disable-nccl-for-dp-synchronization toggle bool
disable-sliding-window toggle bool
disable-uvicorn-access-log toggle bool
distributed-executor-backend value text
distributed-timeout-seconds value int
download-dir value text
dp-supervisor-probe-failure-threshold value int
dp-supervisor-probe-interval-s value float
dp-supervisor-probe-timeout-s value float
dp-sync-interval value int
dtype value text
    auto bfloat16 float float16 float32 half
ec-manager-config json object
ec-transfer-config json object
elastic-ep-max-dp-size value int
enable-auto-tool-choice toggle bool
enable-batch-sharded-sampling toggle bool
enable-chunked-prefill toggle bool
enable-cumem-allocator toggle bool
enable-dbo toggle bool
enable-elastic-ep toggle bool
enable-ep-weight-filter toggle bool
enable-eplb toggle bool
enable-expert-parallel toggle bool ep
enable-fault-tolerance toggle bool
enable-flash-late-interaction toggle bool
enable-flashinfer-autotune toggle bool
enable-force-include-usage toggle bool
enable-hc-sp toggle bool
enable-layerwise-nvtx-tracing toggle bool
enable-log-deltas toggle bool
enable-log-outputs toggle bool
enable-log-requests toggle bool
enable-logging-iteration-details toggle bool
enable-lora toggle bool
enable-mamba-cache-stochastic-rounding toggle bool
enable-mamba-shared-prefix-checkpoint toggle bool
enable-mfu-metrics toggle bool
enable-mixed-moe-lora-format toggle bool
enable-mm-embeds toggle bool
enable-moe-shared-loras toggle bool
enable-nccl-comm-suspend toggle bool
enable-offline-docs toggle bool
enable-per-request-metrics toggle bool
enable-prefix-caching toggle bool
enable-prompt-embeds toggle bool
enable-prompt-tokens-details toggle bool
enable-request-id-headers toggle bool
enable-return-routed-experts toggle bool
enable-scale-out toggle bool
enable-server-load-tracking toggle bool
enable-shm-tensor-arena toggle bool
enable-sleep-mode toggle bool
enable-ssl-refresh toggle bool
enable-tokenizer-info-endpoint toggle bool
enable-tower-connector-lora toggle bool
enable-trace-replay toggle bool
enforce-eager toggle bool
engram-config json object
eplb-config json object
exclude-tools-when-tool-choice-none toggle bool
expert-placement-strategy value text
    linear round_robin
fail-on-environ-validation toggle bool
fault-tolerance-config json object
fingerprint-mode value text
    custom full hash none
fingerprint-value value text
fully-sharded-loras toggle bool
gdn-prefill-backend value text
    flashinfer triton cutedsl aiter_flydsl
generation-config value text
gpu-memory-utilization value float device-memory-utilization
grpc switch bool
grpc-port value int
h11-max-header-count value int
h11-max-incomplete-event-size value int
headless switch bool
hf-config-path value text
hf-overrides json object
hf-token optional text
host value text
ignore-patterns words text
interleave-mm-strings toggle bool
io-processor-plugin value text
ir-op-priority json object
jit-monitor-mode value text
    error warn
jit-monitor-verbose toggle bool
kda-decode-backend value text
    auto native flashinfer triton
kda-prefill-backend value text
    auto triton flashkda flashinfer fused
kernel-config json object
kv-cache-dtype value text
    auto bfloat16 float16 fp8 fp8_ds_mla fp8_e4m3 fp8_e5m2 fp8_inc fp8_per_token_head
    int4_per_token_head int8_per_token_head nvfp4 nvfp4_4over6 nvfp4_ds_mla turboquant_3bit_nc
    turboquant_4bit_nc turboquant_k3v4_nc turboquant_k8v4 ultraquant_4bit
kv-cache-dtype-skip-layers words text
kv-cache-memory-bytes value size
kv-cache-metrics toggle bool
kv-cache-metrics-sample value float
kv-events-config json object
kv-offloading-backend value text
    lmcache native
kv-offloading-size value float
kv-sharing-fast-prefill toggle bool
kv-transfer-config json object
language-model-only toggle bool
limit-mm-per-prompt json object
linear-backend value keyword
    aiter auto b12x conch cutlass deep_gemm emulation exllama fbgemm flashinfer_b12x
    flashinfer_cudnn flashinfer_cutedsl flashinfer_cutlass flashinfer_trtllm humming machete marlin
    torch triton xpu xpu_woq
load-format value text
log-config-file value text
log-error-stack toggle bool
log-level value text
    CRITICAL ERROR WARNING INFO DEBUG NOTSET
logging-config json object
logits-processors words text
logprobs-mode value text
    processed_logits processed_logprobs raw_logits raw_logprobs
long-prefill-token-threshold value int
long-prefill-token-threshold-adaptive toggle bool
lora-dtype value text
    auto bfloat16 float16
lora-modules words text-or-object
lora-target-modules words text
mamba-backend value text
mamba-block-size value int
mamba-cache-dtype value text
    auto bfloat16 float16 float32
mamba-cache-mode value text
    align none
mamba-cache-philox-rounds value int
mamba-ssm-cache-dtype value text
    auto bfloat16 float16 float32
mamba-ssu-algorithm value text
    auto horizontal simple vertical
master-addr value text
master-port value int
max-cpu-loras value int
max-cudagraph-capture-size value int
max-log-len value int
max-logprobs value int
max-lora-cls-labels value int
max-lora-rank value int
    1 8 16 32 64 128 256 320 512
max-loras value int
max-model-len value size-or-auto
max-num-active-seqs value int
max-num-batched-tokens value size
max-num-queued-reqs value int
max-num-queued-tokens value size
max-num-scheduled-tokens value size
max-num-seqs value int
max-parallel-loading-workers value int
media-io-kwargs json object
middleware repeated text
mm-device-do-normalize toggle bool
mm-encoder-attn-backend value text
mm-encoder-attn-dtype value text
    fp8
mm-encoder-fp8-scale-path value text
mm-encoder-fp8-scale-save-margin value float
mm-encoder-fp8-scale-save-path value text
mm-encoder-only toggle bool
mm-encoder-tp-mode value text
    data weights
mm-hasher-algorithm value text
    blake3 sha256 sha512
mm-ipc-gpu-memory-gb value float
mm-processor-cache-gb value float
mm-processor-cache-type value text
    lru shm
mm-processor-device value text
    auto cpu
mm-processor-kwargs json object
mm-shm-cache-max-object-size-mb value int
mm-tensor-ipc value text
    direct_rpc torch_shm
model-class-overrides json object
model-impl value text
model-loader-extra-config json object
moe-backend value keyword
    aiter aiter_mega_moe aiter_triton_mxfp4_bf16 auto b12x batched_triton cutlass deep_gemm
    deep_gemm_mega_moe emulation flashinfer_b12x flashinfer_cutedsl flashinfer_cutlass
    flashinfer_moe_ep_cutedsl flashinfer_moe_ep_mega_deep_gemm flashinfer_trtllm flydsl hpc humming
    marlin rdna3 triton triton_unfused
nnodes value int n
node-rank value int r
num-gpu-blocks-override value int
numa-bind toggle bool
numa-bind-cpus words text
numa-bind-nodes words int
offload-backend value text
    auto prefetch uva
offload-group-size value int
offload-num-in-group value int
offload-params words text
offload-prefetch-step value int
optimization-level value text
otlp-traces-endpoint value text
override-generation-config json object
per-request-spec-decode-metrics value text
    detailed none summary
performance-mode value text
    balanced interactivity throughput
pipeline-parallel-size value int pp
pooler-config json object
port value int
prefill-context-parallel-size value int pcp
prefill-schedule-interval value int
prefix-cache-retention-interval value int
prefix-caching-hash-algo value text
    sha256 sha256_cbor xxhash xxhash_cbor
prefix-match-unit value int
profiler-config json object
pt-load-map-location value text-or-object
quantization value text q
quantization-config json object
ray-workers-use-nsight toggle bool
reasoning-config json object
reasoning-parser value text
reasoning-parser-plugin value text
renderer-num-workers value int
replayssm-buffer-len value int
response-role value text
return-sampling-mask toggle bool
return-tokens-as-token-ids toggle bool
revision value text
root-path value text
runner value text
    auto draft generate pooling
safetensors-load-strategy value text
    eager lazy prefetch torchao
safetensors-prefetch-block-size value size
safetensors-prefetch-num-threads value int
scheduler-cls value text
scheduler-reserve-full-isl toggle bool
scheduling-policy value text
    fcfs priority
seed value int
served-model-name words text
show-hidden-metrics-for-version value text
shutdown-timeout value int
skip-mm-profiling toggle bool
skip-tokenizer-init toggle bool
sleep-mode-offload-cudagraph toggle bool
sleep-preserve-parameter-names words text
sparse-indexer-topk-backend value keyword
    aiter auto cooperative deep_select flashinfer per_row persistent torch
spec-method value text
    bailing_hybrid_mtp bailing_hybrid_v3_mtp custom_class deepseek_mtp dflash dots3_note_mtp
    draft_model dspark eagle eagle3 ernie_mtp exaone4_5_mtp exaone_moe_mtp extract_hidden_states
    gemma4_mtp glm4_moe_lite_mtp glm4_moe_mtp glm5_next_mtp glm_ocr_mtp hy_v3_mtp hy_v4_mtp
    inkling_mtp kimi_k3_mtp longcat_flash_mtp medusa mimo_mtp mimo_v2_mtp minimax_m3_mtp
    mlp_speculator mtp nemotron_h_mtp ngram ngram_gpu pangu_ultra_moe_mtp qwen3_5_mtp qwen3_next_mtp
    qwen4_exp_mtp step3p5_mtp suffix
spec-model value text
spec-tokens value int
specialize-active-lora toggle bool
speculative-config json object sc
sse-keep-alive-interval value int
ssl-ca-certs value text
ssl-cert-reqs value int
ssl-certfile value text
ssl-ciphers value text
ssl-keyfile value text
stream-interval value int
structured-outputs-config json object
swa-bounded-replay toggle bool
tensor-parallel-size value int tp
tokenizer value text
tokenizer-mode value text
tokenizer-revision value text
tokens-only toggle bool
tool-call-parser value text
tool-parser-plugin value text
tool-server value text
tool-strict-level value text
    auto function parameter
trust-remote-code toggle bool
trust-request-chat-template toggle bool
trust-request-mm-kwargs toggle bool
ubatch-size value int
uds value text
use-fp64-gumbel toggle bool
use-replayssm toggle bool
use-tqdm-on-load toggle bool
uvicorn-log-level value text
    critical debug error info trace warning
video-pruning-method value text
    evs vidcom2
video-pruning-rate value float
watermark value float
watermark-config json object
weight-transfer-config json object
worker-cls value text
worker-extension-cls value text
"""
