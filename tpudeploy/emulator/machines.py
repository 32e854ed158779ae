"""A node's machines: started when it is READY, real or simulated as the scenario says."""

from __future__ import annotations

from functools import partial

from tpudeploy.emulator import storage_api, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.http_server import Reply
from tpudeploy.emulator.machine.facts import Facts
from tpudeploy.emulator.records import Host, Node, QueuedResource
from tpudeploy.emulator.services import secret_manager
from tpudeploy.emulator.simulated import Simulated


def bring_up(cloud: Cloud, slice_: QueuedResource, node: Node) -> None:
    node.hosts = [_new_host(cloud, slice_, node, worker) for worker in range(slice_.accelerator.hosts)]
    for host in node.hosts:
        host.boot()


def take_down(node: Node) -> None:
    for host in node.hosts:
        host.stop()
    node.hosts = []


def _new_host(cloud: Cloud, slice_: QueuedResource, node: Node, worker: int) -> Host:
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
        metadata=lambda: node.spec.get("metadata", {}),
        secret=partial(_read_secret, cloud),
        storage=partial(_call_storage, cloud),
        jitter=slice_.jitter.part_of("worker", worker),
        engine=cloud.scenario.engine,
        note_unsupported=lambda message: cloud.unsupported.append(f"{node_id}: {message}"),
    )
    if cloud.scenario.simulated:
        return Simulated(facts, slice_.behaviour)
    from tpudeploy.emulator.machine.machine import Machine

    return Machine(facts, slice_.behaviour)


def _read_secret(cloud: Cloud, resource: str) -> tuple[int, str]:
    """Return the HTTP status, and the secret's text or the reason why it is refused."""
    try:
        return 200, secret_manager.read_value(cloud.scenario, resource)
    except wire.Refusal as refusal:
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
