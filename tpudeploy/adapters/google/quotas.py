"""The quota limits of chips in a project, from Service Usage, and their use, from the slices that each API lists."""

from __future__ import annotations

import math
import re
from collections.abc import Callable, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from typing import Any

from tpudeploy import catalog
from tpudeploy.adapters.google.compute_engine.aggregated import list_all_zones
from tpudeploy.adapters.google.compute_engine.body import accelerator_type_of, provisioning_of
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import POOLS, UNLIMITED, QuotaLimit, QuotaPool, Use
from tpudeploy.domain.names import Zone

_CONFIG_TYPES = {each.tpu_api.config_type: each.name for each in GENERATIONS if each.tpu_api is not None}
_PREEMPTIBLE = {"SPOT", "FLEX_START"}
_AGENTIC = "TRAFFIC_SOURCE_AGENTIC"  # a second limit for the same place, which applies to another kind of caller
# What is read of each metric: Compute Engine has hundreds, each with a bucket for every region.
_LIMIT_FIELDS = "unit,trafficSource,quotaBuckets(dimensions,effectiveLimit)"
_FIELDS = f"metrics(metric,consumerQuotaLimits({_LIMIT_FIELDS})),nextPageToken"
# The end of a quota id of Compute Engine, whose beginning is the name of its metric.
_ID_END = "-per-project-region"
# Instances without a machine. Whether they use quota is unverified, and a use that is too high would forbid too much.
_WITHOUT_MACHINE = frozenset({"PENDING", "STOPPED", "SUSPENDED", "TERMINATED"})


def limits(connection: CloudConnection, project: str, backend: Backend) -> tuple[QuotaLimit, ...]:
    """Return the limits at one API of the generations in the catalogue, whose metrics are matched by pattern.

    A metric with another spelling yields no limit, which means unknown: neither zero nor unlimited. Google's documents
    write the parent with the project's number; that the service accepts the project's id is unverified.
    """
    calls = connection.collection("serviceusage", "v1beta1", "services", "consumerQuotaMetrics")
    parent = f"projects/{project}/services/{BACKENDS[backend].service}"
    request = calls.list(parent=parent, view="FULL", fields=_FIELDS)
    metrics = (metric for page in pages(calls, request) for metric in page.get("metrics", ()))
    return _SOURCES[backend].limits(metrics)


def uses(connection: CloudConnection, project: str, backend: Backend) -> tuple[Use, ...]:
    """Return the chips that every queued resource, or instance, of the project uses, ours or not.

    Raise `errors.Fault` if a zone did not answer, because a partial sum would be wrong.
    """
    return _SOURCES[backend].uses(connection, project)


def _uses_of_queued_resources(connection: CloudConnection, project: str) -> tuple[Use, ...]:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
    total: list[Use] = []
    for page in pages(calls, calls.list(parent=f"projects/{project}/locations/-")):
        if page.get("unreachable"):
            raise errors.Fault(f"Could not list the chips in use: {', '.join(page['unreachable'])} did not answer.")
        total += [use for resource in page.get("queuedResources", ()) for use in _uses(resource)]
    return tuple(total)


def _uses_of_instances(connection: CloudConnection, project: str) -> tuple[Use, ...]:
    """Every instance is read and filtered here: a filter that matches nothing would look like a quota without use."""
    fields = "name,machineType,status,scheduling(provisioningModel)"
    instances, silent_zones = list_all_zones(connection, "instances", project=project, fields=fields)
    if silent_zones:
        raise errors.Fault(f"Could not list the chips in use: {', '.join(sorted(silent_zones))} did not answer.")
    return tuple(use for zone, instance in instances for use in _uses_of_instance(zone, instance))


def _limits_of_queued_resources(metrics: Iterable[Mapping[str, Any]]) -> tuple[QuotaLimit, ...]:
    """Return the limits for slices that serve: those of the pool for serving, where the project has one.

    Which pool Google charges is unverified. So a serving limit of 0 is only believed if the other pool has 0 too.
    """
    rows = tuple(limit for metric in metrics for limit in _limits(metric))
    general = {_key(limit): limit.chips for is_serving, limit in rows if not is_serving}
    served = {(limit.generation, limit.pool) for is_serving, limit in rows if is_serving}

    def believed(limit: QuotaLimit) -> QuotaLimit:
        other = general.get(_key(limit), general.get(_key(replace(limit, place=""))))
        return replace(limit, chips=None) if limit.chips == 0 and other is not None and other != 0 else limit

    return tuple(
        believed(limit) if is_serving else limit
        for is_serving, limit in rows
        if is_serving or (limit.generation, limit.pool) not in served
    )


def _key(limit: QuotaLimit) -> tuple[str, QuotaPool, bool, str]:
    return limit.generation, limit.pool, limit.zonal, limit.place


def _limits(metric: Mapping[str, Any]) -> Iterator[tuple[bool, QuotaLimit]]:
    """Yield each limit of a metric, and whether it is one of the pool for serving."""
    match = next(_matching_pools(str(metric.get("metric", ""))), None)
    if match is None:
        return
    generation, pool, is_serving = match
    units = catalog.quota_units_per_chip(generation)
    for limit in metric.get("consumerQuotaLimits", ()):
        unit = str(limit.get("unit", ""))
        zonal = "{zone}" in unit
        if not (zonal or "{region}" in unit) or limit.get("trafficSource") == _AGENTIC:
            continue
        for bucket in limit.get("quotaBuckets", ()):
            place = str(bucket.get("dimensions", {}).get("zone" if zonal else "region", ""))
            chips = _chips_of_bucket(bucket, units)
            yield is_serving, QuotaLimit(generation=generation, pool=pool, zonal=zonal, place=place, chips=chips)


def _matching_pools(metric: str) -> Iterator[tuple[str, QuotaPool, bool]]:
    """Yield generation and pool of a metric such as `tpu.googleapis.com/tpu-v6e-preemptible`; whether it serves."""
    for generation in GENERATIONS:
        tpu_api = generation.tpu_api
        quotas = () if tpu_api is None else (tpu_api.quota, tpu_api.serving_quota)
        for is_serving, quota in enumerate(quotas):
            pattern = rf"{_spellings(quota)}(?P<preemptible>[-_]preemptible)?"
            match = re.fullmatch(pattern, metric, re.IGNORECASE) if quota else None
            if match is not None:
                pool = QuotaPool.PREEMPTIBLE if match["preemptible"] else QuotaPool.ON_DEMAND
                yield generation.name, pool, bool(is_serving)


def _instance_limits(metric: Mapping[str, Any]) -> Iterator[QuotaLimit]:
    """Yield the limits of a metric of Compute Engine, whose quotas of chips are by region, or by region and family."""
    for generation, pool, family in _matching_instance_pools(str(metric.get("metric", ""))):
        for limit in metric.get("consumerQuotaLimits", ()):
            unit = str(limit.get("unit", ""))
            is_of_unknown_family = "{tpu_family}" in unit and not family
            if "{region}" not in unit or is_of_unknown_family or limit.get("trafficSource") == _AGENTIC:
                continue
            yield QuotaLimit(generation=generation, pool=pool, zonal=True, place="", chips=UNLIMITED)
            for region, chips in _chips_by_region(limit.get("quotaBuckets", ()), family).items():
                yield QuotaLimit(generation=generation, pool=pool, zonal=False, place=region, chips=chips)


def _matching_instance_pools(metric: str) -> Iterator[tuple[str, QuotaPool, str]]:
    """Yield generation, pool and family of a metric such as `compute.googleapis.com/preemptible_tpu_v6e`."""
    for generation in GENERATIONS:
        if generation.compute_engine is None:
            continue
        ids = {POOLS[Provisioning(model)]: id_ for model, id_ in generation.compute_engine.quotas.items()}
        for pool, id_ in ids.items():
            if re.fullmatch(_spellings(id_.removesuffix(_ID_END)), metric, re.IGNORECASE):
                yield generation.name, pool, generation.compute_engine.quota_family


def _spellings(name: str) -> str:
    """Return the pattern of a metric's name, with or without its service, with dashes or underscores."""
    return "(?:.*/)?" + "[-_]".join(map(re.escape, name.split("-")))


def _chips_by_region(buckets: Iterable[Mapping[str, Any]], family: str) -> Mapping[str, int]:
    """Return the limits by region, "" for all others. The last bucket that applies is the most specific one."""
    chips: dict[str, int] = {}
    for bucket in buckets:
        dimensions = dict(bucket.get("dimensions", {}))
        region = str(dimensions.pop("region", ""))
        # A bucket of another family, or with a dimension that is not known here, is about something else.
        if dimensions in ({}, {"tpu_family": family}):
            chips[region] = _chips_of_bucket(bucket)
    return chips


def _limits_of_instances(metrics: Iterable[Mapping[str, Any]]) -> tuple[QuotaLimit, ...]:
    """Return the limits of Compute Engine, where a preemptible limit of 0 is only believed if on-demand has 0 too.

    Without preemptible quota, spot and flex-start use that of the family (unverified): what is left is then not known.
    """
    all_limits = tuple(limit for metric in metrics for limit in _instance_limits(metric))
    on_demand = {
        (limit.generation, limit.place): limit.chips
        for limit in all_limits
        if limit.pool is QuotaPool.ON_DEMAND and not limit.zonal
    }

    def believed(limit: QuotaLimit) -> QuotaLimit:
        other = on_demand.get((limit.generation, limit.place), on_demand.get((limit.generation, "")))
        is_doubtful = limit.pool is QuotaPool.PREEMPTIBLE and limit.chips == 0 and other != 0
        return replace(limit, chips=None) if is_doubtful else limit

    return tuple(map(believed, all_limits))


def _chips_of_bucket(bucket: Mapping[str, Any], units: int = 1) -> int:
    # A bucket without `effectiveLimit` has a limit of 0, because the JSON leaves out numbers that are 0.
    limit_in_units = int(bucket.get("effectiveLimit", 0))
    return UNLIMITED if limit_in_units == UNLIMITED else limit_in_units // units


def _uses(resource: Mapping[str, Any]) -> Iterator[Use]:
    _, _, _, zone, _, name = str(resource["name"]).split("/")
    model, is_spot = resource.get("provisioningModel"), "spot" in resource or "bestEffort" in resource
    pool = QuotaPool.PREEMPTIBLE if is_spot or model in _PREEMPTIBLE else QuotaPool.ON_DEMAND
    for spec in resource.get("tpu", {}).get("nodeSpec", ()):
        several = spec.get("multiNodeParams", spec.get("multisliceParams", {}))
        generation, chips = _chips(spec.get("node", {}))
        if generation:
            count = int(several.get("nodeCount", 1))
            yield Use(name=name, zone=Zone(zone), generation=generation, pool=pool, chips=chips * count)


def _uses_of_instance(zone: Zone, instance: Mapping[str, Any]) -> Iterator[Use]:
    kind = catalog.accelerator_type(accelerator_type_of(instance))
    if kind is not None and instance.get("status") not in _WITHOUT_MACHINE:
        pool = POOLS[provisioning_of(instance)]
        name = str(instance["name"])
        yield Use(name=name, zone=zone, generation=kind.generation, pool=pool, chips=kind.chips_per_host)


def _chips(node: Mapping[str, Any]) -> tuple[str, int]:
    """Return the generation and the chips of a node; "" for a generation that the catalogue does not have.

    Such a generation has a quota of its own.
    """
    kind = catalog.accelerator_type(str(node.get("acceleratorType", "")))
    if kind is not None:
        return kind.generation, kind.chips
    config = node.get("acceleratorConfig", {})
    sides = str(config.get("topology", "")).split("x")
    generation = _CONFIG_TYPES.get(str(config.get("type", "")), "")
    return (generation, math.prod(map(int, sides))) if generation and all(s.isdecimal() for s in sides) else ("", 0)


@dataclass(frozen=True, slots=True, kw_only=True)
class _QuotaSource:
    """How the limits of an API are read from the metrics of its service, and their use from what it lists."""

    limits: Callable[[Iterable[Mapping[str, Any]]], tuple[QuotaLimit, ...]]
    uses: Callable[[CloudConnection, str], tuple[Use, ...]]


_SOURCES: Mapping[Backend, _QuotaSource] = {
    Backend.QUEUED_RESOURCE: _QuotaSource(limits=_limits_of_queued_resources, uses=_uses_of_queued_resources),
    Backend.GCE_INSTANCE: _QuotaSource(limits=_limits_of_instances, uses=_uses_of_instances),
}
