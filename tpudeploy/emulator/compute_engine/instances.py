"""Instances: insert, look, delete, metadata, labels and tags, reset, stop and start, guest attributes, serial port."""

from __future__ import annotations

from base64 import b64encode
from collections.abc import Callable, Mapping
from hashlib import blake2b
from typing import Any

from tpudeploy.emulator import discovery, listings, own_end, refusals, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import insert_request, life, operations, texts
from tpudeploy.emulator.compute_engine.lists import aggregated, listed
from tpudeploy.emulator.compute_engine.operations import HOST
from tpudeploy.emulator.nodes import guest_attribute_items
from tpudeploy.emulator.records import Instance, ZoneOperation
from tpudeploy.emulator.wire import ApiCall

_PORT = 8000
_HOST_REPORT_SECONDS = 660.0  # Google's page: 10 to 12 minutes, in which the machine runs
_SERIAL_BYTES = 1024 * 1024  # of the output, the last are matches
_SERIAL_PREFIX = "google_metadata_script_runner[1042]: startup-script: "
# The parts that a call replaces: the field of the instance, its fingerprint, and the cause of a refusal.
_PARTS = {
    "setMetadata": ("metadata", "Metadata", "fingerprint", "metadata-changed"),
    "setTags": ("tags", "Tags", "fingerprint", "tags-changed"),
    "setLabels": ("labels", "InstancesSetLabelsRequest", "labelFingerprint", "labels-changed"),
}
_CHECKS: Mapping[str, Callable[[Mapping[str, Any]], None]] = {
    "metadata": insert_request.check_metadata,
    "tags": insert_request.check_tags,
    "labels": insert_request.check_labels,
}


def insert(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    request = insert_request.read(cloud, call)
    earlier = operations.find_earlier(cloud, call, "insert")
    if earlier is not None:
        return operations.render(cloud, earlier)
    name = f"projects/{call.project}/zones/{call.zone}/instances/{request.body['name']}"
    if name in cloud.instances:
        raise texts.refuse("already-exists", name=name)
    instance = Instance(
        name=name,
        project=call.project,
        zone=call.zone,
        body=request.body,
        accelerator=request.accelerator,
        model=request.model,
        uid=int(cloud.scenario.draw("instance", name, cloud.clock.now()) * 2**62),
        **cloud.life_of(call),
    )
    layer, refusal = refusals.later_refusal(instance, call.troubles, cloud.scenario.project.flex_start_zones)
    cloud.instances[name] = instance
    instance.insert_operation = operations.begin(cloud, call, instance, "insert")
    cloud.track_creation(instance, instance.insert_operation)
    life.start(cloud, instance, layer, refusal)
    return operations.render(cloud, instance.insert_operation)


def get(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return render(cloud, _find(cloud, call))


def list_(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    if listings.silent_zones(cloud, call):
        raise wire.refuse(14, "The service is currently unavailable.")  # UNVERIFIED
    rows = [row for zone, row in _rows(cloud, call) if zone == call.zone]
    return listed(call, "compute#instanceList", rows)


def aggregated_list(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return aggregated(cloud, call, "compute#instanceAggregatedList", "instances", _rows(cloud, call))


def delete(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Delete an instance. One that still waits and is not visible cannot be deleted: it is not found."""

    def carry_out(instance: Instance, operation: ZoneOperation) -> None:
        now = cloud.clock.now()
        ignored = call.troubles.get("deletion-ignored")
        refusal = texts.status("delete-refused", life.facts_of(instance))
        at = now + instance.timings.delete_refused
        if instance.state in ("PROVISIONING", "STAGING") and ignored is not None:
            instance.deletes_when_active |= ignored.settings["takes_effect"]
            if ignored.settings["outcome"] == "done":
                cloud.agenda.add(at, lambda moment: operation.succeed(moment, "Empty", {}))
            elif ignored.settings["outcome"] == "failed":
                cloud.agenda.add(at, lambda moment: operation.fail(moment, refusal))
        elif "deletion-hangs" in call.troubles:
            instance.enter("STOPPING")
        elif "delete-refused" in call.troubles:
            cloud.agenda.add(at, lambda moment: operation.fail(moment, refusal))
        else:
            life.delete(cloud, instance, operation, now)

    return _operate(cloud, call, carry_out)


def replace_part(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Replace metadata, tags or labels. The fingerprint must be that of the part that is replaced, also at the end."""
    field, schema, key, cause = _PARTS[call.method.rpartition(".")[2]]
    request = discovery.accept(call.body or {}, schema, insert_request.DOCUMENT, at="request")
    part = request.get("labels", {}) if field == "labels" else {"items": request.get("items", [])}
    _CHECKS[field](part)

    def has_changed(instance: Instance) -> bool:
        return request.get(key) != _fingerprint(instance, field)

    def carry_out(instance: Instance, operation: ZoneOperation) -> None:
        if has_changed(instance):
            raise texts.refuse(cause)

        def end(at: float) -> None:
            if has_changed(instance):
                operation.fail(at, texts.status(cause, {}))
                return
            instance.body = {**instance.body, field: part}
            own_end.watch(cloud, instance, instance.host)
            operation.succeed(at, "Empty", {})

        cloud.agenda.add(cloud.clock.now() + instance.timings.patch, end)

    return _operate(cloud, call, carry_out)


def reset(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Reboot the machine: its disk stays, and the startup script runs again."""

    def carry_out(instance: Instance, operation: ZoneOperation) -> None:
        _require(instance, "RUNNING")

        def end(at: float) -> None:
            if instance.host is not None:
                instance.host.reboot()
            operation.succeed(at, "Empty", {})

        cloud.agenda.add(cloud.clock.now() + instance.timings.reset, end)

    return _operate(cloud, call, carry_out)


def stop(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    def carry_out(instance: Instance, operation: ZoneOperation) -> None:
        _require(instance, "RUNNING")
        life.stop(cloud, instance, cloud.clock.now(), "STOP", operation)

    return _operate(cloud, call, carry_out)


def start(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    def carry_out(instance: Instance, operation: ZoneOperation) -> None:
        _require(instance, "TERMINATED", "STOPPED")
        instance.insert_operation = operation  # what ends when the machine runs
        life.provision(cloud, instance, cloud.clock.now())

    return _operate(cloud, call, carry_out)


def report_host_as_faulty(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Take the report of a host: minutes later the machine stops, and continues on another host or not at all.

    Google's page describes GPU machines of reservations; that TPU machines are taken is UNVERIFIED.
    """
    schema = "InstancesReportHostAsFaultyRequest"
    request = discovery.accept(call.body or {}, schema, insert_request.DOCUMENT, at="request")
    if not request.get("faultReasons"):
        raise texts.invalid("faultReasons", "", "At least one fault reason is required.")
    if (schedule := request.get("disruptionSchedule", "")) != "IMMEDIATE":
        raise texts.invalid("disruptionSchedule", schedule, "Only IMMEDIATE is supported.")
    if not cloud.scenario.compute_engine.takes_host_reports:
        raise texts.invalid("instance", call.query["instance"], "The machine type does not support this operation.")

    def carry_out(instance: Instance, operation: ZoneOperation) -> None:
        _require(instance, "RUNNING")

        def end(at: float) -> None:
            operation.succeed(at, "Empty", {})
            if instance.state == "RUNNING":
                life.restart_on_other_host(cloud, instance, at)

        cloud.agenda.add(cloud.clock.now() + _HOST_REPORT_SECONDS, end)

    return _operate(cloud, call, carry_out)


def get_guest_attributes(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return what the machine wrote. Nothing written, and guest attributes that are not enabled, are not found."""
    instance = _find(cloud, call)
    path, key = call.query.get("queryPath", ""), call.query.get("variableKey", "")
    items = [] if instance.host is None else guest_attribute_items(instance.host, path or key)
    if not items:
        raise texts.refuse("not-found", name=f"{path or key}' of type 'Guest Attribute")  # UNVERIFIED
    link = {"kind": "compute#guestAttributes", "selfLink": f"{HOST}/{instance.name}/getGuestAttributes"}
    if key and not path:
        return {**link, "variableKey": key, "variableValue": items[0]["value"]}
    return {**link, "queryPath": path, "queryValue": {"items": items}}


def get_serial_port_output(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the last megabyte of what the startup script printed; a start below 0 counts from the end."""
    instance = _find(cloud, call)
    log = "" if instance.host is None else instance.host.log()
    output = "".join(f"{_SERIAL_PREFIX}{line}\n" for line in log.splitlines()).encode()
    if call.query.get("port", "1") != "1":
        output = b""
    start = int(call.query.get("start", "0"))
    oldest = max(0, len(output) - _SERIAL_BYTES)
    begins = min(len(output), max(oldest, start if start >= 0 else len(output) + start))
    return {
        "kind": "compute#serialPortOutput",
        "selfLink": f"{HOST}/{instance.name}/serialPort",
        "contents": output[begins:].decode("utf-8", "replace"),
        "start": str(begins),
        "next": str(len(output)),
    }


def render(cloud: Cloud, instance: Instance) -> dict[str, Any]:
    place = f"{HOST}/projects/{instance.project}/zones/{instance.zone}"
    body: dict[str, Any] = {
        **instance.body,
        "kind": "compute#instance",
        "id": str(instance.uid),
        "creationTimestamp": wire.timestamp(instance.created_at),
        "status": instance.state,
        "zone": place,
        "machineType": f"{place}/machineTypes/{instance.machine_type}",
        "selfLink": f"{HOST}/{instance.name}",
        "labelFingerprint": _fingerprint(instance, "labels"),
        "metadata": _with_fingerprint(instance, "metadata"),
        "tags": _with_fingerprint(instance, "tags"),
        "disks": [_disk(instance, index) for index in range(len(instance.body["disks"]))],
        "networkInterfaces": [_interface(cloud, instance, row) for row in instance.body["networkInterfaces"]],
    }
    body.pop("params", None)  # it is taken and never shown
    for key, moment in (("lastStartTimestamp", instance.started_at), ("lastStopTimestamp", instance.stopped_at)):
        if moment is not None:
            body[key] = wire.timestamp(moment)
    status: dict[str, Any] = {}
    if instance.ends_at is not None and cloud.scenario.compute_engine.shows_run_end:
        status["scheduling"] = {"terminationTimestamp": wire.timestamp(instance.ends_at)}
    if instance.maintenance is not None:
        status["upcomingMaintenance"] = instance.maintenance
    return body | ({"resourceStatus": status} if status else {})


def _rows(cloud: Cloud, call: ApiCall) -> list[tuple[str, dict[str, Any]]]:
    """Return the zone and the form of every instance of the project that lists show."""
    now = cloud.clock.now()
    return [
        (instance.zone, render(cloud, instance))
        for _, instance in sorted(cloud.instances.items())
        if instance.project == call.project and instance.state != "WAITING" and instance.is_listed(now)
    ]


def _find(cloud: Cloud, call: ApiCall) -> Instance:
    name = f"projects/{call.project}/zones/{call.zone}/instances/{call.query['instance']}"
    instance = cloud.instances.get(name)
    if instance is None or instance.state == "WAITING" or not instance.is_visible(cloud.clock.now()):
        raise texts.refuse("not-found", name=name)
    return instance


def _operate(cloud: Cloud, call: ApiCall, carry_out: Callable[[Instance, ZoneOperation], None]) -> dict[str, Any]:
    """Begin the operation of a call; a repeated request id gives the first one again."""
    insert_request.check_request_id(call)
    verb = call.method.rpartition(".")[2]
    earlier = operations.find_earlier(cloud, call, verb)
    if earlier is not None:
        return operations.render(cloud, earlier)
    instance = _find(cloud, call)
    operation = operations.begin(cloud, call, instance, verb)
    try:
        carry_out(instance, operation)
    except wire.ApiError:
        del cloud.zone_operations[operation.name]
        raise
    return operations.render(cloud, operation)


def _require(instance: Instance, *states: str) -> None:
    if instance.state not in states:
        raise texts.refuse("state-refused", name=instance.name)


def _fingerprint(instance: Instance, field: str) -> str:
    part = instance.body.get(field, {})
    content = part if field == "labels" else part.get("items", [])
    return b64encode(blake2b(repr(content).encode(), digest_size=8).digest()).decode()


def _with_fingerprint(instance: Instance, field: str) -> dict[str, Any]:
    items = instance.body.get(field, {}).get("items", [])
    kind = {"kind": "compute#metadata"} if field == "metadata" else {}
    return {**kind, "fingerprint": _fingerprint(instance, field), **({"items": items} if items else {})}


def _disk(instance: Instance, index: int) -> dict[str, Any]:
    """Return an attached disk: how it was made is not shown."""
    disk = {key: value for key, value in instance.body["disks"][index].items() if key != "initializeParams"}
    source = f"{HOST}/projects/{instance.project}/zones/{instance.zone}/disks/{instance.id}"
    attributes = {"kind": "compute#attachedDisk", "index": index, "type": "PERSISTENT", "mode": "READ_WRITE"}
    return {**attributes, **disk, "source": source, "diskSizeGb": str(instance.disk_gb)}


def _interface(cloud: Cloud, instance: Instance, request: Mapping[str, Any]) -> dict[str, Any]:
    """Return a network interface. Addresses are there as soon as the machine is."""
    attributes: dict[str, Any] = {"kind": "compute#networkInterface", "name": "nic0", **request}
    configs = [{"kind": "compute#accessConfig", **config} for config in request.get("accessConfigs", ())]
    host = instance.host
    if host is not None:
        attributes["networkIP"] = host.address
        configs = [{**config, "natIP": host.address} for config in configs]
        if not cloud.addresses.has_own:  # as for a node of Cloud TPU
            attributes["emulatedServerPort"] = host.port_for(_PORT)
    return attributes | ({"accessConfigs": configs} if configs else {})
