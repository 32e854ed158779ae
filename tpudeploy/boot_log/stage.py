"""What a machine says of its boot, and the plan of its start → how far it is, and how long it should still take.

A start takes what the plan says (sizing/starts.py), until graphs were compiled: from then on what is left is
the plan's, times what this start took so far by what it should have. A warm compile cache shows in that, too.
"""

from __future__ import annotations

import re

from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.compilation import Start
from tpudeploy.domain.slices import BootPhase, BootReport
from tpudeploy.domain.status import Stage

WEIGHTS, COMPILING, WARM_UP = "weights", "compiling", "warm-up"
UNREPORTED = "unreported"
PER_CENT = 100
# What the engine's milestones (templates/boot/server.sh) stand for, the latest stage first.
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
# Before so much of the plan has passed, how fast this start is says little.
_LEAST_SECONDS = 60.0
_FASTEST, _SLOWEST = 0.1, 5.0


def stage(report: BootReport, budget: HbmBudget | Unsized, *, now: float) -> Stage:
    """`budget` is of the deployment that boots. `now` in seconds since the epoch."""
    name = _name(report)
    done, of = _count(report, name, budget)
    if isinstance(budget, Unsized) or report.phase in {BootPhase.SERVING, BootPhase.FAILED}:
        return Stage(name=name, done=done, of=of)
    ranks = budget.engine.data_parallel
    return Stage(
        name=name,
        done=done,
        of=of,
        left_seconds=_left(report, name, None if done is None else -(-done // ranks), budget.start, now),
        is_least=report.phase is not BootPhase.STARTING,
    )


def unreported(budget: HbmBudget | Unsized, *, granted_at: float, now: float) -> Stage | None:
    """Of a machine that says nothing of itself, as where guest attributes are refused: the plan alone, since the grant.

    None where there is no plan, or where it has passed.
    """
    if isinstance(budget, Unsized):
        return None
    left = budget.start.cold_seconds - max(0.0, now - granted_at)
    return Stage(name=UNREPORTED, left_seconds=left, is_least=True) if left > 0 else None


def _name(report: BootReport) -> str:
    if report.phase is not BootPhase.STARTING:
        return str(report.phase)
    return next((name for name, says in _MILESTONES if says.search(report.detail)), str(report.phase))


def _count(report: BootReport, name: str, budget: HbmBudget | Unsized) -> tuple[int | None, int | None]:
    graph = _GRAPH.search(report.detail)
    if graph is not None:
        # Each data-parallel rank is a process that compiles its own.
        planned = None if isinstance(budget, Unsized) else budget.compilation.total * budget.engine.data_parallel
        done = int(graph[1])
        return done, planned if planned is not None and planned >= done else None
    if name == BootPhase.IMAGE and report.pulled is not None:
        return min(report.pulled, PER_CENT), PER_CENT
    share = _PERCENTAGE.search(report.detail) if name == WEIGHTS else None
    return (min(int(share[1]), PER_CENT), PER_CENT) if share is not None else (None, None)


def _left(report: BootReport, name: str, graphs: int | None, plan: Start, now: float) -> float:
    """Seconds from where it is in the plan to the plan's end.

    The stage says between which two points of the plan it is, and the clock where between them. Where the clock is
    outside, this start is slower or faster than the plan by so much, and so will be what it has still to compile.
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


def _bounds(name: str, graphs: int | None, plan: Start) -> tuple[float, float]:
    """Seconds of the plan at which a stage begins and ends.

    Of a group of graphs the engine may say that it begins all at once, and then compile them in silence: the measured
    boot did so with those of the backbone.
    """
    loaded = plan.process_seconds + plan.weights_seconds
    if name == COMPILING:
        done = graphs or 0
        return loaded + plan.compile_seconds(_begun_before(done, plan)), loaded + plan.compile_seconds(done)
    return (plan.process_seconds, loaded) if name == WEIGHTS else (0.0, plan.process_seconds)


def _begun_before(graphs: int, plan: Start) -> int:
    """How many graphs stand in the groups before that of graph number `graphs`."""
    before = 0
    for group in plan.groups:
        if before + group.count >= graphs:
            return before
        before += group.count
    return before


def _pace(took: float, planned: float) -> float:
    """What this start took so far, by what it should have taken."""
    return 1.0 if planned < _LEAST_SECONDS else min(max(took / planned, _FASTEST), _SLOWEST)
