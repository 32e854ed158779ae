"""Verification of one engine: each declared or predicted setting against what several sources report."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace

from tpudeploy.catalog.engines import figures_of, has_own_figures
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.engine import EngineKind, EngineOrigin
from tpudeploy.domain.model import Implementation
from tpudeploy.domain.verify import EngineReport, ReplicaVerification, Verdict, VerifiedSetting
from tpudeploy.node.serving import argument, loaded_model, served_model
from tpudeploy.sizing.kv import bytes_per_token
from tpudeploy.sizing.numbers import parse_number

# Cache types by the names of flags, labels and logs; on TPU every fp8 is one of these.
_FP8 = {"fp8", "fp8_e4m3", "fp8_e5m2", "float8_e4m3fn", "float8_e5m2", "float8_e4m3b11fnuz"}
_KV_TYPES = ("bfloat16", "fp8")
_KV_BYTES_TOLERANCE = 0.02  # the log has two decimals of GiB; types differ by tens of per cent
Equality = Callable[[str, str], bool]


def verify_settings(
    deployment: Deployment, report: EngineReport, *, address: str, slice_name: str = ""
) -> ReplicaVerification:
    """Return every setting that is declared or predicted, or that the engine of a replica reports."""
    sources = _sources(deployment, report)
    rows = (*_declared(deployment), *_predicted(deployment.budget), *_REPORTED)
    settings = (_verify(row, sources) for row in rows)
    return ReplicaVerification(
        address=address,
        slice_name=slice_name,
        settings=tuple(s for s in settings if s.declared or s.effective),
        silent=report.silent,
        basis=_basis(deployment),
    )


def _basis(deployment: Deployment) -> str:
    """Return which release the predicted values are for, where it is not that of the image, or ""."""
    is_predicted = isinstance(deployment.budget, HbmBudget) and not has_own_figures(deployment.engine)
    return figures_of(deployment.engine) if is_predicted else ""


@dataclass(frozen=True, slots=True, kw_only=True)
class _SettingRow:
    """`declared` is "" where the profile leaves it open. `equal` compares it with the value of one source.

    `is_written`: the profile states it, or we do for it; a value that only follows from the profile is predicted.
    """

    name: str
    declared: str
    equal: Equality
    is_written: bool = True


def _declared(deployment: Deployment) -> Iterator[_SettingRow]:
    engine = deployment.engine
    # Only a tag declares a release, and only that of tpu-inference is the version that vLLM reports.
    is_declared = engine.kind is EngineKind.TPU_INFERENCE and engine.origin is EngineOrigin.TAG
    yield _SettingRow(name="served_model", declared=served_model(deployment), equal=_is_listed)
    yield _SettingRow(name="model", declared=loaded_model(deployment), equal=_is_same)
    yield _SettingRow(name="version", declared=engine.release or "" if is_declared else "", equal=_is_release)
    by_profile, derived = _settings_of_profile(deployment), _derived_settings(deployment)
    for name, equal in _SETTINGS.items():
        declared = derived.get(name, by_profile.get(name, ""))
        yield _SettingRow(name=name, declared=declared, equal=equal, is_written=name in by_profile)


def _settings_of_profile(deployment: Deployment) -> Mapping[str, str]:
    """Return what the profile states itself. One chip, or one rank, can be nothing else, and is not stated."""
    values: dict[str, Json] = {name: deployment.attributes.get(f"serving.{name}") for name in _SETTINGS}
    values["enable_prefix_caching"] = argument(deployment, "enable_prefix_caching")
    speculation = argument(deployment, "speculative_config")  # written as a mapping, or as JSON
    config = json.loads(speculation) if isinstance(speculation, str) else speculation
    values["speculation"] = config.get("method") if isinstance(config, dict) else None
    for name in ("tensor_parallel_size", "data_parallel_size"):
        if values[name] == 1:
            values[name] = None
    if values["max_model_len"] == "auto":  # the engine decides the number: there is nothing to contradict
        values["max_model_len"] = None
    return {name: str(value) for name, value in values.items() if value is not None}


def _derived_settings(deployment: Deployment) -> Mapping[str, str]:
    """Return every setting with its default decided, where the profile can be sized."""
    budget = deployment.budget
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
        "enable_prefix_caching": str(argument(deployment, "enable_prefix_caching") is not False),
        "speculation": "None" if engine.speculation is None else engine.speculation.method,
    }


def _predicted(budget: object) -> Iterator[_SettingRow]:
    if not isinstance(budget, HbmBudget):
        return
    predictions: tuple[tuple[str, int, Equality], ...] = (
        ("num_blocks", budget.num_blocks, _is_close),
        ("kv_cache_tokens", budget.kv_cache_tokens, _is_close),
        ("kv_bytes_per_token", budget.kv_bytes_per_token_per_chip, _is_about),
        ("graphs", budget.compilation.total, _is_same),
    )
    for name, value, equal in predictions:
        yield _SettingRow(name=name, declared=str(value), equal=equal, is_written=False)


def _sources(deployment: Deployment, report: EngineReport) -> Mapping[str, Mapping[str, str]]:
    """Return the values by source. The cache's type by the bytes of a token counts as a source of its own."""
    log, by_bytes, budget = dict(report.log), dict[str, str](), deployment.budget
    is_ranked = report.log.get("data_parallel_size", "1") != "1"
    if isinstance(budget, HbmBudget):
        is_ranked = is_ranked or budget.engine.data_parallel > 1
        size = _logged_bytes_per_token(budget, report.log)
        if size is not None:
            log["kv_bytes_per_token"] = str(round(size))
            kind = _kv_type_by_bytes(size, budget)
            by_bytes = {} if kind is None else {"kv_cache_dtype": kind}
    if is_ranked:
        log.pop("kv_cache_tokens", None)  # that of one rank, and no line says of which
    return {"api": report.api, "metrics": report.cache, "log": log, "bytes": by_bytes}


def _logged_bytes_per_token(budget: HbmBudget, log: Mapping[str, str]) -> float | None:
    """Return the bytes of a token on one chip, by the boot log's memory and tokens of one rank."""
    memory, tokens = parse_number(log.get("kv_cache_bytes")), parse_number(log.get("kv_cache_tokens"))
    return memory / budget.engine.tensor_parallel / tokens if memory and tokens else None


def _kv_type_by_bytes(size: float, budget: HbmBudget) -> str | None:
    """Return the type whose tokens take this size, the declared one first; None for no type, or where all agree.

    Packing can make the bytes of two types equal. Only tpu_inference's own models: their layout was checked to the
    token on measured boots.
    """
    if budget.model.implementation is not Implementation.JAX:
        return None
    kinds = (budget.engine.kv_dtype, *_KV_TYPES)
    sizes = {kind: bytes_per_token(budget.model, replace(budget.engine, kv_dtype=kind)) for kind in kinds}
    if len(set(sizes.values())) == 1:
        return None
    return next((kind for kind in kinds if abs(size - sizes[kind]) <= _KV_BYTES_TOLERANCE * sizes[kind]), None)


def _verify(row: _SettingRow, sources: Mapping[str, Mapping[str, str]]) -> VerifiedSetting:
    effective = {source: values[row.name] for source, values in sources.items() if values.get(row.name)}
    if row.declared:  # a source that contradicts comes first: one is enough
        effective = dict(sorted(effective.items(), key=lambda pair: row.equal(row.declared, pair[1])))
    values = tuple(effective.values())
    return VerifiedSetting(
        name=row.name,
        declared=row.declared,
        effective=effective,
        verdict=_verdict(row, values),
        deviation=_deviation(row, values),
        is_written=row.is_written and bool(row.declared),
    )


def _verdict(row: _SettingRow, values: Sequence[str]) -> Verdict:
    if not values or not row.declared:
        return Verdict.UNTOLD
    if all(row.equal(row.declared, value) for value in values):
        return Verdict.HOLDS
    return Verdict.DIFFERS if row.is_written else Verdict.OFF


def _deviation(row: _SettingRow, values: Sequence[str]) -> float | None:
    predicted = parse_number(row.declared)
    measured = parse_number(values[0]) if values else None
    if row.equal not in {_is_close, _is_about} or not predicted or measured is None:
        return None
    return measured / predicted - 1


def _is_same(declared: str, reported: str) -> bool:
    return declared == reported


def _is_listed(declared: str, reported: str) -> bool:
    return declared in reported.split("\n")


def _is_release(declared: str, reported: str) -> bool:
    """Return whether it is this release: 0.32.0+tpu and 0.32.0.post1 are 0.32.0, and 0.32.0rc1 is not.

    A release's engine reports the version of its tag: UNVERIFIED for images of vllm-tpu.
    """
    return reported.partition("+")[0].partition(".post")[0] == declared


def _is_near(declared: str, reported: str) -> bool:
    """Compare to two decimals, as the log has it."""
    one, other = parse_number(declared), parse_number(reported)
    return one is not None and other is not None and abs(one - other) <= 0.01  # noqa: PLR2004 - two decimals


def _is_within(share: float, declared: str, reported: str) -> bool:
    one, other = parse_number(declared), parse_number(reported)
    return one is not None and other is not None and abs(other - one) <= share * one


def _is_close(declared: str, reported: str) -> bool:
    """Compare predictions of the cache: the largest deviation of blocks in any published boot is 0.03 %."""
    return _is_within(0.005, declared, reported)


def _is_about(declared: str, reported: str) -> bool:
    """Compare what is computed from figures with two decimals."""
    return _is_within(0.01, declared, reported)


def _is_same_type(declared: str, reported: str) -> bool:
    """Compare cache types. `auto` is the model's own type, whichever that is, and so never eight bits."""
    if reported == declared:
        return True
    has_class = declared in {*_FP8, "auto"} or reported in {*_FP8, "auto"}
    return has_class and (reported in _FP8) == (declared in _FP8)


def _is_named(declared: str, reported: str) -> bool:
    """Compare speculation: `SpeculativeConfig(method='ngram', …)` names `ngram`; `None` is itself."""
    return reported == "None" if declared == "None" else f"'{declared}'" in reported


# By the names of the profile and its arguments, with the comparison of each.
_SETTINGS: Mapping[str, Equality] = {
    "max_model_len": _is_same,
    "tensor_parallel_size": _is_same,
    "data_parallel_size": _is_same,
    "hbm_utilization": _is_near,
    "kv_cache_dtype": _is_same_type,
    "block_size": _is_same,
    "enable_prefix_caching": _is_same,
    "speculation": _is_named,
}
# No profile declares these; the engine reports them.
_REPORTED = tuple(
    _SettingRow(name=name, declared="", equal=_is_same, is_written=False) for name in ("compile_seconds", "cache_hits")
)
