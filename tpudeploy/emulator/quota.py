"""Quota: chips per project, place and class, counted over everything that is not deleted, husks too."""

from __future__ import annotations

from collections import deque
from collections.abc import Iterator

from tpudeploy import catalog
from tpudeploy.emulator import texts, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.records import QueuedResource
from tpudeploy.emulator.scenario import ScenarioQuota

# How the quota of a generation is named; v5e's from a published log, its on-demand form by analogy (UNVERIFIED).
_NAMES = {
    ("v6e", "preemptible"): "TPUV6EPreemptiblePerProjectPer{scope}ForTPUAPI",
    ("v6e", "on-demand"): "TPUV6EPerProjectPer{scope}ForTPUAPI",
    ("v5e", "preemptible"): "TPUV5sPreemptibleLitepodPerProjectPer{scope}ForTPUAPI",
    ("v5e", "on-demand"): "TPUV5sLitepodPerProjectPer{scope}ForTPUAPI",
}
_PREEMPTIBLE = ("SPOT", "FLEX_START")
_MINUTE = 60.0


def class_of(model: str) -> str:
    return "preemptible" if model in _PREEMPTIBLE else "on-demand"


def quota_name(generation: str, class_: str, *, zonal: bool) -> str:
    default = (
        f"TPU{generation.upper()}{'Preemptible' if class_ == 'preemptible' else ''}PerProjectPer{{scope}}ForTPUAPI"
    )
    return _NAMES.get((generation, class_), default).format(scope="Zone" if zonal else "Region")


def check(cloud: Cloud, slice_: QueuedResource) -> None:
    """Raise ApiError where one more slice would pass a limit. A zone's and its region's limit both count."""
    limits = [limit for limit in _limits(cloud, slice_) if _used(cloud, slice_, limit) + slice_.chips > limit.chips]
    if not limits:
        return
    zeros = sorted((limit for limit in limits if limit.chips == 0), key=lambda limit: limit.zonal)
    facts = {"project": slice_.project, "zone": slice_.zone, "region": _region(slice_.zone)}
    if zeros:
        names = ",".join(_quota_name_of(slice_, limit) for limit in zeros)
        places = ",".join(_place(slice_, limit) for limit in zeros)
        text = f"Quota limit '{names}' has been exceeded. Limit: {','.join('0' for _ in zeros)} in {places}."
        raise wire.ApiError(texts.status("quota-zero", facts, message=text))
    first = limits[0]
    most = first.chips * catalog.quota_units_per_chip(slice_.accelerator.generation)
    text = f"Quota '{_quota_name_of(slice_, first)}' exhausted. Limit {most} in {_place(slice_, first)}"
    raise wire.ApiError(texts.status("quota-exhausted", facts, message=text))


def check_rate(cloud: Cloud, project: str, now: float) -> None:
    """Raise ApiError above the project's creates a minute."""
    most = cloud.scenario.creates_per_minute
    recent = cloud.creates.setdefault(project, deque())
    while recent and recent[0] <= now - _MINUTE:
        recent.popleft()
    if most is not None and len(recent) >= most:
        raise wire.ApiError(texts.status("rate-limit", {"project": project}))
    recent.append(now)


def _limits(cloud: Cloud, slice_: QueuedResource) -> Iterator[ScenarioQuota]:
    for limit in cloud.scenario.quota:
        place = slice_.zone if limit.zonal else _region(slice_.zone)
        if limit.api == "tpu" and limit.class_ == class_of(slice_.model) and limit.place in ("*", place):
            yield limit


def _used(cloud: Cloud, slice_: QueuedResource, limit: ScenarioQuota) -> int:
    def counts(other: QueuedResource) -> bool:
        same_place = other.zone == slice_.zone if limit.zonal else _region(other.zone) == _region(slice_.zone)
        same_pool = other.accelerator.generation == slice_.accelerator.generation
        return other.project == slice_.project and same_place and same_pool and class_of(other.model) == limit.class_

    return sum(other.chips for other in cloud.holding if counts(other))


def _quota_name_of(slice_: QueuedResource, limit: ScenarioQuota) -> str:
    return quota_name(slice_.accelerator.generation, limit.class_, zonal=limit.zonal)


def _place(slice_: QueuedResource, limit: ScenarioQuota) -> str:
    return f"zone {slice_.zone}" if limit.zonal else f"region {_region(slice_.zone)}"


def _region(zone: str) -> str:
    return zone.rpartition("-")[0]
