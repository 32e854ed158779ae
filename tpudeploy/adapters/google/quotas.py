"""The limits of Cloud TPU in a project, from Service Usage; and what is held of them, from the queued resources."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy import catalog
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.told import pages
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain import errors
from tpudeploy.domain.facts import Limit, Pool, Use
from tpudeploy.domain.names import Zone

_CONFIG_TYPES = {"V6E": "v6e", "V5LITE_POD": "v5e"}
_PREEMPTIBLE = {"SPOT", "FLEX_START"}
_AGENTIC = "TRAFFIC_SOURCE_AGENTIC"  # a second limit of the same place, for another kind of caller


def limits(connection: Connection, project: str) -> tuple[Limit, ...]:
    """Of the generations in the catalogue, whose metrics are known by pattern. Another spelling gives no limit at
    all, which reads as unknown: never as none, never as plenty.

    Google's documents write the parent with the project's number; that its id does too is unverified.
    """
    calls = connection.collection("serviceusage", "v1beta1", "services", "consumerQuotaMetrics")
    parent = f"projects/{project}/services/tpu.googleapis.com"
    request = calls.list(parent=parent, view="FULL")
    metrics = (metric for page in pages(calls, request) for metric in page.get("metrics", ()))
    return tuple(limit for metric in metrics for limit in _limits(metric))


def uses(connection: Connection, project: str) -> tuple[Use, ...]:
    """What every queued resource of the project holds, whoever asked for it. Raise `errors.Fault` where a zone did
    not answer: less than all of it would be wrong.
    """
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")
    found: list[Use] = []
    for page in pages(calls, calls.list(parent=f"projects/{project}/locations/-")):
        if page.get("unreachable"):
            raise errors.Fault(f"Could not list what is held: {', '.join(page['unreachable'])} did not answer.")
        found += [use for resource in page.get("queuedResources", ()) for use in _uses(resource)]
    return tuple(found)


def _limits(metric: Mapping[str, Any]) -> Iterator[Limit]:
    named = next(_known(str(metric.get("metric", ""))), None)
    if named is None:
        return
    for limit in metric.get("consumerQuotaLimits", ()):
        unit = str(limit.get("unit", ""))
        zonal = "{zone}" in unit
        if (zonal or "{region}" in unit) and limit.get("trafficSource") != _AGENTIC:
            yield from (_limit(bucket, named, zonal=zonal) for bucket in limit.get("quotaBuckets", ()))


def _known(metric: str) -> Iterator[tuple[str, Pool]]:
    """Generation and pool, e.g. of `tpu.googleapis.com/tpu-v6e-preemptible`."""
    for generation in GENERATIONS:
        own = re.escape(generation.quota).replace(r"\-", "[-_]")
        found = re.fullmatch(rf"(?:.*/)?{own}(?P<preemptible>[-_]preemptible)?", metric, re.IGNORECASE)
        if found is not None:
            yield generation.name, Pool.PREEMPTIBLE if found["preemptible"] else Pool.ON_DEMAND


def _limit(bucket: Mapping[str, Any], of: tuple[str, Pool], *, zonal: bool) -> Limit:
    """A bucket without `effectiveLimit` has a limit of 0: JSON leaves out numbers that are 0."""
    place = str(bucket.get("dimensions", {}).get("zone" if zonal else "region", ""))
    chips = int(bucket.get("effectiveLimit", 0))
    return Limit(generation=of[0], pool=of[1], zonal=zonal, place=place, chips=chips)


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
    """Generation and chips; "" for one that the catalogue does not have, whose quota is another."""
    kind = catalog.accelerator_type(str(node.get("acceleratorType", "")))
    if kind is not None:
        return kind.generation, kind.chips
    config = node.get("acceleratorConfig", {})
    sides = str(config.get("topology", "")).split("x")
    generation = _CONFIG_TYPES.get(str(config.get("type", "")), "")
    return (generation, math.prod(map(int, sides))) if generation and all(s.isdecimal() for s in sides) else ("", 0)
