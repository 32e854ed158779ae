"""A node's machines: born when it is READY, real or simulated as the scenario says."""

from __future__ import annotations

from collections.abc import Mapping
from functools import partial

from tpudeploy.emulator import node_storage, secrets
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.machine.facts import Facts
from tpudeploy.emulator.records import Host, Node, QueuedResource
from tpudeploy.emulator.simulated import Simulated


def bring_up(cloud: Cloud, slice_: QueuedResource, node: Node) -> None:
    node.hosts = [_host(cloud, slice_, node, worker) for worker in range(slice_.accelerator.hosts)]
    for host in node.hosts:
        host.boot()


def take_down(node: Node) -> None:
    for host in node.hosts:
        host.stop()
    node.hosts = []


def _host(cloud: Cloud, slice_: QueuedResource, node: Node, worker: int) -> Host:
    def metadata() -> Mapping[str, str]:
        found: Mapping[str, str] = node.spec.get("metadata", {})
        return found

    node_id = node.name.rpartition("/")[2]
    facts = Facts(
        project=slice_.project,
        zone=slice_.zone,
        node=node_id,
        accelerator_type=slice_.accelerator.name,
        worker=worker,
        root=cloud.folder / slice_.project / slice_.zone / f"{node_id}-{node.uid:x}-w-{worker}",
        address=cloud.addresses.take(),
        clock=cloud.clock,
        metadata=metadata,
        secret=lambda resource: secrets.access(cloud.scenario, resource),
        storage=partial(node_storage.exchange, cloud),
        jitter=slice_.jitter.of("worker", worker),
        engine=cloud.scenario.engine,
        note_unsupported=lambda message: cloud.unsupported.append(f"{node_id}: {message}"),
    )
    if cloud.scenario.simulated:
        return Simulated(facts, slice_.behaviour)
    from tpudeploy.emulator.machine.machine import Machine

    return Machine(facts, slice_.behaviour)
