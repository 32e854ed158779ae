"""The quota limits of Cloud TPU in a project, from Service Usage, and their use, from the queued resources."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy import catalog
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain import errors
from tpudeploy.domain.facts import UNLIMITED, Limit, Pool, Use
from tpudeploy.domain.names import Zone

_CONFIG_TYPES = {each.tpu_api.config_type: each.name for each in GENERATIONS if each.tpu_api is not None}
_PREEMPTIBLE = {"SPOT", "FLEX_START"}
_AGENTIC = "TRAFFIC_SOURCE_AGENTIC"  # a second limit for the same place, which applies to another kind of caller


def limits(connection: Connection, project: str) -> tuple[Limit, ...]:
    """Return the limits of the generations in the catalogue, whose metrics are matched by pattern.

    A metric with another spelling yields no limit, which means unknown: neither zero nor unlimited. Google's documents
    write the parent with the project's number; that the service accepts the project's id is unverified.
    """
    calls = connection.collection("serviceusage", "v1beta1", "services", "consumerQuotaMetrics")
    parent = f"projects/{project}/services/tpu.googleapis.com"
    request = calls.list(parent=parent, view="FULL")
    metrics = (metric for page in pages(calls, request) for metric in page.get("metrics", ()))
    return tuple(limit for metric in metrics for limit in _limits(metric))


def uses(connection: Connection, project: str) -> tuple[Use, ...]:
    """Return the chips that every queued resource of the project uses, ours or not.

    Raise `errors.Fault` if a zone did not answer, because a partial sum would be wrong.
    """
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
    total: list[Use] = []
    for page in pages(calls, calls.list(parent=f"projects/{project}/locations/-")):
        if page.get("unreachable"):
            raise errors.Fault(f"Could not list the chips in use: {', '.join(page['unreachable'])} did not answer.")
        total += [use for resource in page.get("queuedResources", ()) for use in _uses(resource)]
    return tuple(total)


def _limits(metric: Mapping[str, Any]) -> Iterator[Limit]:
    match = next(_matching_pools(str(metric.get("metric", ""))), None)
    if match is None:
        return
    generation, pool = match
    units = quota_units_per_chip(generation)
    for limit in metric.get("consumerQuotaLimits", ()):
        unit = str(limit.get("unit", ""))
        zonal = "{zone}" in unit
        if not (zonal or "{region}" in unit) or limit.get("trafficSource") == _AGENTIC:
            continue
        for bucket in limit.get("quotaBuckets", ()):
            place = str(bucket.get("dimensions", {}).get("zone" if zonal else "region", ""))
            # A bucket without `effectiveLimit` has a limit of 0, because the JSON leaves out numbers that are 0.
            limit_in_units = int(bucket.get("effectiveLimit", 0))
            chips = UNLIMITED if limit_in_units == UNLIMITED else limit_in_units // units
            yield Limit(generation=generation, pool=pool, zonal=zonal, place=place, chips=chips)


def _matching_pools(metric: str) -> Iterator[tuple[str, Pool]]:
    """Yield the generation and the pool of a metric such as `tpu.googleapis.com/tpu-v6e-preemptible`."""
    for generation in GENERATIONS:
        if generation.tpu_api is None or not generation.tpu_api.quota:
            continue
        own = re.escape(generation.tpu_api.quota).replace(r"\-", "[-_]")
        match = re.fullmatch(rf"(?:.*/)?{own}(?P<preemptible>[-_]preemptible)?", metric, re.IGNORECASE)
        if match is not None:
            yield generation.name, Pool.PREEMPTIBLE if match["preemptible"] else Pool.ON_DEMAND


def quota_units_per_chip(generation: str) -> int:
    """Return how many units of the TPU API's quota a chip takes: that of some generations counts cores."""
    tpu_api = catalog.generation(generation).tpu_api
    return 1 if tpu_api is None else tpu_api.quota_units_per_chip


def _uses(resource: Mapping[str, Any]) -> Iterator[Use]:
    _, _, _, zone, _, name = str(resource["name"]).split("/")
    model, is_spot = resource.get("provisioningModel"), "spot" in resource or "bestEffort" in resource
    pool = Pool.PREEMPTIBLE if is_spot or model in _PREEMPTIBLE else Pool.ON_DEMAND
    for spec in resource.get("tpu", {}).get("nodeSpec", ()):
        several = spec.get("multiNodeParams", spec.get("multisliceParams", {}))
        generation, chips = _chips(spec.get("node", {}))
        if generation:
            count = int(several.get("nodeCount", 1))
            yield Use(name=name, zone=Zone(zone), generation=generation, pool=pool, chips=chips * count)


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
