"""A node's machines: started when it is READY, real or simulated as the scenario says."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from functools import partial
from typing import Any

from tpudeploy.emulator import own_end, storage_api, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.http_server import Reply
from tpudeploy.emulator.machine.facts import MachineFacts, PlainImage
from tpudeploy.emulator.machine.machine import Machine
from tpudeploy.emulator.records import ChipRequest, Group, Host, Instance, Node, QueuedResource
from tpudeploy.emulator.services import registries, secret_manager
from tpudeploy.emulator.simulated import Simulated
from tpudeploy.emulator.simulated_router import SimulatedRouter


def bring_up(cloud: Cloud, slice_: QueuedResource, node: Node) -> None:
    node_id = node.name.rpartition("/")[2]
    node.hosts = [
        _new_host(
            cloud,
            slice_,
            f"{node_id}-{node.uid:x}",
            worker,
            node=node_id,
            metadata=partial(_metadata, node),
            workers=partial(_addresses, node),
            listening=partial(_listening, node),
        )
        for worker in range(slice_.accelerator.hosts)
    ]
    for worker, host in enumerate(node.hosts):
        if worker not in slice_.behaviour.absent_workers:
            host.boot()
    own_end.watch(cloud, slice_, node.hosts[0])


def _addresses(node: Node) -> Sequence[str]:
    return tuple(host.address for host in node.hosts)


def _listening(node: Node, address: str, port: int) -> tuple[str, int] | None:
    host = next((host for host in node.hosts if host.address == address), None)
    return None if host is None else host.listening(port)


def take_down(node: Node) -> None:
    for host in node.hosts:
        host.stop()
    node.hosts = []


def bring_up_instance(cloud: Cloud, instance: Instance) -> None:
    """Boot the machine of an instance: its image has no docker, and the request decides disk, scopes and attributes.

    One that was stopped boots from its own disk, on another host.
    """
    if instance.stopped_host is not None:
        instance.host, instance.stopped_host = instance.stopped_host, None
        instance.host.power_on()
        return
    scopes = [scope for account in instance.body.get("serviceAccounts", ()) for scope in account.get("scopes", ())]
    plain = PlainImage(disk_gb=instance.disk_gb, scopes=tuple(scopes))
    instance.behaviour = replace(instance.behaviour, has_docker=False)
    group = instance.group
    worker = 0 if group is None else group.members.index(instance.id)
    instance.host = _new_host(
        cloud,
        instance,
        f"{instance.id}-{instance.uid:x}-{instance.changes}",
        worker,
        node=instance.id,
        metadata=lambda: instance.metadata,
        plain_image=plain,
        **({} if group is None else _neighbours(cloud, group)),
    )
    if worker not in instance.behaviour.absent_workers or group is None:
        instance.host.boot()
    own_end.watch(cloud, instance, instance.host)


def _neighbours(cloud: Cloud, group: Group) -> dict[str, Any]:
    """Return what a member of a group has of it: its chips, and the others by the internal DNS of Compute Engine."""

    def hosts() -> dict[str, Host]:
        place = f"projects/{group.project}/zones/{group.zone}/instances"
        members = ((name, cloud.instances.get(f"{place}/{name}")) for name in group.members)
        return {name: each.host for name, each in members if each is not None and each.host is not None}

    def resolve(name: str) -> str:
        member, _, domain = name.partition(".")
        host = hosts().get(member)
        return host.address if host is not None and domain == f"{group.zone}.c.{group.project}.internal" else ""

    def listening(address: str, port: int) -> tuple[str, int] | None:
        host = next((host for host in hosts().values() if host.address == address), None)
        return None if host is None else host.listening(port)

    def workers() -> Sequence[str]:
        present = hosts()
        return tuple(present[name].address if name in present else "" for name in group.members)

    return {
        "accelerator_type": group.accelerator.name,
        "workers": workers,
        "listening": listening,
        "resolve": resolve,
    }


def stop_instance(instance: Instance) -> None:
    """End the machine of an instance, and keep its disk."""
    if instance.host is not None:
        instance.host.power_off()
        instance.host, instance.stopped_host = None, instance.host


def take_down_instance(instance: Instance) -> None:
    """End the machine of an instance, and delete its disk."""
    for host in (instance.host, instance.stopped_host):
        if host is not None:
            host.stop()
    instance.host = instance.stopped_host = None


def _metadata(node: Node) -> Mapping[str, str]:
    metadata: Mapping[str, str] = node.spec.get("metadata", {})
    return metadata


def _new_host(cloud: Cloud, slice_: ChipRequest, folder: str, worker: int, *, node: str, **facts: Any) -> Host:
    own_facts = MachineFacts(
        project=slice_.project,
        zone=slice_.zone,
        node=node,
        worker=worker,
        root=cloud.folder / slice_.project / slice_.zone / f"{folder}-w-{worker}",
        address=cloud.addresses.take(),
        clock=cloud.clock,
        secret=partial(_read_secret, cloud),
        storage=partial(_call_storage, cloud),
        google=partial(own_end.call, cloud),
        pull_refusal=partial(registries.pull_refusal, cloud),
        jitter=slice_.jitter.part_of("worker", worker),
        engine=cloud.scenario.engine,
        note_unsupported=lambda message: cloud.unsupported.append(f"{node}: {message}"),
        **{"accelerator_type": slice_.accelerator.name, **facts},
    )
    if cloud.scenario.simulated:
        is_ordinary = not slice_.accelerator.chips
        return (SimulatedRouter if is_ordinary else Simulated)(own_facts, slice_.behaviour)

    return Machine(own_facts, slice_.behaviour)


def _read_secret(cloud: Cloud, resource: str) -> tuple[int, str]:
    """Return the HTTP status, and the secret's text or the reason why it is refused."""
    try:
        return 200, secret_manager.read_value(cloud.scenario, resource)
    except wire.ApiError as refusal:
        return refusal.status.http, refusal.status.message


def _call_storage(cloud: Cloud, method: str, target: str, body: bytes) -> Reply:
    """Return what Cloud Storage answers a node: the same objects and the same trouble that other clients meet.

    A node never waits for the cloud's lock, since its holder may be waiting for that node to stop. Raise
    ConnectionResetError where the scenario cuts the connection.
    """
    request = storage_api.parse_request(method, target, body)
    if request is None:
        return Reply(http=404, body=b"Not Found")
    with cloud.storage_lock:
        cloud.calls[request.method] += 1
        counts = {"call": cloud.calls[request.method], "attempt": cloud.calls[request.method]}
        name = (request.name or request.bucket).rpartition("/")[2]
        troubles = cloud.striking({"method": request.method, "zone": "-", "name": name}, counts)
        if "connection-refused" in troubles:
            raise ConnectionResetError
        reply = storage_api.answer(cloud.objects, request, troubles)
    if "lost-reply" in troubles:
        raise ConnectionResetError
    # The service prints its JSON over many lines.
    return Reply(http=reply.http, body=reply.payload(indent=2), content_type=reply.content_type)
