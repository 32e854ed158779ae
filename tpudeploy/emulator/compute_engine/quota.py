"""Quota of Compute Engine: chips by region and class, apart from the TPU API's; disks and addresses by region."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace

from tpudeploy import catalog
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import texts
from tpudeploy.emulator.compute_engine.offers import ordinary_cpus
from tpudeploy.emulator.quota import class_of
from tpudeploy.emulator.records import Group, Instance


@dataclass(frozen=True, slots=True, kw_only=True)
class Quota:
    """A metric of a region: how much of it is allowed, used, and wanted by one instance."""

    metric: str
    limit: float
    usage: float
    need: float = 0.0


def excess(cloud: Cloud, instance: Instance) -> texts.ComputeStatus | None:
    """Return the refusal of an instance that would pass a limit; None where all limits allow it."""
    region = instance.zone.rpartition("-")[0]
    return _excess([*_chips(cloud, instance, region), *regional(cloud, instance.project, region, instance)], region)


def _excess(rows: Iterable[Quota], region: str) -> texts.ComputeStatus | None:
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
    rows = [replace(row, need=need.get(row.metric, 0)) for row in regional(cloud, group.project, region)]
    return _excess([*_chips(cloud, group, region), *rows], region)


def metric(type_name: str, class_: str) -> str:
    """Return the metric of a quota of chips, by its id; that of preemptible ones is by analogy (UNVERIFIED).

    For a generation without a known id it is a name by analogy too.
    """
    type_ = catalog.accelerator_type(type_name)
    return "" if type_ is None else metric_of(type_.generation, class_)


def metric_of(generation: str, class_: str) -> str:
    """Return the metric of a generation, as `metric` does."""
    offer = catalog.generation(generation).compute_engine
    by_analogy = f"PREEMPTIBLE-{generation.upper()}-per-project-region"
    id_ = "" if offer is None else offer.quotas.get("spot" if class_ == "preemptible" else "on-demand", by_analogy)
    return id_.removesuffix("-per-project-region").replace("-", "_")


def regional(cloud: Cloud, project: str, region: str, instance: Instance | None = None) -> tuple[Quota, ...]:
    """Return the quotas that `regions.get` lists. Whether TPU machines use quota of CPUs is UNVERIFIED: here, none."""
    facts = cloud.scenario.project
    there = [i for i in _holding(cloud, project, region) if i is not instance]
    nodes = [
        node
        for node in cloud.nodes.values()
        if node.name.split("/")[1] == project
        and node.name.split("/")[3].rpartition("-")[0] == region
        and node.spec.get("networkConfig", {}).get("enableExternalIps")
    ]
    addresses = sum(len(node.hosts) for node in nodes) + sum(i.has_address and i.state == "RUNNING" for i in there)
    return (
        Quota(
            metric="CPUS",
            limit=24.0,
            usage=sum(ordinary_cpus(i.accelerator) for i in there),
            need=0 if instance is None else ordinary_cpus(instance.accelerator),
        ),
        Quota(
            metric="IN_USE_ADDRESSES",
            limit=facts.address_limit(region),
            usage=addresses,
            need=instance is not None and instance.has_address,
        ),
        Quota(
            metric="HDB_TOTAL_GB",
            limit=facts.hyperdisk_limit(region),
            usage=sum(i.disk_gb for i in there if i.accelerator.chips),
            need=instance.disk_gb if instance is not None and instance.accelerator.chips else 0,
        ),
    )


def _chips(cloud: Cloud, instance: Instance | Group, region: str) -> Iterator[Quota]:
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
            yield Quota(metric=name, limit=limit.chips, usage=used, need=instance.accelerator.chips)


def _holding(cloud: Cloud, project: str, region: str) -> Iterator[Instance]:
    """Yield the instances that hold quota: those with chips, or with a disk that was not deleted."""
    for instance in cloud.instances.values():
        is_there = instance.project == project and instance.zone.rpartition("-")[0] == region
        if is_there and instance.state not in ("WAITING", "PENDING"):
            yield instance
