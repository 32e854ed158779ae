"""A profile's size by the engine's own answer, and with the program room of a file of compiled graphs."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from dataclasses import replace
from typing import Any

from tpudeploy import loading
from tpudeploy.catalog import accelerator_type
from tpudeploy.catalog.families import answers
from tpudeploy.domain.boots import BootRecord
from tpudeploy.domain.budget import HbmBudget, Unsized
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.errors import QueryFailed, UsageError
from tpudeploy.domain.pins import Pins
from tpudeploy.features.compile import program_bytes
from tpudeploy.features.compile.compiled import Compiled
from tpudeploy.features.compile.rows import compact
from tpudeploy.features.compile.service import arguments, engine_answer
from tpudeploy.loading import OneProfile
from tpudeploy.operations.size import Size, predict_size
from tpudeploy.sizing.budget import compute_budget


def size_with(
    profile: OneProfile,
    *,
    pins: Pins,
    boots: Iterable[BootRecord],
    python: str,
    compiled: Compiled | None,
    seconds: float,
) -> Size:
    """Return the size, the weights and the cache by the engine with `python`, the programs by `compiled`.

    Raise as `service.compile_graphs`, and `errors.UsageError` for a file that is for another slice or other settings.
    """
    size = predict_size(profile, pins=pins, boots=boots)
    budget = _by_engine(profile, pins, python, seconds) if python else size.budget
    if compiled is not None:
        deployment = loading.sized(loading.judge(loading.profile(profile), pins), pins)
        budget = with_programs(budget, compiled, deployment)
    return replace(size, budget=budget)


def _by_engine(profile: OneProfile, pins: Pins, python: str, seconds: float) -> HbmBudget | Unsized:
    deployment, answer = engine_answer(profile, pins=pins, python=python, seconds=seconds)
    engine = deployment.budget.engine
    assert engine is not None  # or the engine was not asked
    source = {"id": deployment.model_id, "settings": {}, "source": "the engine's answer", "config": answer["config"]}
    row = compact(source, {engine.tensor_parallel: {"answer": answer}}, answer["parameters"])
    if "weights" not in row:
        raise QueryFailed(f"The engine refuses it: {row['refusal']}")
    model = answers.model_of({**row, "release": f"tpu-inference {answer['engine']}"})
    budget = compute_budget(model, deployment.accelerator, engine)
    if isinstance(budget, HbmBudget) and "num_blocks" in answer and answer["num_blocks"] != budget.num_blocks:
        note = f"num_blocks: the engine's own code makes {answer['num_blocks']:,} of them"
        return replace(budget, num_blocks=answer["num_blocks"], estimates=(*budget.estimates, note))
    return budget


def with_programs(budget: HbmBudget | Unsized, compiled: Compiled, deployment: Deployment) -> HbmBudget:
    """Return the budget with the room that the compiled programs need. Raise `errors.UsageError` if they are others."""
    if not isinstance(budget, HbmBudget):
        raise UsageError(f"The programs are known, but not the rest: cannot size this, because {budget.because}.")
    _refuse_others(budget, compiled, deployment)
    extent = "all" if compiled.is_complete else "only a part"
    by = f"tpu-inference {compiled.engine} and libtpu {compiled.libtpu}"
    note = f"program_bytes_per_chip: compiled without a chip by {by}, {extent} of the graphs ({len(compiled.graphs)})"
    others = (each for each in budget.estimates if not each.startswith("program_bytes_per_chip"))
    room = program_bytes(compiled.graphs)
    # Those that are not compiled yet may be larger: the backbone of the largest step comes late.
    room = room if compiled.is_complete else max(room, budget.program_bytes_per_chip)
    return replace(budget, program_bytes_per_chip=room, estimates=(*others, note, *_decode(compiled)))


def _refuse_others(budget: HbmBudget, compiled: Compiled, deployment: Deployment) -> None:
    """Raise `errors.UsageError` for programs of another slice, step, model, split or release."""
    engine, settings = budget.engine, compiled.settings
    words = "{} with {} requests and {} tokens a step"
    here = (budget.accelerator.name, engine.max_num_seqs, engine.max_num_batched_tokens)
    there = (compiled.accelerator_type, settings.get("max_num_seqs"), settings.get("max_num_batched_tokens"))
    pairs = (
        (words.format(*there), words.format(*here)),
        (compiled.model, budget.model.name),
        # Files of earlier versions do not name the split: it is that of all devices.
        (
            f"{settings.get('tensor_parallel_size', budget.accelerator.devices)} chips",
            f"{engine.tensor_parallel} chips",
        ),
        (f"tpu-inference {compiled.engine}", f"tpu-inference {engine.release or compiled.engine}"),
        (f"a KV cache in {settings.get('kv_cache_dtype')}", f"a KV cache in {engine.kv_dtype}"),
        (_flags(settings), _flags(arguments(deployment, engine))),
    )
    for theirs, ours in pairs:
        if theirs != ours:
            hint = "Compile this profile: `tpudeploy compile`."
            raise UsageError(f"{compiled.path} is for {theirs}, not {ours}.", hint=hint)


def _flags(settings: Mapping[str, Any]) -> str:
    return " ".join(settings.get("words", ())) or "no other flags of the engine"


def _decode(compiled: Compiled) -> tuple[str, ...]:
    """Return the compiler's own estimate of a decode step, with what it leaves out."""
    kind = accelerator_type(compiled.accelerator_type)
    steps = [graph for graph in compiled.graphs if "backbone" in graph.graph and graph.cycles]
    if kind is None or not steps or kind.generation not in _GHZ:
        return ()
    least = min(steps, key=lambda graph: graph.cycles)
    milliseconds = least.cycles / _GHZ[kind.generation] / 1e6
    gap = "without attention kernels and the host; one boot of v6e took 26 % more with one user, and the gap grows"
    return (f"decode: the compiler estimates {milliseconds:.2f} ms for the smallest step, {gap}",)


# Clock rates that follow from the peak arithmetic of catalog/generations.py: 197 TFLOPs are 4 x 128 x 128 x 2 x 1.5
# GHz, 918 are 4 x 256 x 256 x 2 x 1.75. With them, measured decodes: v6e 3.75 ms estimated, 4.72 measured.
_GHZ = {"v5e": 1.5, "v6e": 1.75}
