"""A verified engine in full: its settings and its memory, planned beside measured. For display; decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.verify import Details, EngineReport, EngineSetting, ReplicaVerification, Share
from tpudeploy.sizing.numbers import parse_number

_GIB = 2**30


def details(deployment: Deployment, report: EngineReport, verification: ReplicaVerification) -> Details:
    budget, resident = deployment.budget, parse_number(report.cache.get("process_bytes"))
    return Details(
        address=verification.address,
        slice_name=verification.slice_name,
        facts=tuple(_facts(deployment, report, verification)),
        memory=tuple(memory_of(budget, report)) if isinstance(budget, HbmBudget) else (),
        process_bytes=None if resident is None else round(resident),
        silent=verification.silent,
    )


def _facts(deployment: Deployment, report: EngineReport, verification: ReplicaVerification) -> Iterator[EngineSetting]:
    settings = {s.name: s for s in verification.settings}

    def verified(*names: tuple[str, str]) -> Iterator[EngineSetting]:
        for title, name in names:
            if name in settings:
                values = settings[name].value.replace("\n", ", ")
                yield EngineSetting(name=title, planned=settings[name].declared, told=values)

    yield from verified(("model", "model"), ("served as", "served_model"))
    yield EngineSetting(name="image", planned=deployment.container.image, told="")
    yield from verified(("vLLM", "version"), ("longest request", "max_model_len"))
    if not isinstance(deployment.budget, HbmBudget):
        return
    engine = deployment.budget.engine
    yield EngineSetting(name="requests at once", planned=str(engine.max_num_seqs), told="")
    yield EngineSetting(name="tokens of a step", planned=str(engine.max_num_batched_tokens), told="")
    yield from verified(("tensor parallel", "tensor_parallel_size"), ("data parallel", "data_parallel_size"))
    compute, requested = report.log.get("dtype", ""), report.cache.get("kv_cache_dtype", "")
    # The type as the log has it; else as it was requested, where that is a type.
    kv_type = report.log.get("kv_cache_dtype", "") or (compute if requested == "auto" else requested)
    yield EngineSetting(name="weights in", planned=engine.dtype, told=report.log.get("quantization", "") or compute)
    yield EngineSetting(name="KV cache in", planned=engine.cache_dtype, told=kv_type)
    yield EngineSetting(name="computes in", planned=engine.dtype, told=compute)
    yield from verified(("block size", "block_size"), ("blocks", "num_blocks"), ("KV tokens", "kv_cache_tokens"))
    yield from verified(("bytes of a token", "kv_bytes_per_token"), ("graphs", "graphs"))


def memory_of(budget: HbmBudget, report: EngineReport) -> Iterator[Share]:
    """Yield the parts of a chip. The rest beside weights and cache is for programs, whose size no log reports."""
    chips = budget.engine.tensor_parallel
    # Used and limit of the first chip, once the cache was allocated: `hbm=[(28.76, 31.24)]`.
    used, limit = _bytes(report.log, "used_gib", unit=_GIB), _bytes(report.log, "limit_gib", unit=_GIB)
    # These count the chips of a rank together.
    weights = _bytes(report.log, "weights_bytes", chips)
    kv = _bytes(report.log, "kv_cache_bytes", chips)
    if used is not None and weights is not None:
        kv = used - weights
    blocks = parse_number(report.cache.get("num_blocks"))
    if kv is None and blocks is not None:
        # The engine's blocks may be of another size than planned; a token of the cache takes as many bytes in any.
        block_size = parse_number(report.cache.get("block_size")) or budget.block_size
        kv = round(blocks * block_size * budget.bytes_per_block / budget.block_size)
    hbm = limit if limit is not None else _bytes(report.log, "hbm_bytes", chips)
    rest = None if hbm is None or kv is None or weights is None else hbm - weights - kv
    room = budget.program_bytes_per_chip + budget.free_bytes_per_chip
    yield Share(name="weights", planned=budget.weights_bytes_per_chip, measured=weights)
    yield Share(name="KV cache", planned=budget.kv_bytes_per_chip, measured=kv)
    yield Share(name="programs need", planned=budget.program_bytes_per_chip, measured=None)
    yield Share(name="room for programs", planned=room, measured=rest)
    yield Share(name="HBM", planned=budget.hbm_bytes_per_chip, measured=hbm)


def _bytes(log: Mapping[str, str], name: str, chips: int = 1, *, unit: int = 1) -> int | None:
    value = parse_number(log.get(name))
    return None if value is None else round(value * unit / chips)
