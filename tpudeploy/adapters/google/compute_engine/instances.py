"""TpuCloud over instances of Compute Engine. It observes and executes; decisions are made elsewhere.

docs/explanation/compute-engine.md has the table of phases, and what is safe where Google's behaviour is unverified.
"""

from __future__ import annotations

import re
import uuid
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from tpudeploy.adapters.google.body import moment
from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.compute_engine.aggregated import list_all_zones
from tpudeploy.adapters.google.compute_engine.body import (
    accelerator_type_of,
    host_report,
    instance,
    metadata_items,
    metadata_of,
    provisioning_of,
    read_back,
)
from tpudeploy.adapters.google.compute_engine.group_body import WORKERS_KEY
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.reports import NAMESPACE, BootReports
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.adapters.google.states import INSTANCE
from tpudeploy.adapters.google.translate import (
    Absent,
    Exists,
    PreconditionFailed,
    send_deletion,
    send_request,
    send_reset,
    translate_errors,
    translate_read_errors,
)
from tpudeploy.adapters.google.verdicts import classify_request, error_text
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.host_fault import HostFault
from tpudeploy.domain.names import ZONE, Zone
from tpudeploy.domain.orphans import LINEAGE_LABEL, UNMARKED, CloudResource, Listing, mark_in, mark_of
from tpudeploy.domain.slices import (
    BootReport,
    CreateOperation,
    NodeUpdate,
    Phase,
    Refusal,
    Slice,
    SliceEnd,
    SliceRef,
    SliceRequest,
)
from tpudeploy.domain.together import together
from tpudeploy.node.fingerprint import text_print
from tpudeploy.node.node_facts import SCRIPT_KEY, SPEC_KEY
from tpudeploy.node.own_end import cause_in_request_id
from tpudeploy.ports import Clock

_PAGE = 500
# Before it, the console may have the time and the host.
_SCRIPT_PREFIX = re.compile(r"^(?:.*\s)?google_metadata_script_runner(?:\[\d+\])?: startup-script: ?")
# From this number of slices in a project on, one list replaces the calls for each.
_MIN_SLICES = 8
# An instance that Google ended, and that is to restart by itself, restarts within minutes. One that a user stopped
# does not, and shows as the same state.
_RESTART_SECONDS = 900.0
# How often a change of an instance's metadata, labels or tags is sent while another client changes them too.
_UPDATES = 4
# A retry of an insert after a crash carries the same id, by which its operation can be found.
_REQUEST_IDS = uuid.UUID("0f5f0ac1-9a64-4a3e-8d4a-0b1f0f7f0c55")


class ComputeEngine:
    """See `ports.TpuCloud`. `threads` is the maximum number of parallel calls for one answer."""

    def __init__(self, connection: CloudConnection, clock: Clock, *, threads: int = 1) -> None:
        self._connection = connection
        self._clock = clock
        self._reports = BootReports(clock, self.guest_attributes)
        self._threads = threads

    def slices(self, refs: Iterable[SliceRef]) -> tuple[Slice, ...]:
        wanted_refs = tuple(refs)
        items = self._list_projects(wanted_refs)
        answers = together(self._threads, lambda ref: self._slice(ref, items.get(_key(ref))), wanted_refs)
        return tuple(slice_ for slice_ in answers if slice_ is not None)

    def list_marked(self, project: str, zones: Iterable[Zone], *, machines: bool = True) -> Listing:
        del machines  # an instance is its own machine
        instances, silent_zones, searched_zones = self._list(project, zones, f"labels.{LINEAGE_LABEL}:*")
        resources = (self._resource(project, zone, item) for zone, item in instances if not _is_worker(item))
        return Listing(
            project=project,
            resources=tuple(resource for resource in resources if resource.mark != UNMARKED),
            unreachable=tuple(sorted(silent_zones)),
            searched_zones=searched_zones,
        )

    def list_named(self, project: str, name: str, zones: Iterable[Zone], *, zone: Zone | None = None) -> Listing:
        if zone is None:
            instances, silent_zones, searched_zones = self._list(project, zones, f'name = "{name}"')
        else:
            item = self._get(SliceRef(name=name, project=project, zone=zone))
            instances, silent_zones = [] if item is None else [(zone, item)], set()
            searched_zones = (zone,)
        resources = tuple(self._resource(project, where, item) for where, item in instances if not _is_worker(item))
        return Listing(
            project=project, resources=resources, unreachable=tuple(sorted(silent_zones)), searched_zones=searched_zones
        )

    def request(self, request: SliceRequest) -> str | None:
        call = self._instances().insert(
            project=request.project,
            zone=request.zone,
            requestId=request_id(request.project, request.zone, request.name),
            body=instance(request),
        )
        return send_request(call, request)

    def release(self, ref: SliceRef) -> str | None:
        # An absent instance can still appear while its insert operation is open: `slices` observes that.
        return send_deletion(self._instances().delete(**_path(ref)), ref.name)

    def update(self, ref: SliceRef, node: NodeUpdate) -> None:
        self._reports.forget(ref)  # the machine is about to write a new report
        for _ in range(_UPDATES):
            try:
                self._send_changes(ref, node)
            except PreconditionFailed:
                # Somebody else changed the same part since it was read, so its fingerprint is another one now.
                continue
            return
        raise errors.Fault(f"Could not update {ref.name}: something else changes it at the same time.")

    def restart(self, ref: SliceRef) -> None:
        self._reports.forget(ref)
        send_reset(self._instances().reset(**_path(ref)), ref.name)

    def report_host(self, ref: SliceRef, fault: HostFault) -> str | None:
        """See `ports.TpuCloud`. Only a running instance has a host that can be reported."""
        call = self._instances().reportHostAsFaulty(
            **_path(ref),
            requestId=request_id(ref.project, ref.zone, f"{ref.name}/host"),
            body=host_report(fault),
        )
        try:
            with translate_errors(f"report the host of {ref.name}"):
                operation: dict[str, Any] = call.execute(num_retries=0)
        except (Absent, Exists, PreconditionFailed) as cause:
            raise errors.Fault(f"Could not report the host of {ref.name}: {cause}") from cause
        return operation.get("name")

    def report(self, ref: SliceRef) -> BootReport | None:
        return self._reports.read(ref)

    def look_up(self, ref: SliceRef) -> Slice | None:
        """Return an instance by its name alone, or None for a 404."""
        item = self._get(ref)
        return None if item is None else self._slice_of(ref, item)

    def lines(self, ref: SliceRef) -> tuple[str, ...]:
        """Return the last megabyte of the serial console, which has the output of the startup script of every boot.

        The guest agent's prefix is removed from the script's lines. Those of the kernel and of other units stay.
        """
        try:
            with translate_read_errors(f"read the log of {ref.name}"):
                answer: dict[str, Any] = (
                    self._instances().getSerialPortOutput(**_path(ref), port=1).execute(num_retries=0)
                )
        except Absent:
            return ()
        except (Exists, PreconditionFailed) as cause:
            raise errors.CloudError(f"Could not read the log of {ref.name}: {cause}") from cause
        return tuple(_SCRIPT_PREFIX.sub("", line) for line in str(answer.get("contents", "")).splitlines())

    def _slice(self, ref: SliceRef, item: Mapping[str, Any] | None) -> Slice | None:
        item = item or self._get(ref)
        if item is not None:
            return self._slice_of(ref, item)
        # Once it has run, an absent instance is gone: its insert operation has no say in that.
        return None if ref.was_granted else self._without_instance(ref)

    def _without_instance(self, ref: SliceRef) -> Slice | None:
        """Return what the insert operation says of an instance that does not exist, or None where it is gone."""
        operation = self._insert_operation(ref)
        if operation is None:
            return None
        status = str(operation.get("status", "PENDING"))
        if status != "DONE":
            # A flex-start insert can stay open for as long as the request waits for capacity.
            phase = Phase.QUEUED if ref.provisioning is Provisioning.FLEX_START else Phase.CREATING
            return Slice(
                name=ref.name, zone=ref.zone, phase=phase, raw_state=f"insert {status}", operation=CreateOperation()
            )
        refusal = operation_refusal(operation, ref.provisioning)
        # A deletion ends an open insert with an error, which refuses nothing.
        if refusal is not None and ref.deletion is None:
            return Slice(
                name=ref.name,
                zone=ref.zone,
                phase=Phase.REFUSED,
                raw_state="REFUSED",
                refusal=refusal,
                operation=ended_operation(operation),
            )
        # The operation may have ended after the instance was looked up.
        item = self._get(ref)
        if item is not None:
            return self._slice_of(ref, item)
        # An instance that was never listed may appear some time after its operation has succeeded.
        if ref.was_visible or refusal is not None:
            return None
        ended = ended_operation(operation)
        return Slice(name=ref.name, zone=ref.zone, phase=Phase.CREATING, raw_state="insert DONE", operation=ended)

    def _insert_operation(self, ref: SliceRef) -> Mapping[str, Any] | None:
        """Return the operation that inserts the instance, by its name, or by the request's id if that is not known.

        Return None where Google no longer knows it, or never received the request.
        """
        calls = self._connection.collection("compute", "v1", "zoneOperations")
        place = {"project": ref.project, "zone": ref.zone}
        if ref.operation is not None:
            try:
                with translate_read_errors(f"look at what became of {ref.name}"):
                    operation: dict[str, Any] = calls.get(**place, operation=ref.operation).execute(num_retries=0)
            except Absent:
                pass  # Google keeps operations for a limited time
            else:
                return operation
        id_ = request_id(ref.project, ref.zone, ref.name)
        request = calls.list(**place, filter=f'clientOperationId = "{id_}"')
        with translate_read_errors(f"look at what became of {ref.name}"):
            for page in pages(calls, request):
                for candidate in page.get("items", ()):
                    if candidate.get("clientOperationId") == id_:
                        return dict(candidate)
        return None

    def end(self, ref: SliceRef) -> SliceEnd | None:
        """See `ports.TpuCloud`. Operations have the moment, the caller's request id, and what Google did itself."""
        calls = self._connection.collection("compute", "v1", "zoneOperations")
        target = f"projects/{ref.project}/zones/{ref.zone}/instances/{ref.name}"
        return recorded_end(calls, {"project": ref.project, "zone": ref.zone}, target)

    def _slice_of(self, ref: SliceRef, item: Mapping[str, Any]) -> Slice:
        interface: Mapping[str, Any] = next(iter(item.get("networkInterfaces", ())), {})
        access: Mapping[str, Any] = next(iter(interface.get("accessConfigs", ())), {})
        raw = str(item.get("status", "STATUS_UNSPECIFIED"))
        phase, metadata = self._phase(ref, item), metadata_of(item)
        return Slice(
            name=ref.name,
            zone=ref.zone,
            phase=phase,
            raw_state=raw,
            undeleted=self._deletion_failure(ref, phase),
            created_at=moment(item.get("lastStartTimestamp") or item.get("creationTimestamp")),
            ends_at=_end(item),
            provisioning=provisioning_of(item),
            accelerator_type=accelerator_type_of(item),
            internal_ip=interface.get("networkIP") or None,
            external_ip=access.get("natIP") or None,
            # Our own emulator, which may lack addresses, gives the server's port in a field of its own.
            port=interface.get("emulatedServerPort") or None if self._connection.emulator_host else None,
            labels=dict(item.get("labels", {})),
            metadata={key: text for key, text in metadata.items() if key != SCRIPT_KEY},
            script=text_print(metadata[SCRIPT_KEY]) if SCRIPT_KEY in metadata else "",
            tags=tuple(item.get("tags", {}).get("items", ())),
        )

    def _phase(self, ref: SliceRef, item: Mapping[str, Any]) -> Phase:
        # A state that is not known releases nothing: the probe shows whether its server answers.
        phase = INSTANCE.get(str(item.get("status")), Phase.UP)
        is_starting = phase in {Phase.QUEUED, Phase.PROVISIONING}
        # A machine that has run before and starts again was restarted by Google. It has not been lost, and is not late.
        if is_starting and ref.was_granted:
            return Phase.UP
        if phase is Phase.HUSK and item.get("scheduling", {}).get("automaticRestart"):
            stopped_at = moment(item.get("lastStopTimestamp"))
            if stopped_at is not None and self._clock.now() - stopped_at < _RESTART_SECONDS:
                return Phase.UP
        return phase

    def _deletion_failure(self, ref: SliceRef, phase: Phase) -> Refusal | None:
        """Return why the last deletion failed. The reason is for display only, so an error of this call is ignored."""
        if ref.deletion is None or phase in {Phase.SUSPENDING, Phase.LEAVING}:
            return None
        calls = self._connection.collection("compute", "v1", "zoneOperations")
        try:
            with translate_read_errors(f"look at the deletion of {ref.name}"):
                call = calls.get(project=ref.project, zone=ref.zone, operation=ref.deletion)
                operation: dict[str, Any] = call.execute(num_retries=0)
        except (Absent, PreconditionFailed, errors.CloudError):
            return None
        return operation_refusal(operation, ref.provisioning)

    def _send_changes(self, ref: SliceRef, node: NodeUpdate) -> None:
        """Send what differs. Each part has a fingerprint, without which Google would overwrite another's change.

        Raise PreconditionFailed where a fingerprint is out of date, `errors.Fault` where there is no instance.
        """
        item = self._get(ref)
        if item is None:
            raise errors.Fault(f"Could not update {ref.name}: it does not exist.")
        calls = self._instances()
        changes: list[Any] = []
        if item.get("labels", {}) != dict(node.labels):
            body: dict[str, Any] = {"labels": dict(node.labels), "labelFingerprint": item.get("labelFingerprint")}
            changes.append(calls.setLabels(**_path(ref), body=body))
        if sorted(item.get("tags", {}).get("items", ())) != sorted(node.tags):
            body = {"items": list(node.tags), "fingerprint": item.get("tags", {}).get("fingerprint")}
            changes.append(calls.setTags(**_path(ref), body=body))
        # The metadata come last: the machine acts on them.
        own_script = {key: text for key, text in metadata_of(item).items() if key == SCRIPT_KEY}
        metadata = {**own_script, **node.metadata}
        if metadata_of(item) != metadata:
            fingerprint = item.get("metadata", {}).get("fingerprint")
            body = {"items": metadata_items(metadata), "fingerprint": fingerprint}
            changes.append(calls.setMetadata(**_path(ref), body=body))
        for call in changes:
            try:
                with translate_read_errors(f"update {ref.name}"):
                    call.execute(num_retries=0)
            except Absent as cause:
                raise errors.Fault(f"Could not update {ref.name}: {cause}") from cause

    def metadata(self, ref: SliceRef) -> Mapping[str, str]:
        """Return the metadata of an instance with its startup script; none for one that does not exist."""
        item = self._get(ref)
        return {} if item is None else metadata_of(item)

    def guest_attributes(self, ref: SliceRef) -> Mapping[str, Any]:
        """Return what a machine wrote into our namespace, in Google's form. Raise the errors of Google's client."""
        answer: dict[str, Any] = (
            self._instances().getGuestAttributes(**_path(ref), queryPath=f"{NAMESPACE}/").execute(num_retries=0)
        )
        return answer

    def _get(self, ref: SliceRef) -> Mapping[str, Any] | None:
        try:
            with translate_read_errors(f"look at {ref.name}"):
                item: dict[str, Any] = self._instances().get(**_path(ref)).execute(num_retries=0)
                return item
        except Absent:
            return None

    def _list_projects(self, refs: Iterable[SliceRef]) -> Mapping[tuple[str, Zone, str], Mapping[str, Any]]:
        """Return the instances of projects in which a list saves calls. It may lack some, which are looked up."""
        refs_by_project: dict[str, list[SliceRef]] = {}
        for ref in refs:
            refs_by_project.setdefault(ref.project, []).append(ref)
        instances: dict[tuple[str, Zone, str], Mapping[str, Any]] = {}
        for project, own in refs_by_project.items():
            if len(own) < _MIN_SLICES:
                continue
            try:
                rows, _, _ = self._list(project, {ref.zone for ref in own}, f"labels.{LINEAGE_LABEL}:*")
            except errors.CloudError:
                continue  # each is looked up by its name, which shows the error where there is one
            instances |= {(project, zone, str(item["name"])): item for zone, item in rows}
        return instances

    def _list(
        self, project: str, zones: Iterable[Zone], filter_: str
    ) -> tuple[list[tuple[Zone, Mapping[str, Any]]], set[Zone], tuple[Zone, ...]]:
        """Return the instances with their zones, the zones that did not answer, and the zones if listed one by one.

        One call lists all zones. If Google does not answer that, each zone is listed by itself, because a zone that
        is down may fail the whole list. Raise `errors.Fault` if no zone answers.
        """
        try:
            with translate_errors(f"list the instances of {project}"):
                instances, silent_zones = list_all_zones(
                    self._connection, "instances", project=project, filter_=filter_
                )
        except (Absent, PreconditionFailed, errors.Refused) as cause:
            raise errors.Fault(f"Could not list the instances of {project}: {cause}") from cause
        except errors.Fault as fault:
            return self._list_one_by_one(project, zones, filter_, fault)
        return instances, silent_zones, ()

    def _list_one_by_one(
        self, project: str, zones: Iterable[Zone], filter_: str, fault: errors.Fault
    ) -> tuple[list[tuple[Zone, Mapping[str, Any]]], set[Zone], tuple[Zone, ...]]:
        catalogue_zones = (Zone(zone) for each in GENERATIONS if each.compute_engine is not None for zone in each.zones)
        places = tuple(dict.fromkeys((*zones, *catalogue_zones)))
        calls = self._instances()
        instances: list[tuple[Zone, Mapping[str, Any]]] = []
        silent_zones: set[Zone] = set()
        for zone in places:
            try:
                with translate_read_errors(f"list the instances of {zone}"):
                    for page in pages(calls, calls.list(project=project, zone=zone, filter=filter_, maxResults=_PAGE)):
                        instances += [(zone, item) for item in page.get("items", ())]
            except (Absent, PreconditionFailed, errors.Fault):
                silent_zones.add(zone)
        if len(silent_zones) == len(places):
            raise fault
        return instances, silent_zones, places

    def _resource(self, project: str, zone: Zone, item: Mapping[str, Any]) -> CloudResource:
        name = str(item["name"])
        request = read_back(item)
        ref = SliceRef(name=name, project=project, zone=zone, backend=Backend.GCE_INSTANCE)
        return CloudResource(
            ref=ref,
            mark=mark_of(name, request.labels) or UNMARKED,
            is_signed=mark_in(request.labels) is not None or SPEC_KEY in request.metadata,
            slice=self._slice_of(ref, item),
            request=request,
            requested_at=moment(item.get("creationTimestamp")),
        )

    def _instances(self) -> Any:
        return self._connection.collection("compute", "v1", "instances")


def _is_worker(item: Mapping[str, Any]) -> bool:
    """Return whether an instance is one of a group, which is listed and released as a whole."""
    return WORKERS_KEY in metadata_of(item)


def _key(ref: SliceRef) -> tuple[str, Zone, str]:
    return ref.project, ref.zone, ref.name


def _path(ref: SliceRef) -> dict[str, str]:
    return {"project": ref.project, "zone": ref.zone, "instance": ref.name}


def request_id(project: str, zone: str, name: str) -> str:
    """Return the id of the request that inserts an instance."""
    return str(uuid.uuid5(_REQUEST_IDS, f"{project}/{zone}/{name}"))


_PREEMPTED = "compute.instances.preempted"


def recorded_end(calls: Any, place: Mapping[str, str], target: str) -> SliceEnd | None:
    """Return the end of what is at a path, by the operations of its zone or region that Google still keeps."""
    request = calls.list(**place, filter=f'targetLink = "https://www.googleapis.com/compute/v1/{target}"')
    with translate_read_errors(f"look at what became of {target.rpartition('/')[2]}"):
        rows = [row for page in pages(calls, request) for row in page.get("items", ())]
    ends = (_end_by(row) for row in rows if str(row.get("targetLink", "")).endswith(target))
    return min((end for end in ends if end is not None), key=lambda end: end.at, default=None)


def _end_by(operation: Mapping[str, Any]) -> SliceEnd | None:
    """Return the end of a machine by one operation; None for one of another kind, and for one that failed."""
    # A preempted machine is billed until it has stopped: that its operation lasts until then is unverified.
    key = {"delete": "insertTime", _PREEMPTED: "endTime"}.get(str(operation.get("operationType")))
    at = moment(operation.get(key)) if key is not None else None
    if at is None or operation.get("error"):
        return None
    own = cause_in_request_id(str(operation.get("clientOperationId", "")))
    cause, minutes = (None, 0) if own is None else own
    return SliceEnd(at=at, cause=cause, idle_minutes=minutes, names_cause=True)


def _end(item: Mapping[str, Any]) -> float | None:
    """Return when Google ends the instance. Until it says so, the run time counts from the last start."""
    end = moment(item.get("resourceStatus", {}).get("scheduling", {}).get("terminationTimestamp"))
    run = item.get("scheduling", {}).get("maxRunDuration", {}).get("seconds")
    start = moment(item.get("lastStartTimestamp"))
    if end is not None or run is None or start is None:
        return end
    return start + float(run)


def ended_operation(operation: Mapping[str, Any]) -> CreateOperation:
    """Return an operation that is DONE. One without the time of its end explains nothing that is not visible."""
    return CreateOperation(ended_at=moment(operation.get("endTime")) or 0.0)


def operation_refusal(operation: Mapping[str, Any], provisioning: Provisioning | None) -> Refusal | None:
    """Return why an operation failed, or None for one that has succeeded or is still open."""
    if operation.get("status") != "DONE":
        return None
    return refusal_of(operation.get("error", {}).get("errors", ()), provisioning)


def refusal_of(failures: Collection[Mapping[str, Any]], provisioning: Provisioning | None) -> Refusal | None:
    """Return the refusal in the errors of an operation or of a group, or None where there are none.

    They have codes of their own, which stand before the texts: some rows match only those.
    """
    if not failures:
        return None
    text = "; ".join(": ".join(filter(None, (each.get("code"), error_text(each)))) for each in failures)
    refusal = classify_request(text, Code.UNKNOWN, provisioning)
    zones = dict.fromkeys((*_zones_available(failures), *refusal.zones_available))
    return replace(refusal, zones_available=tuple(zones))


def _zones_available(failures: Iterable[Mapping[str, Any]]) -> Iterator[Zone]:
    """Yield the zones that have capacity, by the details of an error; a name that is not a zone's is left out."""
    for detail in (detail for failure in failures for detail in failure.get("errorDetails", ())):
        names = detail.get("errorInfo", {}).get("metadatas", {}).get("zonesAvailable", "")
        yield from (Zone(name) for name in map(str.strip, names.split(",")) if ZONE.fullmatch(name))
