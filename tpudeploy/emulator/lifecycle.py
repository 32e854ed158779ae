"""The life of a slice: a timeline on the injected clock, from the queue to a husk.

    CREATING ─queued─▶ WAITING_FOR_RESOURCES ─waiting─▶ PROVISIONING ─provisioning─▶ ACTIVE ─▶ SUSPENDING ─▶ SUSPENDED
        └─▶ 404 (L2)       └─▶ FAILED (L3, expired)         └─▶ SUSPENDING ─▶ FAILED       └─ delete ─▶ DELETING ─▶ 404
Words in lower case are Timings. Every function gets the moment at which it happens.
"""

from __future__ import annotations

from math import inf

from tpudeploy.emulator import texts, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.machines import bring_up, take_down
from tpudeploy.emulator.records import WAITING, ChipRequest, LongRunningOperation, Node, QueuedResource
from tpudeploy.emulator.trouble import next_hour

_DEFAULT_RUN = 7 * 86400.0  # flex-start without maxRunDuration, by a published note


def start(
    cloud: Cloud, slice_: QueuedResource, operation: LongRunningOperation, refusal: wire.RpcStatus | None
) -> None:
    """Start the life of a slice. `refusal` is what the create operation ends with (L2)."""
    at = slice_.created_at + slice_.timings.queued
    if refusal is None:
        slow = (slice_.fault_settings("slow-operation") or {"seconds": 0.0})["seconds"]
        cloud.later(slice_, at, lambda now: queue(cloud, slice_, now))
        cloud.agenda.add(at + slow, lambda now: _end(slice_, operation, now))
        return

    def refuse(now: float) -> None:
        operation.fail(now, refusal)
        forget(cloud, slice_)

    cloud.later(slice_, at, refuse)


def _end(slice_: QueuedResource, operation: LongRunningOperation, at: float) -> None:
    if (settings := slice_.fault_settings("operation-fails")) is not None:
        operation.fail(at, texts.status("backend-error", {}, message=settings["message"], code=settings.get("code")))
    else:
        operation.succeed(at, "QueuedResource", {"name": slice_.name, **slice_.body})


def queue(cloud: Cloud, slice_: QueuedResource, at: float) -> None:
    slice_.enter("ACCEPTED" if "accepted" in slice_.troubles else "WAITING_FOR_RESOURCES")
    if "overstays" in slice_.troubles:
        return
    begins, ends = validity(slice_)
    if ends is not None:
        cloud.later(slice_, max(at, ends), lambda now: _expire(slice_, now))
    if "wait-for-ever" not in slice_.troubles:
        granted = opens_at(cloud, slice_, max(at, begins) + slice_.timings.waiting)
        if granted < inf:
            cloud.later(slice_, granted, lambda now: provision(cloud, slice_, now))


def opens_at(cloud: Cloud, request: ChipRequest, at: float) -> float:
    """Return the first moment from `at` on at which its place has capacity, in seconds; infinite for never.

    The rows are the cloud's of that moment, not those that struck at the create: a place may close while one queues.
    """
    ends = [end for row in cloud.closing(request) if (end := row.ends_at(at, cloud.began)) is not None]
    if not ends:
        return at
    return inf if max(ends) == inf else opens_at(cloud, request, max(ends))


def validity(slice_: QueuedResource) -> tuple[float, float | None]:
    """Return when the request may first be granted, and when it expires."""
    policy = slice_.body.get("queueingPolicy", {})
    interval = policy.get("validInterval", {})
    begins, ends = slice_.created_at, None
    if "validAfterDuration" in policy:
        begins += wire.seconds(policy["validAfterDuration"])
    if after := policy.get("validAfterTime") or interval.get("startTime"):
        begins = wire.moment(after)
    if "validUntilDuration" in policy:
        ends = slice_.created_at + wire.seconds(policy["validUntilDuration"])
    if until := policy.get("validUntilTime") or interval.get("endTime"):
        ends = wire.moment(until)
    return begins, ends


def provision(cloud: Cloud, slice_: QueuedResource, at: float) -> None:
    if slice_.error is not None and "internal-error" not in slice_.troubles:
        slice_.enter("FAILED")
        return
    slice_.enter("PROVISIONING")
    _create_nodes(cloud, slice_, at)
    ends = at + slice_.timings.provisioning
    if slice_.error is not None:
        cloud.later(slice_, ends, lambda now: suspend(cloud, slice_, now, then="FAILED"))
    elif (loop := slice_.fault_settings("provisioning-loop")) is not None:
        cloud.later(slice_, at + loop["every"], lambda now: _flicker(cloud, slice_, now, loop["every"]))
        cloud.later(slice_, at + loop["for"], lambda now: suspend(cloud, slice_, now))
    else:
        cloud.later(slice_, ends, lambda now: activate(cloud, slice_, now))


def activate(cloud: Cloud, slice_: QueuedResource, at: float) -> None:
    slice_.enter("ACTIVE")
    run = _run_seconds(slice_, at)
    for node in cloud.nodes_of(slice_):
        node.ends_at = None if run is None else at + run
    cloud.later(slice_, at + slice_.timings.node_ready, lambda now: _ready(cloud, slice_, now))
    if run is not None:
        cloud.later(slice_, at + run, lambda now: suspend(cloud, slice_, now))
    if (settings := slice_.fault_settings("preempt")) is not None:
        notice = settings.get("notice", 0.0)
        reclaims = at + settings["after"] if "hour" not in settings else next_hour(settings["hour"], at)
        cloud.later(slice_, reclaims, lambda now: preempt(cloud, slice_, now, notice=notice))
    if slice_.deletes_when_active:
        delete(cloud, slice_, cloud.begin(slice_.name, "delete", at), at)
    if (settings := slice_.fault_settings("vanish")) is not None:
        cloud.later(slice_, at + settings["after"], lambda _now: drop_nodes(cloud, slice_))


def preempt(cloud: Cloud, slice_: QueuedResource, at: float, *, notice: float = 0.0) -> None:
    """Preempt a slice: its node is PREEMPTED first, and its queued resource follows (how soon is unknown).

    With a `notice`, its machines find that in their metadata, and it happens this number of seconds later.
    """
    if notice:
        for node in cloud.nodes_of(slice_):
            for host in node.hosts:
                host.announce_preemption()
        cloud.later(slice_, at + notice, lambda now: preempt(cloud, slice_, now))
        return
    for node in cloud.nodes_of(slice_):
        node.state = "PREEMPTED"
        cloud.end_bill(node.name, at)
        take_down(node)
    slice_.changes += 1
    cloud.later(slice_, at + slice_.timings.preempted, lambda now: suspend(cloud, slice_, now))


def suspend(
    cloud: Cloud, slice_: QueuedResource, at: float, *, initiator: str = "SERVICE", then: str = "SUSPENDED"
) -> None:
    slice_.enter("SUSPENDING", initiator=initiator)
    for node in cloud.nodes_of(slice_):
        node.state = "PREEMPTED" if node.state == "PREEMPTED" else "DELETING"
        cloud.end_bill(node.name, at)
        take_down(node)

    def end(_now: float) -> None:
        drop_nodes(cloud, slice_)
        slice_.enter(then, initiator=initiator)
        cloud.orphaned.pop(slice_.name, None)

    cloud.later(slice_, at + slice_.timings.suspending, end)


def delete(cloud: Cloud, slice_: QueuedResource, operation: LongRunningOperation, at: float) -> None:
    slice_.enter("DELETING", initiator="USER")
    nodes = () if "orphan" in slice_.troubles else tuple(cloud.nodes_of(slice_))
    for node in nodes:
        node.state = "DELETING"
        cloud.end_bill(node.name, at)
        take_down(node)

    def end(now: float) -> None:
        if "orphan" in slice_.troubles and any(True for _ in cloud.nodes_of(slice_)):
            cloud.orphaned[slice_.name] = cloud.slices.pop(slice_.name)
        else:
            forget(cloud, slice_)
        operation.succeed(now, "Empty", {})

    cloud.later(slice_, at + slice_.timings.deleting, end)


def forget(cloud: Cloud, slice_: QueuedResource) -> None:
    drop_nodes(cloud, slice_)
    slice_.changes += 1
    cloud.slices.pop(slice_.name, None)


def drop_nodes(cloud: Cloud, slice_: QueuedResource) -> None:
    for node in tuple(cloud.nodes_of(slice_)):
        cloud.end_bill(node.name, cloud.clock.now())
        take_down(node)
        del cloud.nodes[node.name]


def _expire(slice_: QueuedResource, at: float) -> None:
    assert slice_.state in WAITING, at
    slice_.error = texts.status("expired", {})
    slice_.enter("FAILED")


def _run_seconds(slice_: QueuedResource, at: float) -> float | None:
    duration = slice_.body.get("runDuration", {})
    if (settings := slice_.fault_settings("flex-end")) is not None:
        return float(settings["after"])
    if "maxRunDuration" in duration:
        return wire.seconds(duration["maxRunDuration"])
    if "terminationTime" in duration:
        return max(0.0, wire.moment(duration["terminationTime"]) - at)
    return _DEFAULT_RUN if slice_.model == "FLEX_START" else None


def _create_nodes(cloud: Cloud, slice_: QueuedResource, at: float) -> None:
    spec = slice_.body["tpu"]["nodeSpec"][0]["node"]
    for id_ in slice_.node_ids:
        name = f"{slice_.parent}/nodes/{id_}"
        uid = int(cloud.scenario.draw("node", name, at) * 2**62)
        cloud.nodes[name] = Node(name=name, uid=uid, spec=spec, slice_name=slice_.name, created_at=at)


def _flicker(cloud: Cloud, slice_: QueuedResource, at: float, every: float) -> None:
    if any(True for _ in cloud.nodes_of(slice_)):
        drop_nodes(cloud, slice_)
    else:
        _create_nodes(cloud, slice_, at)
    cloud.later(slice_, at + every, lambda now: _flicker(cloud, slice_, now, every))


def _ready(cloud: Cloud, slice_: QueuedResource, at: float) -> None:
    for node in cloud.nodes_of(slice_):
        node.state = "READY"
        cloud.begin_bill(node.name, node.created_at if cloud.scenario.billed_from == "created" else at)
        node.health = "TIMEOUT" if "never-healthy" in slice_.troubles else "HEALTHY"
        bring_up(cloud, slice_, node)
