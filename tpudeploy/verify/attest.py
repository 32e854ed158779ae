"""Declared against effective, each setting by as many witnesses as there are."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence

from tpudeploy.domain.attestation import Attestation, Attested, Told, Verdict
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.frozen import frozen
from tpudeploy.node.serving import argument, loaded_model, served_model
from tpudeploy.sizing.numbers import parse_number
from tpudeploy.verify.cachebytes import measured, type_of

# The largest deviation between predicted and measured blocks in any published boot is 0.03 %.
_CLOSE = 0.005
_ABOUT = 0.01
# That a release's engine says the version of its tag is UNVERIFIED for images of vllm-tpu.
_TAG = re.compile(r":v(\d+\.\d+\.\d+)$")
# Cache types by the names of flags, labels and logs; on TPU every fp8 is one of these.
_FP8 = {"fp8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"}


def attest(deployment: Deployment, told: Told, *, address: str, slice_name: str = "") -> Attestation:
    """Every setting that somebody declares or predicts, or that the engine of a replica tells."""
    witnesses = _witnesses(deployment, told)
    settings = (_judged(row, witnesses) for row in (*_declared(deployment), *_predicted(deployment), *_TOLD))
    return Attestation(
        address=address,
        slice_name=slice_name,
        settings=tuple(s for s in settings if s.declared or s.effective),
        silent=told.silent,
    )


@frozen
class _Row:
    """`declared` "" where the profile leaves it open. `equal` compares it with what one source says.

    `is_written`: the profile says it, or we do for it; what only follows from the profile is predicted.
    """

    name: str
    declared: str
    equal: Callable[[str, str], bool]
    is_written: bool = True


def _declared(of: Deployment) -> Iterator[_Row]:
    tag = _TAG.search(str(of.attributes["serving.image"]))  # as it was written: a pin names no release
    yield _Row(name="served_model", declared=served_model(of), equal=_is_listed)
    yield _Row(name="model", declared=loaded_model(of), equal=_is_same)
    yield _Row(name="version", declared="" if tag is None else tag[1], equal=_is_release)
    written, derived = _written(of), _derived(of)
    for name, equal in _SETTINGS.items():
        declared = derived.get(name, written.get(name, ""))
        yield _Row(name=name, declared=declared, equal=equal, is_written=name in written)


def _written(of: Deployment) -> Mapping[str, str]:
    """What the profile says itself. One chip, or one rank, can be nothing else."""
    plain = {name: of.attributes.get(f"serving.{name}") for name in _SETTINGS}
    named: dict[str, Json] = {
        **plain,
        "enable_prefix_caching": argument(of, "enable_prefix_caching"),
        "speculation": _method(argument(of, "speculative_config")),
    }
    alone = {name for name in ("tensor_parallel_size", "data_parallel_size") if named[name] == 1}
    # `max_model_len: auto` leaves the number to the engine: there is nothing to contradict.
    return {name: str(value) for name, value in named.items() if value not in (None, "auto") and name not in alone} | {
        name: "auto" for name, value in named.items() if value == "auto" and name != "max_model_len"
    }


def _method(config: Json) -> Json:
    """Written as a mapping, or as JSON."""
    tree = json.loads(config) if isinstance(config, str) else config
    return tree.get("method") if isinstance(tree, dict) else None


def _derived(of: Deployment) -> Mapping[str, str]:
    """Every default decided, where the profile can be sized."""
    budget = of.budget
    if not isinstance(budget, HbmBudget):
        return {}
    engine = budget.engine
    return {
        "max_model_len": str(engine.max_model_len),
        "tensor_parallel_size": str(engine.tensor_parallel),
        "data_parallel_size": str(engine.data_parallel),
        "hbm_utilization": f"{engine.utilization:g}",
        "kv_cache_dtype": engine.kv_dtype,
        "block_size": str(budget.block_size),
        "enable_prefix_caching": str(argument(of, "enable_prefix_caching") is not False),
        "speculation": "None" if engine.speculation is None else engine.speculation.method,
    }


def _predicted(of: Deployment) -> Iterator[_Row]:
    budget = of.budget
    if not isinstance(budget, HbmBudget):
        return
    blocks, tokens = budget.num_blocks, budget.kv_cache_tokens
    yield _Row(name="num_blocks", declared=str(blocks), equal=_is_close, is_written=False)
    yield _Row(name="kv_cache_tokens", declared=str(tokens), equal=_is_close, is_written=False)
    each = budget.kv_bytes_per_token_per_chip
    yield _Row(name="kv_bytes_per_token", declared=str(each), equal=_is_about, is_written=False)
    yield _Row(name="graphs", declared=str(budget.compilation.total), equal=_is_same, is_written=False)


def _witnesses(of: Deployment, told: Told) -> Mapping[str, Mapping[str, str]]:
    """Source → name → value. What the bytes of the cache say counts as a witness of its own."""
    log: dict[str, str] = dict(told.log)
    by_bytes: dict[str, str] = {}
    each = measured(of.budget, told.log) if isinstance(of.budget, HbmBudget) else None
    if each is not None and isinstance(of.budget, HbmBudget):
        log["kv_bytes_per_token"] = str(round(each))
        found = type_of(each, of.budget)
        by_bytes = {} if found is None else {"kv_cache_dtype": found}
    is_ranked = isinstance(of.budget, HbmBudget) and of.budget.engine.data_parallel > 1
    if is_ranked or told.log.get("data_parallel_size", "1") != "1":
        log.pop("kv_cache_tokens", None)  # one rank's, and no line says of which
    return {"api": told.api, "metrics": told.cache, "log": log, "bytes": by_bytes}


def _judged(row: _Row, sources: Mapping[str, Mapping[str, str]]) -> Attested:
    told = {source: said[row.name] for source, said in sources.items() if said.get(row.name)}
    # Who contradicts comes first: one is enough.
    effective = dict(sorted(told.items(), key=lambda pair: row.equal(row.declared, pair[1]))) if row.declared else told
    values = tuple(effective.values())
    return Attested(
        name=row.name,
        declared=row.declared,
        effective=effective,
        verdict=_verdict(row, values),
        deviation=_deviation(row, values),
        is_written=row.is_written and bool(row.declared),
    )


def _verdict(row: _Row, values: Sequence[str]) -> Verdict:
    if not values or not row.declared:
        return Verdict.UNTOLD
    if all(row.equal(row.declared, value) for value in values):
        return Verdict.HOLDS
    return Verdict.DIFFERS if row.is_written else Verdict.OFF


def _deviation(row: _Row, values: Sequence[str]) -> float | None:
    predicted = parse_number(row.declared)
    actual = parse_number(values[0]) if values else None
    if row.equal not in {_is_close, _is_about} or not predicted or actual is None:
        return None
    return actual / predicted - 1


def _is_same(declared: str, said: str) -> bool:
    return declared == said


def _is_listed(declared: str, said: str) -> bool:
    return declared in said.split("\n")


def _is_release(declared: str, said: str) -> bool:
    """0.32.0 is kept by 0.32.0+tpu and by 0.32.0.post1, not by 0.32.0rc1."""
    return said.partition("+")[0].partition(".post")[0] == declared


def _is_near(declared: str, said: str) -> bool:
    """To two decimals, as the log has it."""
    one, other = parse_number(declared), parse_number(said)
    return one is not None and other is not None and abs(one - other) <= 0.01  # noqa: PLR2004 - two decimals


def _is_close(declared: str, said: str) -> bool:
    one, other = parse_number(declared), parse_number(said)
    return one is not None and other is not None and abs(other - one) <= _CLOSE * one


def _is_about(declared: str, said: str) -> bool:
    """What is reckoned from figures with two decimals."""
    one, other = parse_number(declared), parse_number(said)
    return one is not None and other is not None and abs(other - one) <= _ABOUT * one


def _is_same_type(declared: str, said: str) -> bool:
    """`auto` is the model's own type, whichever that is, and so never eight bits."""
    if said == declared:
        return True
    return (said in _FP8) == (declared in _FP8) and (declared in {*_FP8, "auto"} or said in {*_FP8, "auto"})


def _names(declared: str, said: str) -> bool:
    """`ngram` is named in `SpeculativeConfig(method='ngram', …)`; `None` is itself."""
    return said == "None" if declared == "None" else f"'{declared}'" in said


# By the names of the profile and its arguments, as each is compared.
_SETTINGS: Mapping[str, Callable[[str, str], bool]] = {
    "max_model_len": _is_same,
    "tensor_parallel_size": _is_same,
    "data_parallel_size": _is_same,
    "hbm_utilization": _is_near,
    "kv_cache_dtype": _is_same_type,
    "block_size": _is_same,
    "enable_prefix_caching": _is_same,
    "speculation": _names,
}
# What nobody declares, and the engine tells.
_TOLD = tuple(
    _Row(name=name, declared="", equal=_is_same, is_written=False) for name in ("compile_seconds", "cache_hits")
)
