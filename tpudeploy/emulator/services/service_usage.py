"""Service Usage: which APIs are on, and the quota of Cloud TPU and Compute Engine by `consumerQuotaMetrics`."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from typing import Any

from tpudeploy import catalog
from tpudeploy.emulator import listings, refusals, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import quota as compute_quota
from tpudeploy.emulator.scenario import ScenarioQuota
from tpudeploy.emulator.wire import ApiCall, page

NUMBER = 123456789012  # the project's
_MOST_NAMES = 30
# v6e's preemptible metric is published, its on-demand one and v5p's UNVERIFIED (by analogy); v5e's are published.
_METRICS = {
    ("v6e", "preemptible"): "tpu-v6e-preemptible",
    ("v6e", "on-demand"): "tpu-v6e",
    ("v5e", "preemptible"): "tpu-v5s-litepod-preemptible",
    ("v5e", "on-demand"): "tpu-v5s-litepod",
    ("v5p", "preemptible"): "tpu-v5p-preemptible",
    ("v5p", "on-demand"): "tpu-v5p",
}
# The value of `tpu_family` in Compute Engine's quotas of chips, "" for those without one. TPU7X is UNVERIFIED.
_FAMILIES = {
    ("v6e", "preemptible"): "",
    ("v6e", "on-demand"): "CT6E",
    ("v5p", "preemptible"): "",
    ("v5p", "on-demand"): "",
    ("tpu7x", "on-demand"): "TPU7X",
}
# The pool of v5e for slices that serve: the preemptible name is published, the other one is UNVERIFIED.
_SERVING = {
    "preemptible": "tpu-v5s-litepod-serving-preemptible",
    "on-demand": "tpu-v5s-litepod-serving",
}


def batch_get(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the state of each service of the call, in its order. Raise ApiError for more than thirty, or for none."""
    names = call.many.get("names", ())
    if not 1 <= len(names) <= _MOST_NAMES:
        raise wire.refuse(3, f"Between 1 and {_MOST_NAMES} names are needed, not {len(names)}.")  # UNVERIFIED
    return {"services": [_service(cloud, name) for name in names]}


def list_metrics(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return a page of the metrics of a service. Raise ApiError for a service that is off (UNVERIFIED: it may list)."""
    service = call.query["service"]
    if service in cloud.scenario.project.apis_off:
        raise wire.ApiError(refusals.api_off(call.project, service.partition(".")[0]))
    metrics = _METRICS_OF.get(service, _no_metrics)
    return page(call, "metrics", list(metrics(cloud, call)), lambda metric: metric)


def _service(cloud: Cloud, name: str) -> dict[str, Any]:
    service = name.rpartition("/")[2]
    state = "DISABLED" if service in cloud.scenario.project.apis_off else "ENABLED"
    parent = f"projects/{NUMBER}"
    config = {"name": service}
    return {"name": f"{parent}/services/{service}", "parent": parent, "config": config, "state": state}


def _no_metrics(cloud: Cloud, call: ApiCall) -> Iterator[dict[str, Any]]:
    del cloud, call
    yield from ()


def _instance_metrics(cloud: Cloud, call: ApiCall) -> Iterator[dict[str, Any]]:
    """Yield some of Compute Engine's metrics: chips by region, or by region and `tpu_family`, and others among them."""
    regions = tuple(sorted({zone.rpartition("-")[0] for zone in listings.zones(cloud)}))
    full = call.query.get("view") == "FULL"
    by_region = [_bucket(24), *(_bucket(24, {"region": region}) for region in regions if full)]
    yield _metric(call, "cpus", [_limit(call, "cpus", "1/{project}/{region}", regions, by_region)])
    # The quota of a family that is not ours, and of chips without a family.
    shared: dict[str, list[dict[str, Any]]] = {}
    for (generation, class_), family in _FAMILIES.items():
        usual = compute_quota.metric_of(generation, class_).lower()
        metric = cloud.scenario.compute_engine.quota_metrics.get(class_, usual)
        if metric:
            shared.setdefault(metric, []).extend(_regional_buckets(cloud, class_, regions, family, full=full))
    for metric, buckets in shared.items():
        has_family = any("tpu_family" in bucket.get("dimensions", {}) for bucket in buckets)
        unit = "1/{project}/{region}/{tpu_family}" if has_family else "1/{project}/{region}"
        # The least specific bucket is the first. That of a family without one of its own is 0.
        first = [_bucket(0)] if has_family else []
        ordered = sorted(buckets, key=lambda bucket: len(bucket.get("dimensions", {})))
        yield _metric(call, metric, [_limit(call, metric, unit, regions, [*first, *ordered])])


def _regional_buckets(
    cloud: Cloud, class_: str, regions: tuple[str, ...], family: str, *, full: bool
) -> list[dict[str, Any]]:
    rows = [row for row in cloud.scenario.quota if row.api == "compute" and row.class_ == class_]
    own = {"tpu_family": family} if family else {}
    limited = tuple(sorted({row.place for row in rows} - {"*"}))
    listed = tuple(sorted({*regions, *limited})) if full else limited
    default = _bucket(_least(rows, "", 1), own) if own else _bucket(_least(rows, "", 1))
    return [default, *(_bucket(_least(rows, region, 1), {"region": region, **own}) for region in listed)]


def _metrics(cloud: Cloud, call: ApiCall) -> Iterator[dict[str, Any]]:
    yield _metric(call, "qps/create", [_limit(call, "qps/create", "1/min/{project}", (), [_bucket(91)])])
    for (generation, pool), usual in _METRICS.items():
        respelled = cloud.scenario.project.quota_metrics if generation == "v6e" else {}
        metric = respelled.get(pool, usual)
        if generation == "v5e":
            # One of the two pools limits slices. A new project has nothing in the other one.
            metric, other = _SERVING[pool], usual
            if cloud.scenario.project.v5e_quota == "training":
                metric, other = other, metric
            yield _metric(call, other, [_limit(call, other, "1/{project}/{zone}", (), [_bucket(0)])])
        units = catalog.quota_units_per_chip(generation)
        limits = [_places(cloud, call, metric, pool, units=units, zonal=zonal) for zonal in (False, True)]
        yield _metric(call, metric, limits)


def _places(cloud: Cloud, call: ApiCall, metric: str, pool: str, *, units: int, zonal: bool) -> dict[str, Any]:
    """Return a limit: first a bucket for every place without its own; then, in the full view, one for each place."""
    limits = [row for row in cloud.scenario.quota if row.api == "tpu"]
    rows = [row for row in limits if row.class_ == pool and row.zonal == zonal]
    zones = listings.tpu_zones(cloud)
    places = zones if zonal else tuple(sorted({zone.rpartition("-")[0] for zone in zones}))
    places_with_limits = tuple(sorted({row.place for row in rows} - {"*"}))
    listed = tuple(sorted({*places, *places_with_limits})) if call.query.get("view") == "FULL" else places_with_limits
    key = "zone" if zonal else "region"
    buckets = [_bucket(_least(rows, "", units)), *(_bucket(_least(rows, p, units), {key: p}) for p in listed)]
    return _limit(call, metric, f"1/{{project}}/{{{key}}}", places, buckets)


def _least(rows: list[ScenarioQuota], place: str, units: int) -> int:
    """Return the lowest limit of a place's own rows and those for any place, in units of quota; -1 for no limit."""
    return min((row.chips * units for row in rows if row.place in ("*", place)), default=-1)


def _bucket(limit: int, dimensions: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a bucket. A limit of 0 is left out, as proto3's JSON leaves out every number that is 0."""
    place: dict[str, Any] = {} if dimensions is None else {"dimensions": dimensions}
    return place | ({} if limit == 0 else {"effectiveLimit": str(limit), "defaultLimit": str(limit)})


def _limit(
    call: ApiCall, metric: str, unit: str, places: tuple[str, ...], buckets: list[dict[str, Any]]
) -> dict[str, Any]:
    name = f"{_name(call, metric)}/limits/{unit.replace('/', '%2F')}"
    body = {"name": name, "metric": _full(call, metric), "unit": unit}
    located = {"supportedLocations": list(places)} if places else {}
    return {**body, "isPrecise": True, **located, "quotaBuckets": buckets}


def _metric(call: ApiCall, metric: str, limits: list[dict[str, Any]]) -> dict[str, Any]:
    name, full = _name(call, metric), _full(call, metric)
    return {"name": name, "metric": full, "displayName": metric, "unit": "1", "consumerQuotaLimits": limits}


def _name(call: ApiCall, metric: str) -> str:
    parent = f"projects/{NUMBER}/services/{call.query['service']}/consumerQuotaMetrics"
    return f"{parent}/{_full(call, metric).replace('/', '%2F')}"


def _full(call: ApiCall, metric: str) -> str:
    return f"{call.query['service']}/{metric}"


_METRICS_OF: Mapping[str, Callable[[Cloud, ApiCall], Iterator[dict[str, Any]]]] = {
    "tpu.googleapis.com": _metrics,
    "compute.googleapis.com": _instance_metrics,
}
