"""Quota of Compute Engine: chips by region and class, apart from the TPU API's; disks and addresses by region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass, replace

from tpudeploy import catalog
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import texts
from tpudeploy.emulator.compute_engine.offers import ordinary_cpus
from tpudeploy.emulator.quota import class_of
from tpudeploy.emulator.records import Group, Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class RegionalQuota:
    """A metric of a region: how much of it is allowed, used, and wanted by one instance."""

    metric: str
    limit: float
    usage: float
    need: float = 0.0


def excess(cloud: Cloud, instance: Instance) -> texts.ComputeStatus | None:
    """Return the refusal of an instance that would pass a limit; None where all limits allow it."""
    region = instance.zone.rpartition("-")[0]
    need = {
        "CPUS": ordinary_cpus(instance.accelerator),
        "IN_USE_ADDRESSES": int(instance.has_address),
        "HDB_TOTAL_GB": instance.disk_gb if instance.accelerator.chips else 0,
    }
    rows = regional(cloud, instance.project, region, without=instance)
    return _excess([*_chips(cloud, instance, region), *_with_need(rows, need)], region)


def _with_need(rows: Iterable[RegionalQuota], need: Mapping[str, float]) -> Iterator[RegionalQuota]:
    """Yield the quotas with what is needed of each metric."""
    return (replace(row, need=need.get(row.metric, 0)) for row in rows)


def _excess(rows: Iterable[RegionalQuota], region: str) -> texts.ComputeStatus | None:
    for row in rows:
        if row.need and row.usage + row.need > row.limit:
            facts = {"quota": row.metric, "limit": f"{row.limit:.1f}", "region": region}
            return texts.status("quota-exhausted", facts)
    return None


def excess_of_group(cloud: Cloud, group: Group) -> texts.ComputeStatus | None:
    """Return the refusal of a group whose instances together would pass a limit; None where all limits allow them."""
    region, member = group.zone.rpartition("-")[0], group.properties.body
    sizes = [int(disk["initializeParams"]["diskSizeGb"]) for disk in member["disks"]]
    has_address = any(interface.get("accessConfigs") for interface in member["networkInterfaces"])
    need = {"IN_USE_ADDRESSES": len(group.members) * has_address, "HDB_TOTAL_GB": len(group.members) * sum(sizes)}
    rows = regional(cloud, group.project, region)
    return _excess([*_chips(cloud, group, region), *_with_need(rows, need)], region)


def metric(type_name: str, class_: str) -> str:
    """Return the metric of a quota of chips, by its id; that of preemptible ones is by analogy (UNVERIFIED).

    For a generation without a known id it is a name by analogy too.
    """
    type_ = catalog.accelerator_type(type_name)
    return "" if type_ is None else metric_of(type_.generation, class_)


def metric_of(generation: str, class_: str) -> str:
    """Return the metric of a generation, as `metric` does."""
    offer = catalog.generation(generation).compute_engine
    if offer is None:
        return ""
    by_analogy = f"PREEMPTIBLE-{generation.upper()}-per-project-region"
    id_ = offer.quotas.get("spot" if class_ == "preemptible" else "on-demand", by_analogy)
    return id_.removesuffix("-per-project-region").replace("-", "_")


def regional(cloud: Cloud, project: str, region: str, *, without: Instance | None = None) -> tuple[RegionalQuota, ...]:
    """Return the quotas that `regions.get` lists, as they are used by all instances, or by all `without` one of them.

    Whether TPU machines use quota of CPUs is UNVERIFIED: here, none.
    """
    facts = cloud.scenario.project
    instances = [each for each in _holding(cloud, project, region) if each is not without]
    addresses = _node_addresses(cloud, project, region)
    addresses += sum(each.has_address and each.state == "RUNNING" for each in instances)
    cpus = sum(ordinary_cpus(each.accelerator) for each in instances)
    disks_gb = sum(each.disk_gb for each in instances if each.accelerator.chips)
    return (
        RegionalQuota(metric="CPUS", limit=24.0, usage=cpus),
        RegionalQuota(metric="IN_USE_ADDRESSES", limit=facts.address_limit(region), usage=addresses),
        RegionalQuota(metric="HDB_TOTAL_GB", limit=facts.hyperdisk_limit(region), usage=disks_gb),
    )


def _node_addresses(cloud: Cloud, project: str, region: str) -> int:
    """Return how many external addresses the nodes of the TPU API have in a region."""
    addresses = 0
    for node in cloud.nodes.values():
        _, node_project, _, zone, *_ = node.name.split("/")
        is_there = node_project == project and zone.rpartition("-")[0] == region
        if is_there and node.spec.get("networkConfig", {}).get("enableExternalIps"):
            addresses += len(node.hosts)
    return addresses


def _chips(cloud: Cloud, instance: Instance | Group, region: str) -> Iterator[RegionalQuota]:
    if not instance.accelerator.chips:
        return
    class_, generation = class_of(instance.model), instance.accelerator.generation
    used = sum(
        other.accelerator.chips
        for other in _holding(cloud, instance.project, region)
        if other is not instance and other.accelerator.generation == generation and class_of(other.model) == class_
    )
    for limit in cloud.scenario.quota:
        if limit.api == "compute" and limit.class_ == class_ and limit.place in ("*", region):
            name = metric(instance.accelerator.name, class_)
            yield RegionalQuota(metric=name, limit=limit.chips, usage=used, need=instance.accelerator.chips)


def _holding(cloud: Cloud, project: str, region: str) -> Iterator[Instance]:
    """Yield the instances that hold quota: those with chips, or with a disk that was not deleted."""
    for instance in cloud.instances.values():
        is_there = instance.project == project and instance.zone.rpartition("-")[0] == region
        if is_there and instance.state not in ("WAITING", "PENDING"):
            yield instance
