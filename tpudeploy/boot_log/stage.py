"""Estimate the progress of a boot and its remaining time, from the machine's report and the plan of its start.

A start takes as long as the plan says (sizing/starts.py) until graphs were compiled: from then on the remaining time of
the plan is scaled by the pace of this start so far, which a warm compile cache changes too.
"""

from __future__ import annotations

import re

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.compilation import PredictedStart
from tpudeploy.domain.slices import BootPhase, BootReport
from tpudeploy.domain.status import BootStage

WEIGHTS, COMPILING, WARM_UP = "weights", "compiling", "warm-up"
UNREPORTED = "unreported"
PER_CENT = 100
# The stage of each of the engine's milestones (templates/boot/server.sh), the latest stage first.
_MILESTONES = (
    (WARM_UP, re.compile(r"^init engine|startup complete")),
    (
        COMPILING,
        re.compile(r"^Compiling graph|^Precompile|^Warm-up call|KV cache size|^Init kv-cache|^Memory statistics"),
    ),
    (WEIGHTS, re.compile(r"downloading weights|Checkpoint size|Loading safetensors")),
)
_GRAPH = re.compile(r"^Compiling graph (\d+)$")
_PERCENTAGE = re.compile(r"\b(\d{1,3}) ?%")
# Before so much of the plan has passed, the pace of this start says little.
_LEAST_SECONDS = 60.0
_FASTEST, _SLOWEST = 0.1, 5.0


def stage(report: BootReport, budget: HbmBudget | Unsized, *, now: float) -> BootStage:
    """Return the stage. `budget` is of the deployment that boots. `now` is in seconds since the epoch."""
    name = _name(report)
    count, total = _count(report, name, budget)
    if isinstance(budget, Unsized) or report.phase in {BootPhase.SERVING, BootPhase.FAILED}:
        return BootStage(name=name, done=count, of=total)
    ranks = budget.engine.data_parallel
    return BootStage(
        name=name,
        done=count,
        of=total,
        left_seconds=_seconds_left(report, name, None if count is None else -(-count // ranks), budget.start, now),
        is_least=report.phase is not BootPhase.STARTING,
    )


def unreported(budget: HbmBudget | Unsized, *, granted_at: float, now: float) -> BootStage | None:
    """Return the stage of a machine without reports (guest attributes may be refused): by the plan, since the grant.

    None where there is no plan, or where its time has passed.
    """
    if isinstance(budget, Unsized):
        return None
    remaining = budget.start.cold_seconds - max(0.0, now - granted_at)
    return BootStage(name=UNREPORTED, left_seconds=remaining, is_least=True) if remaining > 0 else None


def _name(report: BootReport) -> str:
    if report.phase is not BootPhase.STARTING:
        return str(report.phase)
    return next((name for name, says in _MILESTONES if says.search(report.detail)), str(report.phase))


def _count(report: BootReport, name: str, budget: HbmBudget | Unsized) -> tuple[int | None, int | None]:
    graph = _GRAPH.search(report.detail)
    if graph is not None:
        # Each data-parallel rank is a process that compiles its own.
        planned = None if isinstance(budget, Unsized) else budget.compilation.total * budget.engine.data_parallel
        count = int(graph[1])
        return count, planned if planned is not None and planned >= count else None
    if name == BootPhase.IMAGE and report.pulled is not None:
        return min(report.pulled, PER_CENT), PER_CENT
    share = _PERCENTAGE.search(report.detail) if name == WEIGHTS else None
    return (min(int(share[1]), PER_CENT), PER_CENT) if share is not None else (None, None)


def _seconds_left(report: BootReport, name: str, graphs: int | None, plan: PredictedStart, now: float) -> float:
    """Return the seconds from where it is in the plan to the plan's end.

    The stage says between which two points of the plan it is, and the clock where between them. Where the clock is
    outside, this start is slower or faster than the plan by that, and so will be the rest of its compilation.
    """
    if name == WARM_UP:
        return plan.ready_seconds
    begins, ends = _bounds(name, graphs, plan)
    is_running = report.phase is BootPhase.STARTING  # else `started` may be an earlier container's
    took = max(0.0, now - report.started) if is_running and report.started is not None else None
    if took is None:
        return plan.cold_seconds - begins
    reached = min(max(begins, took), ends)
    pace = _pace(took, reached) if name == COMPILING else 1.0
    return (plan.cold_seconds - plan.ready_seconds - reached) * pace + plan.ready_seconds


def _bounds(name: str, graphs: int | None, plan: PredictedStart) -> tuple[float, float]:
    """Return the seconds of the plan at which a stage begins and ends.

    The engine may log at once that all graphs of a group begin, and then compile them in silence: the measured boot
    did so with those of the backbone.
    """
    loaded = plan.process_seconds + plan.weights_seconds
    if name == COMPILING:
        count = graphs or 0
        return loaded + plan.compile_seconds(_begun_before(count, plan)), loaded + plan.compile_seconds(count)
    return (plan.process_seconds, loaded) if name == WEIGHTS else (0.0, plan.process_seconds)


def _begun_before(graphs: int, plan: PredictedStart) -> int:
    """Return the number of graphs in the groups before that of graph number `graphs`."""
    before = 0
    for group in plan.groups:
        if before + group.count >= graphs:
            return before
        before += group.count
    return before


def _pace(took: float, planned: float) -> float:
    """Return the time that this start took so far, divided by the planned time."""
    return 1.0 if planned < _LEAST_SECONDS else min(max(took / planned, _FASTEST), _SLOWEST)
