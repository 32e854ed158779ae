"""TpuCloud over Cloud TPU queued resources. It observes and executes; decisions are made elsewhere.

Why: decision 6 in docs/decisions.md.
"""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from tpudeploy.adapters.google import listing, nodes, transport
from tpudeploy.adapters.google.body import moment, parent, queued_resource
from tpudeploy.adapters.google.cloud_logging import CloudLogging
from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.lists import ProjectListings, list_zones
from tpudeploy.adapters.google.reports import NAMESPACE, BootReports
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.adapters.google.translate import (
    Absent,
    send_deletion,
    send_request,
    send_reset,
    translate_read_errors,
)
from tpudeploy.adapters.google.verdicts import classify_request, error_text
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.host_fault import HostFault
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import Listing
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
from tpudeploy.ports import Clock

_MODELS = {"FLEX_START": Provisioning.FLEX_START, "SPOT": Provisioning.SPOT}
# A retry of a create after a crash must carry the same id (that the service deduplicates by it is unverified).
_REQUEST_IDS = uuid.UUID("5f0cb5c4-8c8b-4f6e-9f0e-6f1d1a6b2d10")


class CloudTpu:
    """See `ports.TpuCloud`. `threads` is the maximum number of parallel calls for one answer."""

    def __init__(self, connection: CloudConnection, clock: Clock, *, threads: int = 1) -> None:
        self._connection = connection
        self._reports = BootReports(clock, self._guest_attributes)
        self._threads = threads

    def slices(self, refs: Iterable[SliceRef]) -> tuple[Slice, ...]:
        wanted_refs = tuple(refs)
        lists = list_zones(self._connection, wanted_refs, threads=self._threads)
        slices = [self._slice_from_lists(lists, ref) for ref in wanted_refs]
        unlisted = [number for number, slice_ in enumerate(slices) if slice_ is None]
        answers = together(self._threads, lambda number: self._look_up(wanted_refs[number]), unlisted)
        for number, slice_ in zip(unlisted, answers, strict=True):
            slices[number] = slice_
        return tuple(slice_ for slice_ in slices if slice_ is not None)

    def report_host(self, _ref: SliceRef, _fault: HostFault) -> str | None:
        """See `ports.TpuCloud`. None of the API's discovery documents names a call for this."""
        return None

    def lines(self, ref: SliceRef) -> tuple[str, ...]:
        """See `ports.Logs`."""
        return CloudLogging(self._connection).lines(ref)

    def list_marked(self, project: str, zones: Iterable[Zone], *, machines: bool = True) -> Listing:
        return listing.list_marked(self._connection, project, zones, machines=machines)

    def list_named(self, project: str, name: str, zones: Iterable[Zone], *, zone: Zone | None = None) -> Listing:
        return listing.list_named(self._connection, project, name, zones, zone=zone)

    def request(self, request: SliceRequest) -> str | None:
        call = self._resources().create(
            parent=parent(request),
            queuedResourceId=request.name,
            requestId=str(uuid.uuid5(_REQUEST_IDS, f"{request.project}/{request.zone}/{request.name}")),
            body=queued_resource(request),
        )
        return send_request(call, request)

    def release(self, ref: SliceRef) -> str | None:
        if ref.is_bare:
            nodes.remove(self._connection, ref)
            return None
        # The states PROVISIONING and SUSPENDING refuse a deletion.
        return send_deletion(self._resources().delete(name=_path(ref), force=True), ref.name)

    def update(self, ref: SliceRef, node: NodeUpdate) -> None:
        self._reports.forget(ref)  # the machine is about to write a new report
        nodes.update(self._connection, ref, node)

    def restart(self, ref: SliceRef) -> None:
        self._reports.forget(ref)
        send_reset(self._resources().reset(name=_path(ref), body={}), ref.name)

    def report(self, ref: SliceRef) -> BootReport | None:
        return self._reports.read(ref)

    def guarded(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        return transport.guarded(check)

    def _slice_from_lists(self, lists: ProjectListings, ref: SliceRef) -> Slice | None:
        """Return the slice as its zone's lists show it.

        Return None where the lists do not show all of it, and where its operation must be read too.
        """
        resource, node = lists.resource(ref), lists.node(ref)
        if resource is None or ref.is_bare or ref.deletion is not None:
            return None
        if node is None and _phase(resource) is Phase.UP:
            return None
        return self._combine(ref, resource, node)

    def _look_up(self, ref: SliceRef) -> Slice | None:
        """Return the slice by its name, without lists."""
        return nodes.look_up_bare(self._connection, ref) if ref.is_bare else self._slice(ref)

    def _slice(self, ref: SliceRef) -> Slice | None:
        try:
            with translate_read_errors(f"look at {ref.name}"):
                resource: dict[str, Any] = self._resources().get(name=_path(ref)).execute(num_retries=0)
        except Absent:
            return self._without_resource(ref)
        node = nodes.get(self._connection, ref) if _phase(resource) is Phase.UP else None
        return self._combine(ref, resource, node)

    def _combine(self, ref: SliceRef, resource: Mapping[str, Any], node: nodes.Node | None) -> Slice:
        state = resource.get("state", {})
        raw = _raw(resource)
        base = Slice(
            name=ref.name,
            zone=ref.zone,
            phase=_phase(resource),
            raw_state=raw,
            refusal=_refusal(state, ref.provisioning),
            undeleted=None if raw == "DELETING" else self._deletion_failure(ref),
            ends_at=moment(resource.get("runDuration", {}).get("terminationTime")),
            provisioning=_MODELS.get(str(resource.get("provisioningModel"))),
        )
        if base.phase is not Phase.UP:
            return base
        slice_ = nodes.merge_with_addresses(self._connection, base, node)
        run = resource.get("runDuration", {}).get("maxRunDuration")
        if run is None or slice_.ends_at is not None or slice_.created_at is None:
            return slice_
        # The run time counts from the node's creation, to within seconds.
        return replace(slice_, ends_at=slice_.created_at + float(run.removesuffix("s")))

    def _without_resource(self, ref: SliceRef) -> Slice | None:
        """Return what the create operation says of a queued resource that is not visible; None where it is gone."""
        # Once granted, or listed and released, it is simply gone: its create operation has no say in that.
        is_settled = ref.was_granted or (ref.was_listed and ref.was_released)
        operation = None if ref.operation is None or is_settled else self._operation(ref, ref.operation)
        if operation is None:
            return None
        base = Slice(name=ref.name, zone=ref.zone, phase=Phase.CREATING, operation=_create_operation(operation))
        refusal = _failure(operation, ref.provisioning)
        if refusal is not None:
            return replace(base, phase=Phase.REFUSED, raw_state="REFUSED", refusal=refusal)
        # Once it was listed, a queued resource that is not there is gone. Before, it may still appear.
        word = "DONE" if operation.get("done") else "RUNNING"
        return None if ref.was_visible else replace(base, raw_state=f"create {word}")

    def _deletion_failure(self, ref: SliceRef) -> Refusal | None:
        """Return why the last deletion failed. The reason is for display only, so an error of this call is ignored."""
        try:
            operation = None if ref.deletion is None else self._operation(ref, ref.deletion)
        except errors.CloudError:
            return None
        return None if operation is None else _failure(operation, ref.provisioning)

    def _operation(self, ref: SliceRef, operation: str) -> Mapping[str, Any] | None:
        """Return an operation, or None for one that no longer exists."""
        calls = self._connection.collection("tpu", "v2alpha1", "projects", "locations", "operations")
        try:
            with translate_read_errors(f"look at what became of {ref.name}"):
                status: dict[str, Any] = calls.get(name=operation).execute(num_retries=0)
        except Absent:
            return None
        return status

    def end(self, ref: SliceRef) -> SliceEnd | None:
        """See `ports.TpuCloud`. Operations of this API have no id of their caller, and none tells of a preemption."""
        calls = self._connection.collection("tpu", "v2alpha1", "projects", "locations", "operations")
        request = calls.list(name=f"projects/{ref.project}/locations/{ref.zone}")
        with translate_read_errors(f"look at what became of {ref.name}"):
            rows = [row for page in pages(calls, request) for row in page.get("operations", ())]
        details = [row.get("metadata", {}) for row in rows if not row.get("error")]
        own = [each for each in details if each.get("verb") == "delete" and each.get("target") == _path(ref)]
        times = [at for each in own if (at := moment(each.get("createTime"))) is not None]
        return SliceEnd(at=min(times)) if times else None

    def _guest_attributes(self, ref: SliceRef) -> Mapping[str, Any]:
        calls = self._connection.collection("tpu", "v2alpha1", "projects", "locations", "nodes")
        name = f"projects/{ref.project}/locations/{ref.zone}/nodes/{ref.name}"
        query = {"queryPath": f"{NAMESPACE}/"}
        answer: dict[str, Any] = calls.getGuestAttributes(name=name, body=query).execute(num_retries=0)
        return answer

    def _resources(self) -> Any:
        return self._connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")


def _failure(operation: Mapping[str, Any], provisioning: Provisioning | None) -> Refusal | None:
    """Return why an operation failed; None for one that is in progress, or has succeeded."""
    error = operation.get("error")
    return _parse_status(error, provisioning) if operation.get("done") and error is not None else None


def _create_operation(operation: Mapping[str, Any]) -> CreateOperation:
    """Return a create operation. One that is over, and does not say since when, explains no later absence."""
    if not operation.get("done"):
        return CreateOperation()
    return CreateOperation(ended_at=moment(operation.get("metadata", {}).get("endTime")) or 0.0)


def _path(ref: SliceRef) -> str:
    return f"projects/{ref.project}/locations/{ref.zone}/queuedResources/{ref.name}"


def _raw(resource: Mapping[str, Any]) -> str:
    return str(resource.get("state", {}).get("state", "STATE_UNSPECIFIED"))


def _phase(resource: Mapping[str, Any]) -> Phase:
    return QUEUED_RESOURCE.get(_raw(resource), Phase.QUEUED)


def _refusal(state: Mapping[str, Any], provisioning: Provisioning | None) -> Refusal | None:
    error = state.get("failedData", {}).get("error")
    return None if error is None else _parse_status(error, provisioning)


def _parse_status(error: dict[str, Any], provisioning: Provisioning | None) -> Refusal:
    """Return the refusal in a google.rpc.Status, from an operation or a FAILED resource."""
    return classify_request(error_text(error), int(error.get("code", Code.UNKNOWN)), provisioning)
