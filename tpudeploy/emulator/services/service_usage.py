"""Service Usage: which APIs are on, and the quota of Cloud TPU as `consumerQuotaMetrics` lists it."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from tpudeploy.emulator import listings, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.quota import units_per_chip
from tpudeploy.emulator.scenario import Limit
from tpudeploy.emulator.wire import Call, page

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
_SERVING = "tpu-v5s-litepod-serving-preemptible"  # another pool, which must not be mistaken for ours


def batch_get(cloud: Cloud, call: Call) -> dict[str, Any]:
    """Return the state of each service of the call, in its order. Raise Refusal for more than thirty, or for none."""
    names = call.many.get("names", ())
    if not 1 <= len(names) <= _MOST_NAMES:
        raise wire.refuse(3, f"Between 1 and {_MOST_NAMES} names are needed, not {len(names)}.")  # UNVERIFIED
    return {"services": [_service(cloud, name) for name in names]}


def list_metrics(cloud: Cloud, call: Call) -> dict[str, Any]:
    return page(call, "metrics", list(_metrics(cloud, call)), lambda metric: metric)


def _service(cloud: Cloud, name: str) -> dict[str, Any]:
    service = name.rpartition("/")[2]
    state = "DISABLED" if service in cloud.scenario.project.apis_off else "ENABLED"
    parent = f"projects/{NUMBER}"
    config = {"name": service}
    return {"name": f"{parent}/services/{service}", "parent": parent, "config": config, "state": state}


def _metrics(cloud: Cloud, call: Call) -> Iterator[dict[str, Any]]:
    yield _metric(call, "qps/create", [_limit(call, "qps/create", "1/min/{project}", (), [_bucket(91)])])
    for (generation, pool), usual in _METRICS.items():
        respelled = cloud.scenario.project.quota_metrics if generation == "v6e" else {}
        metric = respelled.get(pool, usual)
        units = units_per_chip(generation)
        limits = [_places(cloud, call, metric, pool, units=units, zonal=zonal) for zonal in (False, True)]
        yield _metric(call, metric, limits)
    yield _metric(call, _SERVING, [_limit(call, _SERVING, "1/{project}/{zone}", (), [_bucket(0)])])


def _places(cloud: Cloud, call: Call, metric: str, pool: str, *, units: int, zonal: bool) -> dict[str, Any]:
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


def _least(rows: list[Limit], place: str, units: int) -> int:
    """Return the lowest limit of a place's own rows and those for any place, in units of quota; -1 for no limit."""
    return min((row.chips * units for row in rows if row.place in ("*", place)), default=-1)


def _bucket(limit: int, dimensions: dict[str, str] | None = None) -> dict[str, Any]:
    """Return a bucket. A limit of 0 is left out, as proto3's JSON leaves out every number that is 0."""
    place: dict[str, Any] = {} if dimensions is None else {"dimensions": dimensions}
    return place | ({} if limit == 0 else {"effectiveLimit": str(limit), "defaultLimit": str(limit)})


def _limit(
    call: Call, metric: str, unit: str, places: tuple[str, ...], buckets: list[dict[str, Any]]
) -> dict[str, Any]:
    body = {"name": f"{_name(call, metric)}/limits/{unit.replace('/', '%2F')}", "metric": _full(metric), "unit": unit}
    located = {"supportedLocations": list(places)} if places else {}
    return {**body, "isPrecise": True, **located, "quotaBuckets": buckets}


def _metric(call: Call, metric: str, limits: list[dict[str, Any]]) -> dict[str, Any]:
    name, full = _name(call, metric), _full(metric)
    return {"name": name, "metric": full, "displayName": metric, "unit": "1", "consumerQuotaLimits": limits}


def _name(call: Call, metric: str) -> str:
    parent = f"projects/{NUMBER}/services/{call.query['service']}/consumerQuotaMetrics"
    return f"{parent}/{_full(metric).replace('/', '%2F')}"


def _full(metric: str) -> str:
    return f"tpu.googleapis.com/{metric}"
