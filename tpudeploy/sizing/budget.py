"""The content of one chip: a model, a slice and an engine's settings become an HbmBudget, or the reason why not."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tpudeploy import catalog
from tpudeploy.catalog import engines
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.domain.budget import EngineSettings, HbmBudget, Unsized
from tpudeploy.domain.model import Implementation, LanguageModel
from tpudeploy.sizing.graphs import compile_plan
from tpudeploy.sizing.kv import KvLayout, block_size, blocks_per_request, layout, num_blocks, state_bytes_per_chip
from tpudeploy.sizing.programs import knows_backbone, program_room
from tpudeploy.sizing.stages import stages
from tpudeploy.sizing.starts import predict_start
from tpudeploy.sizing.weights import weights_bytes_per_chip

# The generations of which boot logs agree with this arithmetic.
_MEASURED = ("v5e", "v6e")


def compute_budget(model: LanguageModel, accelerator: AcceleratorType, engine: EngineSettings) -> HbmBudget | Unsized:
    """Return Unsized where the heads do not divide, or the slice has fewer devices than the engine needs.

    For a generation whose limit is not recorded, the memory is an upper bound, and so is what the budget holds.
    """
    because = impossible(model, accelerator, engine)
    if because:
        return Unsized(because=because, is_impossible=True)
    if model.answer is not None and engine.tensor_parallel not in model.answer.weights:
        counts = ", ".join(map(str, sorted(model.answer.weights)))
        return Unsized(
            because=f"the engine was asked about {model.name} on {counts} chips, not on {engine.tensor_parallel}"
        )
    hbm = catalog.generation(accelerator.generation).most_bytes
    block = block_size(engine)
    weights, kv, blocks = min(
        (_contents(part, engine, hbm_bytes=hbm, block_size=block) for part in stages(model, engine.pipeline_parallel)),
        key=lambda contents: (contents.blocks, -sum(contents.weights.values())),
    )
    request_blocks = blocks_per_request(kv, engine, block, engine.max_model_len)
    plan = compile_plan(engine)
    return HbmBudget(
        model=model,
        accelerator=accelerator,
        engine=engine,
        hbm_bytes_per_chip=hbm,
        weights=weights,
        bytes_per_block=kv.bytes_per_block,
        state_bytes_per_chip=state_bytes_per_chip(
            engine,
            hbm_bytes=hbm,
            weights_bytes=sum(weights.values()),
            bytes_per_block=kv.bytes_per_block,
            states=model.states,
        ),
        blocks_per_request=request_blocks,
        block_size=block,
        num_blocks=blocks,
        # int(concurrency x max_model_len), as vLLM logs it (kv_cache_utils.py), for each rank.
        kv_cache_tokens=int(blocks / request_blocks * engine.max_model_len) * engine.data_parallel
        if request_blocks
        else 0,
        program_bytes_per_chip=program_room(model, engine).needed,
        compilation=plan,
        start=predict_start(model, plan),
        estimates=tuple(_estimates(model, accelerator, engine)),
    )


class _Contents(NamedTuple):
    """What a chip of one pipeline stage holds: its weights by group, the shape of its cache, and the blocks of it."""

    weights: Mapping[str, int]
    kv: KvLayout
    blocks: int


def _contents(part: LanguageModel, engine: EngineSettings, *, hbm_bytes: int, block_size: int) -> _Contents:
    weights = weights_bytes_per_chip(part, engine)
    kv = layout(part, engine, block_size)
    blocks = num_blocks(
        engine,
        hbm_bytes=hbm_bytes,
        weights_bytes=sum(weights.values()),
        bytes_per_block=kv.bytes_per_block,
        states=part.states,
    )
    return _Contents(weights, kv, blocks)


def impossible(
    model: LanguageModel, accelerator: AcceleratorType, engine: EngineSettings, *, has_layout: bool = True
) -> str:
    """Return why the engine would not even start with this parallelism, or "".

    Without `has_layout` something else decides where KV heads and experts lie; vLLM divides the heads in any case.
    """
    tensor, noun = engine.tensor_parallel, f"{accelerator.device_noun}s"
    requested = tensor * engine.data_parallel * engine.pipeline_parallel
    if requested > accelerator.devices:
        return f"{requested} {noun} are requested and {accelerator.name} has {accelerator.devices}"
    if model.answer is not None and tensor in model.answer.refusals:
        return f"the engine refuses {tensor} {noun}: {model.answer.refusals[tensor]}"
    if engine.pipeline_parallel > model.layers:
        return f"pipeline_parallel_size {engine.pipeline_parallel} exceeds its {model.layers} layers"
    if model.heads % tensor:
        return f"tensor_parallel_size {tensor} does not divide the {model.heads} attention heads"
    if not has_layout or model.answer is not None:
        return ""
    for heads in model.kv_heads:
        if heads % tensor and tensor % heads:
            return f"tensor_parallel_size {tensor} neither divides the {heads} KV heads nor is a multiple of them"
    experts = model.experts
    if experts is not None and (experts.count if engine.is_expert_parallel else experts.width) % tensor:
        return f"tensor_parallel_size {tensor} does not divide its experts"
    return ""


def _estimates(model: LanguageModel, accelerator: AcceleratorType, engine: EngineSettings) -> Iterator[str]:
    """Yield each figure that depends on something unverified, and why."""
    yield from model.unverified
    if accelerator.generation not in _MEASURED:
        yield f"weights, blocks and programs: checked with boots of {' and '.join(_MEASURED)} alone"
    if accelerator.hosts > 1:
        yield "weights, blocks and start times: arithmetic for several hosts, of which no boot was measured"
    if engine.pipeline_parallel > 1:
        yield "weights and blocks: which layers a stage has is vLLM's rule, not compared with a boot"
    yield "num_blocks: 0.4 to 5 MB a chip of the runtime's own are not modelled; measured boots agree within 0.03 %"
    yield "start times: measured on one model and chip, carried over to others"
    if model.vision is not None and model.vision.split and model.vision.heads % engine.tensor_parallel:
        heads, chips = model.vision.heads, engine.tensor_parallel
        yield f"weights: whether a vision tower of {heads} heads loads on {chips} chips is not verified"
    if model.implementation is Implementation.TORCHAX:
        yield "program_bytes_per_chip: on torchax, from one report of another chip"
    elif knows_backbone(engine):
        libtpu = engines.release(engine.release).libtpu
        yield f"program_bytes_per_chip: by what the compiler of libtpu {libtpu} says; no boot with it was measured"
    if engine.speculation is not None:
        yield "program_bytes_per_chip: with speculation, from the arrays' shapes, not measured"
        yield "graphs: with speculation, from the source; no boot log shows them, and some may be left out"
    if engine.blocks_override is not None:
        yield "num_blocks: taken from num_gpu_blocks_override, whether or not the memory is there"
