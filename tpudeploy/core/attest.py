"""Declared against effective, each setting by as many witnesses as there are."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tpudeploy.core.bootlog.said import number
from tpudeploy.core.serving import served_model
from tpudeploy.domain.attestation import Attestation, Attested, Told, Verdict
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.frozen import frozen

# The largest deviation between predicted and measured blocks in any published boot is 0.03 %.
_CLOSE = 0.005
_TAG = re.compile(r":v(\d+\.\d+\.\d+)$")
# Cache types by the names of flags, labels and logs; on TPU every fp8 is one of these.
_FP8 = {"fp8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"}


def attest(deployment: Deployment, told: Told) -> Attestation:
    """Every setting that somebody declares or predicts, or that the engine tells."""
    rows = [*_declared(deployment), *_predicted(deployment)]
    settings = (_judged(row, told) for row in rows)
    return Attestation(name=deployment.name, settings=tuple(s for s in settings if s.declared or s.effective))


@frozen
class _Row:
    """`declared` "" where the profile leaves it open. `equal` compares it with what one source says."""

    name: str
    declared: str
    equal: Callable[[str, str], bool]
    is_predicted: bool = False


def _declared(of: Deployment) -> Iterator[_Row]:
    tag = _TAG.search(of.container.image)
    yield _Row(name="served_model", declared=served_model(of), equal=_is_listed)
    yield _Row(name="model", declared=of.container.serve[2], equal=_is_same)
    yield _Row(name="version", declared="" if tag is None else tag[1], equal=_is_release)
    budget = of.budget
    if not isinstance(budget, HbmBudget):
        return
    engine = budget.engine
    yield _Row(name="max_model_len", declared=str(engine.max_model_len), equal=_is_same)
    yield _Row(name="tensor_parallel_size", declared=str(engine.tensor_parallel), equal=_is_same)
    yield _Row(name="data_parallel_size", declared=str(engine.data_parallel), equal=_is_same)
    yield _Row(name="hbm_utilization", declared=f"{engine.utilization:g}", equal=_is_near)
    yield _Row(name="kv_cache_dtype", declared=engine.kv_dtype, equal=_is_same_type)
    caching = of.attributes.get("serving.args.enable_prefix_caching", True)
    yield _Row(name="enable_prefix_caching", declared=str(bool(caching)), equal=_is_same)
    method = "None" if engine.speculation is None else engine.speculation.method
    yield _Row(name="speculation", declared=method, equal=_names)


def _predicted(of: Deployment) -> Iterator[_Row]:
    budget = of.budget
    if not isinstance(budget, HbmBudget):
        return
    is_written = budget.engine.block_size is not None
    yield _Row(name="block_size", declared=str(budget.block_size), equal=_is_same, is_predicted=not is_written)
    yield _Row(name="num_blocks", declared=str(budget.num_blocks), equal=_is_close, is_predicted=True)
    yield _Row(name="kv_cache_tokens", declared=str(budget.kv_cache_tokens), equal=_is_close, is_predicted=True)
    yield _Row(name="graphs", declared=str(budget.compilation.total), equal=_is_same, is_predicted=True)


def _judged(row: _Row, told: Told) -> Attested:
    # With several ranks the log's size of the cache is one rank's, and no line says of which.
    log = {
        k: v for k, v in told.log.items() if k != "kv_cache_tokens" or told.log.get("data_parallel_size", "1") == "1"
    }
    sources: Mapping[str, Mapping[str, str]] = {"api": told.api, "metrics": told.cache, "log": log}
    effective = {source: said[row.name] for source, said in sources.items() if said.get(row.name)}
    values = tuple(effective.values())
    return Attested(
        name=row.name,
        declared=row.declared,
        effective=effective,
        verdict=_verdict(row, values),
        deviation=_deviation(row, values),
    )


def _verdict(row: _Row, values: Sequence[str]) -> Verdict:
    if not values or not row.declared:
        return Verdict.UNTOLD
    if all(row.equal(row.declared, value) for value in values):
        return Verdict.HOLDS
    return Verdict.OFF if row.is_predicted else Verdict.DIFFERS


def _deviation(row: _Row, values: Sequence[str]) -> float | None:
    predicted = number(row.declared)
    measured = number(values[0]) if values else None
    if row.equal is not _is_close or not predicted or measured is None:
        return None
    return measured / predicted - 1


def _is_same(declared: str, said: str) -> bool:
    return declared == said


def _is_listed(declared: str, said: str) -> bool:
    return declared in said.split("\n")


def _is_release(declared: str, said: str) -> bool:
    """0.32.0 is kept by 0.32.0+tpu, not by 0.32.0rc1."""
    return said.partition("+")[0] == declared


def _is_near(declared: str, said: str) -> bool:
    """To two decimals, as the log has it."""
    one, other = number(declared), number(said)
    return one is not None and other is not None and abs(one - other) <= 0.01  # noqa: PLR2004 - two decimals


def _is_close(declared: str, said: str) -> bool:
    one, other = number(declared), number(said)
    return one is not None and other is not None and abs(other - one) <= _CLOSE * one


def _is_same_type(declared: str, said: str) -> bool:
    """`auto` is the model's own type, whichever that is, and so never eight bits."""
    if said == declared:
        return True
    return (said in _FP8) == (declared in _FP8) and (declared in {*_FP8, "auto"} or said in {*_FP8, "auto"})


def _names(declared: str, said: str) -> bool:
    """`ngram` is named in `SpeculativeConfig(method='ngram', …)`; `None` is itself."""
    return said == "None" if declared == "None" else f"'{declared}'" in said
