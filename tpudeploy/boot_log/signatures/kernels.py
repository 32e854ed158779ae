"""Kernels that do not compile for the chip, and layers that the engine cannot translate."""

from __future__ import annotations

import re

from tpudeploy.boot_log.settings import EngineFacts
from tpudeploy.boot_log.signatures.row import Signature

_VISION = re.compile(r"flash_attention|vision|vit\b|image", re.IGNORECASE)


def _scoped(match: re.Match[str], facts: EngineFacts) -> str:
    """Return the remedy: the kernel's own tile is too large, so that larger pages or fewer requests do not help."""
    image = "Take a newer serving.image"
    size = f" ({match['size']}, and the limit is {match['limit']})" if match["size"] and match["limit"] else ""
    if _VISION.search(match["kernel"] or ""):
        return (
            f"{image}: the attention of the vision encoder needs more than its kernel may use{size}. Or serve fewer or "
            "smaller images per request: serving.args.limit_mm_per_prompt, and serving.args.mm_processor_kwargs."
        )
    block = facts.flag("block_size")
    smaller = f"a smaller serving.block_size than {block}" if block and block > 1 else "a smaller serving.block_size"
    return f"{image}, or set {smaller}: the kernel needs more than it may use{size}. A larger one makes it worse."


ROWS: tuple[Signature, ...] = (
    Signature(
        name="kernel-vmem",
        what="A kernel needs more of the chip's vector memory (VMEM) than it may use",
        pattern=(
            r"(?:CompileTimeScopedVmemOom|Ran out of memory in memory space vmem|exceeded scoped vmem limit)"
            r"(?:.*?while allocating on stack for %?(?P<kernel>[\w.-]+))?"
            r"(?:.*?Scoped allocation with size (?P<size>[\d.]+[KMG]?) and limit (?P<limit>[\d.]+[KMG]?))?"
        ),
        remedy=_scoped,
        # vllm-project/tpu-inference PR 3407
        example=(
            "jax.errors.JaxRuntimeError: RESOURCE_EXHAUSTED: Ran out of memory in memory space vmem while allocating "
            "on stack for %flash_attention.1 = bf16[1,16,25344,80]. Scoped allocation with size 37.22M and limit "
            "32.00M exceeded scoped vmem limit by 5.22M."
        ),
    ),
    Signature(
        name="kernel-not-compiled",
        what="A kernel of the image does not compile for this chip and model",
        pattern=(
            r"Mosaic failed to compile TPU kernel|failed to compile TPU kernel|Internal TPU kernel compiler error"
            r"|Mosaic (?:does not support|lowering)|in Pallas TPU lowering|not implemented in Pallas TPU"
            r"|Unsupported lowering for TPU|only supported on TPU generations"
        ),
        remedy=(
            "Take a newer serving.image: its kernels do not support this head size, type or shape. Until there is one, "
            "serve another model, or leave out what the kernel is for (serving.kv_cache_dtype, serving.block_size, "
            "serving.args.quantization)."
        ),
        # jax-ml/jax issue 29520
        example=(
            "ValueError: Mosaic failed to compile TPU kernel: Not Implemented: The last dim size is not 128 in "
            "original base memref"
        ),
    ),
    Signature(
        name="generation-unsupported",
        what="The engine's kernels do not support this TPU generation",
        pattern=(
            r"Unsupported tpu_version=(?P<version>\w+)|Unsupported TPU (?:version|generation|type)"
            r"|TPU v[23] is not supported|Unsupported device kind"
        ),
        remedy=(
            "Set tpu.type to another generation: v5e, v5p, v6e or TPU7x. No setting helps: the attention kernel "
            "refuses this one."
        ),
        # marin-community/marin issue 7085; tpu-inference kernels/ragged_paged_attention/v3
        example="NotImplementedError: Unsupported tpu_version=4",
    ),
    Signature(
        name="core-halted",
        what="A program stopped a core of the chip: it reads or writes out of bounds, or the chip is broken",
        pattern=(
            r"program continuator has halted|[Cc]ore halted unexpectedly|TensorCore .{0,80}halted"
            r"|Accelerator device halted|on-device check-failure"
        ),
        remedy=(
            "No setting is known to cause it: take a newer serving.image. If the same profile runs elsewhere, the "
            "machine is broken: report it with `tpudeploy report-host NAME[0]`, and run `tpudeploy apply -replace "
            "ADDRESS`."
        ),
        # pytorch/xla test_pallas.py: indexes out of bounds
        example=(
            "jaxlib.xla_extension.XlaRuntimeError: FAILED_PRECONDITION: The program continuator has halted "
            "unexpectedly."
        ),
    ),
    Signature(
        name="torchax-bug",
        what="The image runs this model through torchax, which cannot translate a part of it",
        pattern=(
            r"has no attribute '_elem'|unsupported operand type\(s\) for \S+: 'Tensor' and 'Tensor'"
            r"|torchax\.\S*(?:OperatorNotFound|Error)|Operator with name \S+ has no lowering"
            r"|isinstance\(\S+, torchax|\btorchax\b.*(?:not (?:implemented|supported)|NotImplementedError)"
        ),
        remedy=(
            "It's a bug of the image and no setting avoids it. Use a newer serving.image, where the model may run"
            " natively, or serve another model."
        ),
        # vllm-project/tpu-inference issue 3350
        example="AttributeError: 'Tensor' object has no attribute '_elem'",
    ),
)
