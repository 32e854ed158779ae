"""The life of an instance: a timeline on the injected clock, from the insert to the end.

    WAITING ─queued─▶ PENDING (flex-start) ─waiting─▶ PROVISIONING ─▶ STAGING ─▶ RUNNING ─▶ STOPPING ─▶ TERMINATED, 404
       └─▶ 404 (L2)      └─▶ 404 (lapsed)                 └─▶ 404 (L3)             └─▶ REPAIRING ─▶ RUNNING
Words in lower case are Timings. Every function gets the moment at which it happens.
"""

from __future__ import annotations

from functools import partial
from math import inf
from typing import Any

from tpudeploy.emulator import lifecycle, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import operations, quota, texts
from tpudeploy.emulator.machines import bring_up_instance, stop_instance, take_down_instance
from tpudeploy.emulator.records import Group, Instance, ZoneOperation
from tpudeploy.emulator.trouble import next_hour

QUEUEING = ("WAITING", "PENDING")
_STAGING_SHARE = 0.25  # of `provisioning`
_LONGEST_WAIT = 7200  # of a flex-start request that names none; UNVERIFIED
_LATE = 30.0  # how late Google ends a run, at most


def start(cloud: Cloud, instance: Instance, layer: str, refusal: wire.RpcStatus | None) -> None:
    """Start the life of an instance. `refusal` is what its insert operation ends with."""
    instance.state = "WAITING"
    instance.refusal = refusal if layer == "L3" else None
    at = instance.created_at + instance.timings.queued
    if refusal is not None and layer != "L3":
        cloud.later(instance, at, lambda now: fail(cloud, instance, now, refusal))
    elif instance.model == "FLEX_START":
        cloud.later(instance, at, lambda now: _queue(cloud, instance, now))
    else:
        cloud.later(instance, at, lambda now: _allocate(cloud, instance, now))


def _allocate(cloud: Cloud, instance: Instance, at: float) -> None:
    """Grant the chips at once, or refuse: all models but flex-start know no queue."""
    if (excess := quota.excess(cloud, instance)) is not None:
        fail(cloud, instance, at, excess)
    elif "wait-for-ever" in instance.troubles or lifecycle.opens_at(cloud, instance, at) > at:
        fail(cloud, instance, at, _status("stockout", instance))
    else:
        provision(cloud, instance, at)


def _queue(cloud: Cloud, instance: Instance, at: float) -> None:
    """Wait for capacity, and for quota too: both look the same from outside."""
    if cloud.scenario.compute_engine.shows_pending:
        instance.enter("PENDING")
    if "overstays" not in instance.troubles:
        valid = instance.body.get("params", {}).get("requestValidForDuration", {"seconds": _LONGEST_WAIT})
        cloud.later(instance, instance.created_at + int(valid["seconds"]), lambda now: _lapse(cloud, instance, now))
    if "wait-for-ever" not in instance.troubles:
        _grant_later(cloud, instance, at)


def _grant_later(cloud: Cloud, instance: Instance, at: float) -> None:
    granted = lifecycle.opens_at(cloud, instance, at + instance.timings.waiting)

    def grant(now: float) -> None:
        if quota.excess(cloud, instance) is None:
            provision(cloud, instance, now)
        else:
            _grant_later(cloud, instance, now + 1.0)

    if granted < inf:
        cloud.later(instance, granted, grant)


def _lapse(cloud: Cloud, instance: Instance, at: float) -> None:
    """Remove a request that was not granted in time: what its operation then says is UNVERIFIED."""
    if cloud.scenario.compute_engine.lapse_has_error:
        fail(cloud, instance, at, _status("lapsed", instance))
    else:
        end_insert(instance, at)
        forget(cloud, instance, at)


def provision(cloud: Cloud, instance: Instance, at: float) -> None:
    instance.enter("PROVISIONING")
    if (loop := instance.fault_settings("provisioning-loop")) is not None:
        refusal = _status("internal-error", instance)
        cloud.later(instance, at + loop["for"], lambda now: fail(cloud, instance, now, refusal))
        return
    staged = at + instance.timings.provisioning * (1 - _STAGING_SHARE)
    cloud.later(instance, staged, lambda now: _stage(cloud, instance, now))


def _stage(cloud: Cloud, instance: Instance, at: float) -> None:
    instance.enter("STAGING")
    ends = at + instance.timings.provisioning * _STAGING_SHARE
    refusal = instance.refusal
    if refusal is not None:
        cloud.later(instance, ends, lambda now: fail(cloud, instance, now, refusal))
    else:
        cloud.later(instance, ends, lambda now: _run(cloud, instance, now))


def _run(cloud: Cloud, instance: Instance, at: float) -> None:
    """Run the machine: this is true of the machine alone, its script has only begun."""
    instance.enter("RUNNING")
    instance.started_at = at
    cloud.begin_bill(instance.name, at)
    _end_insert_of_success(cloud, instance, at)
    if instance.ends_at is None and (run := _run_seconds(instance)) is not None:
        instance.ends_at = at + run
    if instance.ends_at is not None and cloud.scenario.compute_engine.ends_runs:
        late = 0.0 if not instance.jitter.share else instance.jitter.vary(_LATE / 2, "end of the run")
        cloud.later(
            instance, max(at, instance.ends_at) + late, lambda now: stop(cloud, instance, now, _action(instance))
        )
    cloud.later(instance, at + instance.timings.node_ready, lambda _now: bring_up_instance(cloud, instance))
    if instance.deletes_when_active:
        delete(cloud, instance, None, at)
    for fault, strike in _STRIKES.items():
        if (settings := instance.fault_settings(fault)) is not None:
            hour = settings.get("hour")
            moment = at + settings["after"] if hour is None else next_hour(hour, at)
            cloud.later(instance, moment, partial(strike, cloud, instance))


def preempt(cloud: Cloud, instance: Instance, at: float, *, notice: float = 0.0) -> None:
    """Preempt an instance: it stops, then it is deleted or stays, as its request says.

    With a `notice`, its machine finds that in its metadata, and it happens this number of seconds later.
    """
    settings = _forget_fault(instance, "preempt")
    notice = notice or settings.get("notice", 0.0)
    if notice:
        if instance.host is not None:
            instance.host.announce_preemption()
        cloud.later(instance, at + notice, lambda now: preempt(cloud, instance, now))
        return
    # That its operation lasts until the machine stops is UNVERIFIED.
    operations.record_event(
        cloud,
        instance,
        "compute.instances.preempted",
        at,
        "Instance was preempted.",
        seconds=instance.timings.preempted,
    )
    instance.changes += 1
    cloud.later(instance, at + instance.timings.preempted, lambda now: stop(cloud, instance, now, _action(instance)))


def stop(cloud: Cloud, instance: Instance, at: float, action: str, operation: ZoneOperation | None = None) -> None:
    """Stop the machine. `action` is DELETE or STOP: with STOP the instance stays, and so does its disk."""
    instance.enter("STOPPING")
    cloud.end_bill(instance.name, at)
    instance.open_operations += [] if operation is None else [operation]
    stop_instance(instance)

    def end(now: float) -> None:
        if action == "DELETE":
            forget(cloud, instance, now)
        else:
            instance.enter(cloud.scenario.compute_engine.stopped_state)
            instance.stopped_at, instance.started_at = now, None
            _close_operations(instance, now)

    cloud.later(instance, at + instance.timings.suspending, end)


def restart_on_other_host(
    cloud: Cloud, instance: Instance, at: float, *, shows: str = "REPAIRING", seconds: float = 120.0
) -> None:
    """Take the machine away; it runs again after `seconds` if the request has automaticRestart, else it is gone."""
    cloud.end_bill(instance.name, at)
    stop_instance(instance)
    if not instance.scheduling["automaticRestart"]:
        stop(cloud, instance, at, "STOP")
        return
    instance.enter(shows)

    def restart(now: float) -> None:
        operations.record_event(cloud, instance, "compute.instances.automaticRestart", now, "Instance was restarted.")
        provision(cloud, instance, now)

    cloud.later(instance, at + seconds, restart)


def delete(cloud: Cloud, instance: Instance, operation: ZoneOperation | None, at: float) -> None:
    """Delete an instance in any state: what else is under way with it, its insert too, ends with it."""
    instance.open_operations += [] if operation is None else [operation]
    if instance.is_being_deleted:
        return
    was_queueing, instance.is_being_deleted = instance.state in QUEUEING, True
    instance.enter("STOPPING")
    cloud.end_bill(instance.name, at)
    take_down_instance(instance)

    def end(now: float) -> None:
        end_insert(instance, now, _status("withdrawn", instance))
        forget(cloud, instance, now)

    cloud.later(instance, at + (0.0 if was_queueing else instance.timings.deleting), end)


def fail(cloud: Cloud, instance: Instance, at: float, refusal: wire.RpcStatus) -> None:
    end_insert(instance, at, refusal)
    forget(cloud, instance, at)


def forget(cloud: Cloud, instance: Instance, at: float) -> None:
    take_down_instance(instance)
    instance.changes += 1
    cloud.instances.pop(instance.name, None)
    _close_operations(instance, at)


def end_insert(instance: Instance, at: float, refusal: wire.RpcStatus | None = None) -> None:
    """End the insert operation, if it is still open."""
    operation = instance.insert_operation
    if operation is None or operation.ended_at is not None:
        return
    if refusal is None:
        operation.succeed(at, "Empty", {})
    else:
        operation.fail(at, refusal)


def _end_insert_of_success(cloud: Cloud, instance: Instance, at: float) -> None:
    slow = (instance.fault_settings("slow-operation") or {"seconds": 0.0})["seconds"]
    refusal = None
    if (settings := instance.fault_settings("operation-fails")) is not None:
        refusal = texts.status("backend-error", {}, message=settings["message"], code=settings.get("code"))
    cloud.agenda.add(at + slow, lambda now: end_insert(instance, now, refusal))


def _strike_host(cloud: Cloud, instance: Instance, at: float) -> None:
    settings = _forget_fault(instance, "host-error")
    operations.record_event(cloud, instance, "compute.instances.hostError", at, "Instance terminated by host error.")
    restart_on_other_host(cloud, instance, at, shows=settings["shows"], seconds=settings["down"])


def _announce_maintenance(cloud: Cloud, instance: Instance, at: float) -> None:
    settings = _forget_fault(instance, "maintenance")
    begins = at + settings["notice"]
    instance.maintenance = {
        "type": "SCHEDULED",
        "maintenanceStatus": "PENDING",
        "windowStartTime": wire.timestamp(begins),
        "windowEndTime": wire.timestamp(begins + settings["window"]),
        "latestWindowStartTime": wire.timestamp(begins),
        "canReschedule": False,
        "maintenanceReasons": [settings["reason"]],
    }

    def maintain(now: float) -> None:
        event = "compute.instances.terminateOnHostMaintenance"
        operations.record_event(cloud, instance, event, now, "Instance was terminated for host maintenance.")
        instance.maintenance = {**(instance.maintenance or {}), "maintenanceStatus": "ONGOING"}
        restart_on_other_host(cloud, instance, now, shows="TERMINATED", seconds=settings["window"])
        cloud.agenda.add(now + settings["window"], lambda _now: setattr(instance, "maintenance", None))

    cloud.later(instance, begins, maintain)


def _end_run(cloud: Cloud, instance: Instance, at: float) -> None:
    stop(cloud, instance, at, _action(instance))


_STRIKES = {
    "preempt": preempt,
    "host-error": _strike_host,
    "maintenance": _announce_maintenance,
    "vanish": forget,
    "flex-end": _end_run,
}


def _forget_fault(instance: Instance, fault: str) -> dict[str, Any]:
    """Return the settings of a fault that strikes now: it strikes one life once."""
    settings = instance.fault_settings(fault) or {}
    instance.troubles = {name: row for name, row in instance.troubles.items() if name != fault}
    return settings


def _action(instance: Instance) -> str:
    return str(instance.scheduling.get("instanceTerminationAction", "STOP"))


def _run_seconds(instance: Instance) -> float | None:
    run = instance.scheduling.get("maxRunDuration")
    return None if run is None else float(run["seconds"])


def _close_operations(instance: Instance, at: float) -> None:
    """End the operations that wait for the instance to stop or to be gone."""
    for operation in instance.open_operations:
        operation.succeed(at, "Empty", {})
    instance.open_operations = []


def _status(cause: str, instance: Instance) -> texts.ComputeStatus:
    return texts.status(cause, facts_of(instance))


def facts_of(instance: Instance | Group) -> dict[str, str]:
    """Return what a text may name."""
    return {
        "project": instance.project,
        "zone": instance.zone,
        "region": instance.zone.rpartition("-")[0],
        "machine": instance.accelerator.machine_type,
        "model": instance.model,
        "name": instance.name,
    }
