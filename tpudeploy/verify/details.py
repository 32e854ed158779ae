"""An attested engine, in full: its settings and its memory, planned beside measured. Decides nothing."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.domain.attestation import Attestation, Told
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.details import Details, Fact, Share
from tpudeploy.sizing.numbers import parse_number

_GIB = 2**30


def details(of: Deployment, told: Told, found: Attestation) -> Details:
    resident = parse_number(told.cache.get("process_bytes"))
    return Details(
        address=found.address,
        slice_name=found.slice_name,
        facts=tuple(_facts(of, told, found)),
        memory=tuple(_memory(of.budget, told)) if isinstance(of.budget, HbmBudget) else (),
        process_bytes=None if resident is None else round(resident),
        silent=found.silent,
    )


def _facts(of: Deployment, told: Told, found: Attestation) -> Iterator[Fact]:
    known = {s.name: s for s in found.settings}

    def attested(name: str, row: str) -> Iterator[Fact]:
        if row in known:
            yield Fact(name=name, planned=known[row].declared, told=known[row].value.replace("\n", ", "))

    yield from attested("model", "model")
    yield from attested("served as", "served_model")
    yield Fact(name="image", planned=of.container.image, told="")
    yield from attested("vLLM", "version")
    yield from attested("longest request", "max_model_len")
    if not isinstance(of.budget, HbmBudget):
        return
    engine = of.budget.engine
    yield Fact(name="requests at once", planned=str(engine.max_num_seqs), told="")
    yield Fact(name="tokens of a step", planned=str(engine.max_num_batched_tokens), told="")
    yield from attested("tensor parallel", "tensor_parallel_size")
    yield from attested("data parallel", "data_parallel_size")
    compute = told.log.get("dtype", "")
    yield Fact(name="weights in", planned=engine.dtype, told=told.log.get("quantization", "") or compute)
    yield Fact(name="KV cache in", planned=engine.cache_dtype, told=_kv_type(told, compute))
    yield Fact(name="computes in", planned=engine.dtype, told=compute)
    yield from attested("block size", "block_size")
    yield from attested("blocks", "num_blocks")
    yield from attested("KV tokens", "kv_cache_tokens")
    yield from attested("bytes of a token", "kv_bytes_per_token")
    yield from attested("graphs", "graphs")


def _kv_type(told: Told, compute: str) -> str:
    """As it is laid out, by the log; else as it was asked for, where that is a type."""
    asked = told.cache.get("kv_cache_dtype", "")
    return told.log.get("kv_cache_dtype", "") or (compute if asked == "auto" else asked)


def _memory(budget: HbmBudget, told: Told) -> Iterator[Share]:
    """What is left beside weights and cache is for compiled programs, of which no log tells the size."""
    used, limit = _after(told.log)
    chips = budget.engine.tensor_parallel
    weights = _each(told.log, "weights_bytes", chips)
    kv = used - weights if used is not None and weights is not None else _each(told.log, "kv_cache_bytes", chips)
    if kv is None:
        blocks = parse_number(told.cache.get("num_blocks"))
        # The engine's blocks may be of another size than planned; a token of the cache takes as many bytes in any.
        block_size = parse_number(told.cache.get("block_size")) or budget.block_size
        kv = None if blocks is None else round(blocks * block_size * budget.bytes_per_block / budget.block_size)
    hbm = limit if limit is not None else _each(told.log, "hbm_bytes", chips)
    left = None if hbm is None or kv is None or weights is None else hbm - weights - kv
    yield Share(name="weights", planned=budget.weights_bytes_per_chip, measured=weights)
    yield Share(name="KV cache", planned=budget.kv_bytes_per_chip, measured=kv)
    yield Share(name="programs need", planned=budget.program_bytes_per_chip, measured=None)
    room = budget.program_bytes_per_chip + budget.free_bytes_per_chip
    yield Share(name="room for programs", planned=room, measured=left)
    yield Share(name="HBM", planned=budget.hbm_bytes_per_chip, measured=hbm)


def _after(log: Mapping[str, str]) -> tuple[int | None, int | None]:
    """Used and limit of the first chip, once the cache stood: `hbm=[(28.76, 31.24)]`."""
    used, limit = parse_number(log.get("used_gib")), parse_number(log.get("limit_gib"))
    return (None if used is None else round(used * _GIB)), (None if limit is None else round(limit * _GIB))


def _each(log: Mapping[str, str], name: str, chips: int) -> int | None:
    """The log counts the chips of a rank together."""
    whole = parse_number(log.get(name))
    return None if whole is None else round(whole / chips)
