"""Too little memory beside weights and cache for the programs that are compiled at boot."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.advice import otherwise
from tpudeploy.sizing.finding import bounded, error, gib, sized, warning, ways_out
from tpudeploy.sizing.programs import ProgramRoom, certain_bytes, program_room

CODE = "TPU2105"
EXPLANATION = Explanation(
    "Too little room for compiled programs",
    "vLLM fills hbm_utilization of HBM with weights and KV cache and reserves nothing for the programs that it "
    "compiles. They need the rest, and a boot that lacks it ends after minutes with "
    '"RuntimeProgramAllocationFailure". Measured on one v5e chip: 0.95 failed where 0.92 booted. The largest '
    "program, structured decoding, takes max_num_seqs x vocabulary x 6 bytes.",
    "serving: {hbm_utilization: 0.92}",
)

_PATH = "serving.hbm_utilization"


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    budget = bounded(deployment)
    if budget is None or not budget.holds_a_request:
        return
    room = program_room(budget.model, budget.engine)
    left = budget.free_bytes_per_chip + budget.program_bytes_per_chip
    is_exact = sized(deployment) is not None
    says = (
        f"hbm_utilization {budget.engine.utilization:g} leaves {'' if is_exact else 'at most '}{gib(left, 2)} a chip "
        "for compiled programs"
    )
    hint = _hint(deployment, budget, room)
    if left < certain_bytes(budget.model, budget.engine, budget.accelerator.generation):
        message = f"{says}, which need {gib(room.needed, 2)}: the boot would die of it."
        yield error(deployment, CODE, message, path=_PATH, hint=hint)
    elif left < room.needed:
        message = f"{says}, which are thought to need {gib(room.needed, 2)}: the boot may die of it."
        yield warning(deployment, CODE, message, path=_PATH, hint=hint)
    elif left < room.proven:
        yield warning(
            deployment, CODE, f"{says}; boots are known to succeed with {gib(room.proven, 2)}.", path=_PATH, hint=hint
        )


def _hint(deployment: Deployment, budget: HbmBudget, room: ProgramRoom) -> str:
    """Return the utilization that leaves enough, if the KV cache still holds a request then."""
    works = room.utilization(budget.hbm_bytes_per_chip)
    lower = otherwise(budget, utilization=works) if works > 0 else None
    if lower is not None and lower.holds_a_request:
        return f"hbm_utilization: {works:g} leaves enough; fewer max_num_seqs need less."
    return ways_out(deployment, budget)
