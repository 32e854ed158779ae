"""A block size written by hand that overrides the platform's guard."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.blocks import guarded
from tpudeploy.sizing.finding import engine_of, warning

CODE = "TPU2111"
EXPLANATION = Explanation(
    "block_size bypasses the guard of scalar memory",
    "Block tables have to fit into one MiB of scalar memory. If the profile names no block_size, the platform "
    "chooses blocks that are large enough. A block_size in the profile is used as it is, and a boot with one that "
    'is too small ends with "Ran out of memory in memory space smem". Leave it out, or write at least the size '
    "that the message names.",
    "serving: {block_size: 128}",
)


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    engine = engine_of(deployment)
    if engine is None or engine.block_size is None:
        return
    least = guarded(engine)
    if engine.block_size < least:
        message = (
            f"block_size {engine.block_size} is below the {least} that {engine.max_num_seqs} requests of "
            f"{engine.max_model_len:,} tokens need: their block tables may not fit in scalar memory."
        )
        yield warning(deployment, CODE, message, path="serving.block_size", hint="Leave it out: vLLM then chooses.")
