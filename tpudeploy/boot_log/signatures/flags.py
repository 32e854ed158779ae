"""Flags and variables that vLLM refuses, alone or together."""

from __future__ import annotations

import re

from tpudeploy.boot_log.settings import EngineFacts
from tpudeploy.boot_log.signatures.row import Signature
from tpudeploy.catalog import flags

_IMAGE = "or the image is older or newer than the profile: check serving.image"


def _heads(match: re.Match[str], _: EngineFacts) -> str:
    heads = int(match["heads"])
    fitting = ", ".join(str(n) for n in (1, 2, 4, 8) if heads % n == 0)
    return f"{heads} attention heads are shared by the chips: set serving.tensor_parallel_size to one of {fitting}."


def _uneven(match: re.Match[str], _: EngineFacts) -> str:
    size, chips = int(match["size"]), int(match["chips"])
    fitting = ", ".join(str(n) for n in (1, 2, 4, 8) if size % n == 0 and n < chips)
    return (
        f"A dimension of {size} cannot be split over {chips} chips: set serving.tensor_parallel_size to one of "
        f"{fitting}, and serving.data_parallel_size to use the other chips; or take a newer serving.image."
    )


def _too_long(match: re.Match[str], _: EngineFacts) -> str:
    most = f" to {match['most']} or less" if match["most"] else ""
    return f"Lower serving.max_model_len{most}: the model was trained for no more."


def _rank(match: re.Match[str], _: EngineFacts) -> str:
    flag = flags.find("max-lora-rank")
    ranks = sorted(map(int, flag.choices)) if flag is not None else []
    fitting = next((rank for rank in ranks if rank >= int(match["rank"])), None)
    if fitting is None:
        return "vLLM takes no adapter of that rank: use another one."
    return f"Set serving.args.max_lora_rank to {fitting} (now {match['most']}): it costs HBM for each of max_loras."


def _item(match: re.Match[str], _: EngineFacts) -> str:
    item = int(match["item"])
    return (
        f"Raise serving.max_num_batched_tokens to {item} or more (4096 compiles no more graphs), or set the modality's "
        "limit in serving.args.limit_mm_per_prompt to 0 (an item of video is the largest)."
    )


ROWS: tuple[Signature, ...] = (
    Signature(
        name="heads-not-divisible",
        what="The chips cannot share the attention heads equally",
        pattern=r"Total number of attention heads \((?P<heads>\d{1,6})\) must be divisible by tensor parallel size",
        remedy=_heads,
        example="Value error, Total number of attention heads (8) must be divisible by tensor parallel size (3).",
    ),
    Signature(
        name="kv-heads-not-divisible",
        what="The chips cannot share the KV heads equally",
        pattern=r"in get_padded_num_heads$|line \d+, in get_padded_num_heads",
        remedy="Choose a divisor or a multiple of the model's KV heads for serving.tensor_parallel_size.",
        example='  File "/workspace/tpu_inference/tpu_inference/utils.py", line 337, in get_padded_num_heads',
    ),
    Signature(
        name="sharding-uneven",
        what="The chips cannot share a tensor of the model equally",
        pattern=(
            r"implies that the global size of its dimension \d+ should be divisible by (?P<chips>\d{1,6}), "
            r"but it is equal to (?P<size>\d{1,9})"
        ),
        remedy=_uneven,
        # vllm-project/tpu-inference pull request 139
        example=(
            "ValueError: One of device_put args was given the sharding of NamedSharding(mesh=Mesh('data': 1, 'model': "
            "8, axis_types=(Auto, Auto)), spec=PartitionSpec('model', None), memory_kind=device), which implies that "
            "the global size of its dimension 0 should be divisible by 8, but it is equal to 2 (full shape: (2, 128))"
        ),
    ),
    Signature(
        name="length-exceeds-model",
        what="max_model_len is longer than the model allows",
        pattern=(
            r"User-specified max_model_len \(\d+\) is greater than the derived max_model_len"
            r"(?: \(max_position_embeddings=(?P<most>\d+))?"
        ),
        remedy=_too_long,
        example=(
            "Value error, User-specified max_model_len (200000) is greater than the derived max_model_len "
            "(max_position_embeddings=131072 or model_max_length=None in model's config.json)."
        ),
    ),
    Signature(
        name="batch-below-length",
        what="max_num_batched_tokens is below max_model_len, with chunked prefill off",
        pattern=r"max_num_batched_tokens \((?P<batched>\d+)\) is smaller than max_model_len \((?P<length>\d+)\)",
        remedy="Raise serving.max_num_batched_tokens from {batched} to {length}, or leave chunked prefill enabled.",
        example=(
            "Value error, max_num_batched_tokens (2048) is smaller than max_model_len (16384). This effectively limits "
            "the maximum sequence length to max_num_batched_tokens"
        ),
    ),
    Signature(
        name="batch-below-sequences",
        what="max_num_batched_tokens is below max_num_seqs",
        pattern=(
            r"max_num_batched_tokens \((?P<batched>\d+)\) must be greater than or equal to "
            r"max_num_seqs \((?P<seqs>\d+)\)"
        ),
        remedy=(
            "Raise serving.max_num_batched_tokens from {batched} to {seqs} or more, or lower serving.max_num_seqs to "
            "{batched}."
        ),
        example="Value error, max_num_batched_tokens (128) must be greater than or equal to max_num_seqs (256).",
    ),
    Signature(
        name="item-exceeds-batch",
        what="One image or video is larger than a batch",
        pattern=r"Chunked MM input disabled but max_tokens_per_mm_item \((?P<item>\d{1,9})\) is larger than",
        remedy=_item,
        example=(
            "ValueError: Chunked MM input disabled but max_tokens_per_mm_item (2496) is larger than "
            "max_num_batched_tokens (2048). Please increase max_num_batched_tokens."
        ),
    ),
    Signature(
        name="unknown-parser",
        what="There is no such tool or reasoning parser in this image",
        pattern=(
            r"invalid (?:tool call|reasoning) parser: (?P<name>\S+)"
            r"|(?:Reasoning|Tool) parser '(?P<other>[^']*)' not found"
        ),
        remedy=f"Correct serving.args.tool_call_parser or reasoning_parser, {_IMAGE}.",
        example="KeyError: invalid tool call parser: gemma5 (chose from { gemma4,hermes,... })",
    ),
    Signature(
        name="parser-of-other-model",
        what="The reasoning parser looks for tokens missing from the model's tokenizer",
        pattern=r"reasoning parser could not locate think start/end tokens in the tokenizer",
        remedy="Set serving.args.reasoning_parser to that of the model's family (gemma4 for Gemma 4), or leave it out.",
        # vLLM reasoning/basic_parsers.py
        example=(
            "RuntimeError: DeepSeekR1ReasoningParser reasoning parser could not locate think start/end tokens in the "
            "tokenizer!"
        ),
    ),
    Signature(
        name="flag-refused",
        what="vLLM does not take this flag, or not this value",
        pattern=(
            r"error: (?:argument --?\S+: |unrecognized arguments: |ambiguous option: "
            r"|the following arguments are required)"
            r"|cannot be converted to <function loads|--enable-auto-tool-choice requires --tool-call-parser"
        ),
        remedy=f"Correct it in the profile ({_IMAGE}).",
        example=(
            "vllm serve: error: argument --kv-cache-dtype: invalid choice: 'int9' (choose from 'auto', 'bfloat16', ...)"
        ),
    ),
    Signature(
        name="variable-refused",
        what="The engine does not take this value of an environment variable",
        pattern=r"Invalid (?:boolean )?value '[^']*' for (?P<name>[A-Z]\w+)\. Valid options: (?P<valid>.{1,200})",
        remedy="Correct serving.env.{name}, or leave it out. Valid are {valid}",
        # tpu_inference envs.py; vLLM envs.py
        example="ValueError: Invalid boolean value 'yes' for NEW_MODEL_DESIGN. Valid options: '0', '1', 'true'.",
    ),
    Signature(
        name="speculation-unsupported",
        what="The engine cannot speculate by this method with this model",
        pattern=(
            r"Unsupported speculative (?:decoding )?method: '?(?P<method>\w+)"
            r"|Speculative decoding(?: method '\w+')? is not (?:yet )?supported"
            r"|The implementation of the draft model must be the same as the target model"
        ),
        remedy=(
            "TPU has ngram, eagle3, dflash and mtp. All but ngram need a draft model for this target. Correct "
            "serving.args.speculative_config (its field `model` names the draft), or leave it out."
        ),
        # tpu_inference runner/tpu_runner.py; vLLM config/speculative.py
        example="NotImplementedError: Unsupported speculative decoding method: suffix",
    ),
    Signature(
        name="adapter-missing",
        what="The folder of a LoRA adapter is not in the container",
        pattern=r"Loading lora (?P<name>\S+) failed: No adapter found for (?P<path>\S+)",
        remedy=(
            "Correct the path of {name} in serving.args.lora_modules, or mount the folder that holds {path} "
            "(serving.volumes). A name of the hub needs a way to the hub, and a token if it is private."
        ),
        # vLLM exceptions.py: LoRAAdapterNotFoundError
        example="ValueError: Loading lora sql failed: No adapter found for /lora/sql",
    ),
    Signature(
        name="adapter-rank",
        what="A LoRA adapter has a higher rank than the engine is set up for",
        pattern=r"LoRA rank (?P<rank>\d{1,6}) is greater than max_lora_rank (?P<most>\d{1,6})",
        remedy=_rank,
        # vLLM lora/peft_helper.py: validate_legal
        example="ValueError: LoRA rank 64 is greater than max_lora_rank 16.",
    ),
    Signature(
        name="kv-dtype-unknown",
        what="The TPU cannot hold a KV cache of this type",
        pattern=r"TypeError: data type '(?P<dtype>[^']*)' not understood",
        remedy="Set serving.kv_cache_dtype to auto or fp8.",
        example="TypeError: data type 'int8_per_token_head' not understood",
    ),
    Signature(
        name="mla-switches",
        what="A model with latent attention (MLA) needs two switches; one is missing",
        pattern=r"MLA models require both",
        remedy=(
            "Set both: NEW_MODEL_DESIGN: '1' in serving.env, and in serving.args.additional_config "
            "{{sharding: {{sharding_strategy: {{enable_dp_attention: true}}}}}}. One alone does not start."
        ),
        # tpu_inference 0.32 platforms/tpu_platform.py
        example=(
            "ValueError: MLA models require both the NEW_MODEL_DESIGN=1 environment variable to be set and DP "
            "attention set via: --additional_config"
        ),
    ),
    Signature(
        name="quantization-dtype",
        what="The checkpoint's quantization does not take this dtype",
        pattern=(
            r"torch\.(?P<dtype>\w+) is not supported for quantization method (?P<method>\w+)\. Supported dtypes: "
            r"\[(?:torch\.)?(?P<valid>\w+)"
        ),
        remedy=(
            "Set serving.dtype to {valid}, or leave it out, or take a newer serving.image: {method} does not take "
            "{dtype} here."
        ),
        # vllm-project/tpu-inference PR 1659
        example=(
            "Value error, torch.bfloat16 is not supported for quantization method awq. Supported dtypes: "
            "[torch.float16]"
        ),
    ),
    Signature(
        name="kv-dtype-of-checkpoint",
        what="The KV cache cannot have this type with an fp8 checkpoint",
        pattern=r"fp8_e5m2 kv-?cache is not supported with fp8 checkpoints",
        remedy="Set serving.kv_cache_dtype to fp8 or auto, instead of fp8_e5m2.",
        # vllm-project/vllm issue 8409
        example="ValueError: fp8_e5m2 kv-cache is not supported with fp8 checkpoints.",
    ),
    Signature(
        name="combination-unsupported",
        what="tpu_inference does not support this combination",
        pattern=(
            r"Unsupported kv_connector"
            r"|continue_decode is not supported with|LoRA is not supported with data parallelism"
        ),
        remedy="The line names what excludes what: drop one of the two from the profile.",
        example="ValueError: LoRA is not supported with data parallelism (DP size: 2)",
    ),
    Signature(
        name="port-taken",
        what="The server's port is taken",
        # From asyncio (uvicorn logs it), socket.bind, and docker where the container has a network of its own.
        pattern=(
            r"(?:\[Errno 98\]|ZMQError:).*[Aa]ddress already in use|port is already allocated"
            r"|failed to bind (?:host )?port.*address already in use|listen tcp\S* \S+: bind: address already in use"
        ),
        remedy="Stop the other container, or set another serving.port.",
        example="OSError: [Errno 98] Address already in use",
    ),
)
