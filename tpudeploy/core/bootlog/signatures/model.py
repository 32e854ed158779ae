"""Checkpoints that cannot be had, or not be loaded."""

from __future__ import annotations

from tpudeploy.core.bootlog.signatures.row import Signature, always

ROWS: tuple[Signature, ...] = (
    Signature(
        name="model-gated",
        what="The model's owner does not let this token in",
        pattern=(
            r"GatedRepoError|You are trying to access a gated repo|Cannot access gated repo"
            r"|you are not in the authorized list"
        ),
        remedy=always(
            "Accept the licence on the model's page with the account whose token this is, and name the token in "
            "secrets.HF_TOKEN; `tpudeploy doctor` checks that it can be read."
        ),
        example=(
            "huggingface_hub.errors.GatedRepoError: 401 Client Error. Cannot access gated repo for url "
            "https://huggingface.co/google/gemma-4-E2B-it/resolve/main/config.json."
        ),
    ),
    Signature(
        name="model-not-found",
        what="There is no such model, or it may not be downloaded",
        pattern=(
            r"HFValidationError: Repo id must be in the form|outgoing traffic has been disabled|RepositoryNotFoundError"
        ),
        remedy=always(
            "Correct model.id; a path must be absolute and exist in the container. With "
            "HF_HUB_OFFLINE the weights must "
            "lie there already."
        ),
        example=(
            "huggingface_hub.errors.HFValidationError: Repo id must be in the form 'repo_name' or 'namespace/repo_name'"
        ),
    ),
    Signature(
        name="image-missing",
        what="The registry has no such image",
        pattern=r"manifest unknown|manifest for \S+ not found|repository does not exist",
        remedy=always(
            "See serving.image for its name and tag. Where the tag is right, what it was pinned to is gone from the "
            "registry: `tpudeploy plan --pin` looks up what it is now."
        ),
        example="The image cannot be pulled: manifest for vllm/vllm-tpu@sha256:0123 not found: manifest unknown",
    ),
    Signature(
        name="tokenizer-missing",
        what="The checkpoint has no tokenizer",
        pattern=r"Couldn't instantiate the backend tokenizer from one of",
        remedy=always("Name one in serving.args.tokenizer, or take a checkpoint that brings its own."),
        example="ValueError: Couldn't instantiate the backend tokenizer from one of: (1) a `tokenizers` library ...",
    ),
    Signature(
        name="checkpoint-mismatch",
        what="The checkpoint's names are not those the loader expects",
        pattern=r"There is no module or parameter named|Missing .*k_norm\.weight",
        remedy=always(
            "An export for quantization-aware training is laid out differently: take the plain checkpoint, or a newer "
            "serving.image."
        ),
        example="ValueError: There is no module or parameter named 'layers.0.self_attn.k_norm' in Gemma4ForCausalLM",
    ),
    Signature(
        name="quantization-unsupported",
        what="tpu_inference cannot run this quantization",
        pattern=(
            r"Unknown quantization method|quantization is currently not supported in tpu"
            r"|quantization method not supported|compressed-tensors scheme for .* is not yet supported in the JAX path"
        ),
        remedy=always("Take a checkpoint in bfloat16, or compressed-tensors in fp8 (w8a8)."),
        example="ValueError: awq quantization is currently not supported in tpu.",
    ),
    Signature(
        name="disk-full",
        what="The machine's disk is full",
        pattern=r"No space left on device",
        remedy=always(
            "Raise tpu.boot_disk_size; it can only be set when a slice is made. /dev/shm is memory: weights kept there "
            "take the machine's RAM."
        ),
        example="OSError: [Errno 28] No space left on device: '/root/.cache/huggingface/hub/...'",
    ),
)
