"""A block size written by hand that overrides the platform's guard."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import sized, warning
from tpudeploy.core.sizing.blocks import guarded
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic

CODE = "TPU2111"
MEANING = """block_size bypasses the guard of scalar memory

Block tables live in one MiB of scalar memory. Left alone, the platform chooses blocks large enough for them; a block
size that is written is taken as it is, and too small a one ends in "Ran out of memory in memory space smem".

Leave block_size out, or write at least the size that the message names."""


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = sized(deployment)
    if budget is None or budget.engine.block_size is None:
        return
    least = guarded(budget.engine)
    if budget.engine.block_size < least:
        engine = budget.engine
        message = (
            f"block_size {engine.block_size} is below the {least} that {engine.max_num_seqs} requests of "
            f"{engine.max_model_len:,} tokens need: their block tables may not fit in scalar memory."
        )
        yield warning(deployment, CODE, message, path="serving.block_size", hint="Leave it out: vLLM then chooses.")
