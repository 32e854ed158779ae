"""Define `model` and `serving`: the model, the container, and the vLLM server in it."""

from typing import Annotated, Literal

from pydantic import Field

from tpudeploy.config.schema.base import (
    AbsolutePath,
    Bucket,
    DockerBytes,
    Form,
    JsonValue,
    Section,
    Text,
    TokenCount,
    TokensOrAuto,
    Words,
)

_HUB = r"[A-Za-z0-9][\w.-]{0,95}(?:/[A-Za-z0-9][\w.-]{0,95})?"
_BUCKET = r"gs://[a-z0-9][a-z0-9._-]{1,220}[a-z0-9](?:/\S*)?"
ModelId = Annotated[
    str,
    Form(rf"{_HUB}|{_BUCKET}|/\S+", "google/gemma-4-E2B-it, gs://bucket/weights or /path/to/weights"),
]
Revision = Annotated[str, Form(r"[A-Za-z0-9][\w./-]{0,254}", "main, or a commit's forty digits")]


class ModelSpec(Section):
    """The model to serve."""

    id: ModelId = Field(
        description="The model's name for clients: a Hugging Face id, or a gs:// prefix or absolute path of the "
        "weights. Required. Source: the first argument of `vllm serve`.",
        examples=["google/gemma-4-E2B-it"],
    )
    revision: Revision | None = Field(
        default=None,
        description="Branch, tag or commit on the hub. The first apply pins its commit in "
        "tpudeploy.lock.json. Default: the hub's default branch. Source: vLLM's --revision.",
        examples=["main"],
    )
    config: Text | None = Field(
        default=None,
        description="A Hugging Face config.json, relative to this file, to size a model missing from the catalog. "
        "Default: none.",
        examples=["./config.json"],
    )
    mirror: Bucket | None = Field(
        default=None,
        description="A bucket copy of the weights, fetched instead of the hub; clients still see `model.id`. The "
        "folder holds the model's files themselves, config.json among them; the VM's service account needs "
        "roles/storage.objectViewer there. Default: none.",
        examples=["gs://bucket/weights"],
    )


_DOMAIN = r"(?:[a-zA-Z0-9]|[a-zA-Z0-9][a-zA-Z0-9-]*[a-zA-Z0-9])"
_HOST = rf"{_DOMAIN}(?:\.{_DOMAIN})*(?::[0-9]{{1,5}})?"
_PART = r"[a-z0-9]+(?:(?:\.|_|__|-+)[a-z0-9]+)*"
_TAG = r"(?::[\w][\w.-]{0,127})?"
_DIGEST = r"(?:@sha256:[0-9a-f]{64})?"
Image = Annotated[
    str,
    Form(rf"(?:{_HOST}/)?{_PART}(?:/{_PART})*{_TAG}{_DIGEST}", "vllm/vllm-tpu:v0.32.0, or host/path@sha256:DIGEST"),
]
ContainerName = Annotated[str, Form(r"[a-zA-Z0-9][a-zA-Z0-9_.-]{1,62}", "vllm-gemma4")]
Count = Annotated[int, Field(ge=1, le=2**31 - 1)]


class ServingSpec(Section):
    """A key that is not written adds no flag and no variable, except `tensor_parallel_size` and `volumes`."""

    image: Image = Field(
        description="The container image, by tag or digest. The first apply pins a tag in "
        "tpudeploy.lock.json; until then, a floating tag causes a warning. Required. Source: docker.",
        examples=["vllm/vllm-tpu:nightly"],
    )
    tensor_parallel_size: Count | None = Field(
        default=None,
        description="The number of chips for one copy of the model. Default: chips of the slice / "
        "data_parallel_size. Source: vLLM's --tensor-parallel-size.",
        examples=[4],
    )
    data_parallel_size: Count | None = Field(
        default=None,
        description="Copies of the model in the slice. Default: 1. Source: vLLM's --data-parallel-size.",
        examples=[1],
    )
    dtype: Literal["auto", "bfloat16", "float16", "float32", "half", "float"] | None = Field(
        default=None,
        description="Type of weights and activations. Default: vLLM's (auto). Source: vLLM's --dtype.",
        examples=["bfloat16"],
    )
    kv_cache_dtype: Literal["auto", "bfloat16", "float16", "fp8", "fp8_e4m3", "fp8_e5m2"] | None = Field(
        default=None,
        description="Type of the KV cache. Default: vLLM's (auto: the model's). Source: vLLM's --kv-cache-dtype.",
        examples=["fp8"],
    )
    hbm_utilization: float | None = Field(
        default=None,
        gt=0,
        le=1,
        description="Share of HBM for weights and KV cache, 0 < x <= 1; programs and activations use the rest. "
        "Default: vLLM's (0.92). Source: vLLM's --gpu-memory-utilization.",
        examples=[0.9],
    )
    block_size: Count | None = Field(
        default=None,
        description="Tokens per KV block. Default: chosen by vLLM from max_model_len and max_num_seqs. Source: "
        "vLLM's --block-size.",
        examples=[32],
    )
    max_model_len: TokensOrAuto | None = Field(
        default=None,
        description="Prompt and output tokens of one request together: a number, 16k (16,000) or 16K (16,384); auto "
        "is the largest that fits in the KV cache. Default: the model's own limit. Source: vLLM's --max-model-len.",
        examples=[16384],
    )
    max_num_seqs: Count | None = Field(
        default=None,
        description="The most requests running at once; others queue. Default: vLLM's (256 on v6e). Source: vLLM's "
        "--max-num-seqs.",
        examples=[256],
    )
    max_num_batched_tokens: TokenCount | None = Field(
        default=None,
        description="Tokens of one step: a number, 4k (4,000) or 4K (4,096). Default: vLLM's (2048). Source: "
        "vLLM's --max-num-batched-tokens.",
        examples=[4096],
    )
    padding_gap: int | None = Field(
        default=None,
        ge=0,
        le=2**31 - 1,
        description="Distance in tokens between compiled batch sizes; 0 means powers of two. A gap means "
        "less padding and more graphs. Default: 0. Source: tpu_inference's VLLM_TPU_BUCKET_PADDING_GAP.",
        examples=[512],
    )
    xla_cache_path: AbsolutePath | None = Field(
        default=None,
        description="Path in the container of the compile cache; it outlives the container only inside a volume. "
        "Default: vLLM's, on the default volume. Source: VLLM_XLA_CACHE_PATH.",
        examples=["/dev/shm/vllm_cache"],  # noqa: S108 - a path in the container that a profile may name
    )
    xla_cache_bucket: Bucket | None = Field(
        default=None,
        description="A bucket to keep the compile cache in after the machine is deleted: restored before a start, "
        "saved once the server serves. The VM's service account needs roles/storage.objectUser there. "
        "Default: none.",
        examples=["gs://bucket/xla"],
    )
    port: int | None = Field(
        default=None,
        ge=1,
        le=65535,
        description="TCP port of the endpoint. Default: 8000. Source: vLLM's --port.",
        examples=[8000],
    )
    shm_size: DockerBytes | None = Field(
        default=None,
        description="Size of /dev/shm in the container, as docker takes it: 16g, 16384m, 10gb, or bytes; its units are "
        "binary. Default: docker's. Source: docker's --shm-size.",
        examples=["10gb"],
    )
    volumes: dict[str, str] | None = Field(
        default=None,
        description="Host path: container path. Default: /var/lib/tpudeploy/hf and /var/lib/tpudeploy/xla for the "
        "hub and compile caches; {} means no volume. Source: docker's --volume.",
        examples=[{"/dev/shm": "/dev/shm"}],  # noqa: S108 - paths that a profile may name
    )
    container_name: ContainerName | None = Field(
        default=None,
        description="Name of the container. Default: the deployment's name. Source: docker's --name.",
        examples=["vllm-gemma4"],
    )
    args: dict[str, JsonValue] = Field(
        default_factory=dict,
        description="Any other `vllm serve` flag, without dashes; `_` and `-` are the same. true is the flag, false "
        "its --no- form if vLLM has one, null is not passed, a mapping is one JSON argument, a list is written as "
        "the flag takes it. Default: none. Source: vLLM's own flags.",
        examples=[{"enable_prefix_caching": True}],
    )
    env: dict[str, str] = Field(
        default_factory=dict,
        description="Environment variables of the container: plain values only, a secret here is an error. Default: "
        "none. Source: docker's --env.",
        examples=[{"HF_HOME": "/dev/shm"}],  # noqa: S108 - a path that a profile may name
    )
    plain_env: Words = Field(
        default=(),
        description="Names under `env` that look like secrets but aren't: scripts, plans and states show their "
        "values. Default: none; a name with TOKEN, SECRET, PASSWORD or KEY in it is refused.",
        examples=[["CACHE_KEY"]],
    )
    setup: Words = Field(
        default=(),
        description="Commands that run in the container before it serves, each in its own shell; the first that "
        "fails stops the boot. Default: none.",
        examples=[["pip install git+https://github.com/huggingface/transformers.git"]],
    )
