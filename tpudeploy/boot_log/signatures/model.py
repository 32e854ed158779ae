"""Checkpoints that the engine does not know, or cannot load."""

from __future__ import annotations

import re

from tpudeploy.boot_log.settings import EngineFacts
from tpudeploy.boot_log.signatures.row import Signature
from tpudeploy.catalog import engines


def _fault(match: re.Match[str], _: EngineFacts) -> str:
    """Return how to avoid a known fault of some releases. The class that fails names it."""
    name = (match["name"] or match["config"]).removesuffix("Config")
    fault = next(each for each in engines.FAULTS if name in (each.word, each.architecture.removesuffix("ForCausalLM")))
    return f"A fault of tpu-inference {fault.first} to {fault.last} ({fault.source}): {fault.fix}."


ROWS: tuple[Signature, ...] = (
    Signature(
        name="known-fault",
        what="This release of the engine has a known fault",
        pattern=(
            r"'(?P<name>TPUConnectorHMA)' object has no attribute '_kv_transfer_config'"
            r"|'(?P<config>Qwen2Config)' object has no attribute 'text_config'"
        ),
        remedy=_fault,
        # llm-d pull request 2533; tpu_inference models/jax/qwen2.py
        example="AttributeError: 'TPUConnectorHMA' object has no attribute '_kv_transfer_config'",
    ),
    Signature(
        name="model-type-unknown",
        what="The image's transformers does not know this type of model",
        pattern=(
            r"but Transformers does not recognize this architecture|Unrecognized model in "
            r"|Should have a `model_type` key"
            r"|Unrecognized configuration class"
        ),
        remedy=(
            "Take a newer serving.image: the model is newer than its transformers. If config.json was edited or comes "
            "from another library, take the original checkpoint."
        ),
        # transformers models/auto/configuration_auto.py
        example=(
            "ValueError: The checkpoint you are trying to load has model type `gemma9` but Transformers does not "
            "recognize this architecture. This could be because of an issue with the checkpoint, or because your "
            "version of Transformers is out of date."
        ),
    ),
    Signature(
        name="architecture-unsupported",
        what="The engine does not serve this architecture",
        pattern=(
            r"Model architectures? (?P<names>\[[^\]]*\]|\S+) (?:are not supported|is not supported|was supported"
            r"|failed to be inspected)|No model architectures are specified|Cannot find model module\. "
            r"|The Transformers implementation of \S+ is not compatible with vLLM"
        ),
        remedy=("Take a newer serving.image, or another model: `tpudeploy size` names the families known to run."),
        # vLLM model_executor/models/registry.py
        example=(
            "ValueError: Model architectures ['Gemma9ForCausalLM'] are not supported for now. Supported architectures: "
            "dict_keys(['AfmoeForCausalLM', ...])"
        ),
    ),
    Signature(
        name="remote-code",
        what="The model brings its own code; vLLM runs it only if the profile allows it",
        pattern=(
            r"requires you to execute the configuration file in that repo|trust_remote_code=True"
            r"|contains custom code which must be executed"
        ),
        remedy=(
            "Read the code. If you trust it, set serving.args.trust_remote_code; otherwise use a model without "
            "its own code."
        ),
        # vLLM transformers_utils/config.py
        example=(
            "RuntimeError: Failed to load the model config. If the model is a custom model not yet available in the "
            "HuggingFace transformers library, consider setting `trust_remote_code=True` in LLM or using the "
            "`--trust-remote-code` flag in the CLI."
        ),
    ),
    Signature(
        name="tokenizer-unknown",
        what="The image's transformers does not know this tokenizer",
        pattern=(
            r"Tokenizer class \S+ does not exist or is not currently imported"
            r"|data did not match any variant of untagged"
        ),
        remedy=(
            "Take a newer serving.image: the tokenizer is newer than its transformers. Or name another one in "
            "serving.args.tokenizer."
        ),
        # transformers models/auto/tokenization_auto.py
        example="ValueError: Tokenizer class Gemma9Tokenizer does not exist or is not currently imported.",
    ),
    Signature(
        name="tokenizer-missing",
        what="The checkpoint has no tokenizer",
        pattern=r"Couldn't instantiate the backend tokenizer from one of|Can't load tokenizer for '",
        remedy="Name one in serving.args.tokenizer, or use a checkpoint with its own.",
        example="ValueError: Couldn't instantiate the backend tokenizer from one of: (1) a `tokenizers` library ...",
    ),
    Signature(
        name="checkpoint-mismatch",
        what="The checkpoint's tensors are not those the loader expects",
        pattern=(
            r"There is no module or parameter named|Missing .*k_norm\.weight|Attempted to load weight \("
            r"|Failed to load weight '[^']*' with shape|Shape mismatch (?:in non-vocab layer|when loading weight)"
            r"|size mismatch for \S+|KeyError: '[\w.]*\blayers\.\d+\.[\w.]+'"
        ),
        remedy=(
            "An export for quantization-aware training is laid out differently: take the plain checkpoint, or a newer "
            "serving.image."
        ),
        example="ValueError: There is no module or parameter named 'layers.0.self_attn.k_norm' in Gemma4ForCausalLM",
    ),
    Signature(
        name="quantization-unsupported",
        what="tpu_inference cannot run this quantization",
        pattern=(
            r"Unknown quantization method|quantization method \S+ is not (?:currently )?supported"
            r"|quantization is currently not supported in tpu|quantization method not supported"
            r"|compressed-tensors scheme for .* is not yet supported in the JAX path"
        ),
        remedy=(
            "Take a checkpoint in bfloat16, or one for tpu_inference: compressed-tensors in fp8 or int8, or awq "
            "with a newer serving.image. gptq and bitsandbytes are for GPUs."
        ),
        example="ValueError: awq quantization is currently not supported in tpu.",
    ),
    Signature(
        name="shared-memory",
        what="The container's shared memory (/dev/shm) is too small",
        pattern=(
            r"[Nn]o space left on device[^\n]*/dev/shm|/dev/shm[^\n]*[Nn]o space left on device"
            r"|unable to write to file </torch_|^Bus error\b|[Bb]us error encountered in worker"
            r"|insufficient shared memory \(shm\)|Fatal Python error: Bus error"
        ),
        remedy="Raise serving.shm_size, or leave it out.",
        # vllm-project/vllm issue 8031
        example="OSError: [Errno 28] No space left on device: '/dev/shm/psm_1a2b3c4d'",
    ),
    Signature(
        name="disk-full",
        what="The machine's disk is full",
        pattern=r"[Nn]o space left on device|Not enough free disk space to download",
        remedy=(
            "Raise tpu.boot_disk_size; it can be set only when a slice is created. /dev/shm is memory: weights kept "
            "there take the machine's RAM."
        ),
        example="OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/...'",
    ),
)
