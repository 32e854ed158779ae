"""TpuCloud over Cloud TPU queued resources. Not a place for decisions: it reports, and carries out."""

from __future__ import annotations

import uuid
from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from dataclasses import replace
from typing import Any

from tpudeploy.adapters.google import listing, nodes, transport, zones
from tpudeploy.adapters.google.body import moment, parent, queued_resource
from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.connect import Connection
from tpudeploy.adapters.google.reports import BootReports
from tpudeploy.adapters.google.states import QUEUED_RESOURCE
from tpudeploy.adapters.google.translate import Absent, Exists, Precondition, looking, translated
from tpudeploy.adapters.google.verdicts import hint_for, verdict
from tpudeploy.domain import errors
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.found import Listing
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import (
    BootReport,
    NodeUpdate,
    Phase,
    Refusal,
    Remedy,
    Scope,
    Slice,
    SliceRef,
    SliceRequest,
)
from tpudeploy.domain.together import together
from tpudeploy.ports import Clock

_MODELS = {"FLEX_START": Provisioning.FLEX_START, "SPOT": Provisioning.SPOT}
# A crashed retry of one create must carry the same id (deduplication on replay is unverified).
_REQUEST_IDS = uuid.UUID("5f0cb5c4-8c8b-4f6e-9f0e-6f1d1a6b2d10")


class CloudTpu:
    """See `ports.TpuCloud`. `threads` is how many calls may be under way for one answer."""

    def __init__(self, connection: Connection, clock: Clock, *, threads: int = 1) -> None:
        self._connection = connection
        self._reports = BootReports(connection, clock)
        self._threads = threads

    def slices(self, refs: Iterable[SliceRef]) -> tuple[Slice, ...]:
        asked = tuple(refs)
        listed = zones.listed(self._connection, asked, threads=self._threads)
        found = [self._listed(listed, ref) for ref in asked]
        alone = [number for number, known in enumerate(found) if known is None]
        looked = together(self._threads, lambda number: self._alone(asked[number]), alone)
        for number, known in zip(alone, looked, strict=True):
            found[number] = known
        return tuple(s for s in found if s is not None)

    def marked(self, project: str, zones: Iterable[Zone], *, machines: bool = True) -> Listing:
        return listing.marked(self._connection, project, zones, machines=machines)

    def named(self, project: str, name: str, zones: Iterable[Zone], *, zone: Zone | None = None) -> Listing:
        return listing.named(self._connection, project, name, zones, zone=zone)

    def request(self, request: SliceRequest) -> str | None:
        call = self._resources().create(
            parent=parent(request),
            queuedResourceId=request.name,
            requestId=str(uuid.uuid5(_REQUEST_IDS, f"{request.project}/{request.zone}/{request.name}")),
            body=queued_resource(request),
        )
        try:
            with translated(f"ask for {request.name}", request.provisioning):
                operation: dict[str, Any] = call.execute(num_retries=0)
        except Exists:
            return None  # an earlier run asked, and the name is derived: it is ours
        except (Absent, Precondition) as cause:
            refusal = _late(verdict(str(cause), Code.UNKNOWN, request.provisioning))
            raise errors.Refused(refusal.message, hint=hint_for(refusal.kind), refusal=refusal) from cause
        except errors.Fault as limited:
            if limited.refusal is None:
                raise
            # A rate limit: nothing was made, and whatever else is asked for already can still be looked at.
            raise errors.Refused(limited.refusal.message, hint=limited.hint, refusal=limited.refusal) from limited
        return operation.get("name")

    def release(self, ref: SliceRef) -> str | None:
        if ref.is_bare:
            nodes.remove(self._connection, ref)
            return None
        call = self._resources().delete(name=_path(ref), force=True)
        try:
            with looking(f"delete {ref.name}"):
                operation: dict[str, Any] = call.execute(num_retries=0)
        except (Absent, Exists, Precondition):
            # Gone is what was wanted; refused in this state (PROVISIONING, SUSPENDING) shows at the next look.
            return None
        return operation.get("name")

    def update(self, ref: SliceRef, node: NodeUpdate) -> None:
        self._reports.forget(ref)  # it is about to say something new
        nodes.update(self._connection, ref, node)

    def restart(self, ref: SliceRef) -> None:
        self._reports.forget(ref)
        call = self._resources().reset(name=_path(ref), body={})
        try:
            with looking(f"restart {ref.name}"):
                call.execute(num_retries=0)
        except (Absent, Precondition):
            return  # the next look shows what became of it

    def report(self, ref: SliceRef) -> BootReport | None:
        return self._reports.read(ref)

    def guarded(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        return transport.guarded(check)

    def _listed(self, listed: zones.Zones, ref: SliceRef) -> Slice | None:
        """From its zone's lists; None where they do not show all of it, and where an operation must be asked too."""
        resource, node = listed.resource(ref), listed.node(ref)
        if resource is None or ref.is_bare or ref.deletion is not None:
            return None
        if node is None and _phase(resource) is Phase.UP:
            return None
        return self._shown(ref, resource, node)

    def _alone(self, ref: SliceRef) -> Slice | None:
        """Asked for by name."""
        return nodes.bare(self._connection, ref) if ref.is_bare else self._slice(ref)

    def _slice(self, ref: SliceRef) -> Slice | None:
        try:
            with looking(f"look at {ref.name}"):
                resource: dict[str, Any] = self._resources().get(name=_path(ref)).execute(num_retries=0)
        except Absent:
            return self._refused(ref)
        return self._shown(ref, resource, nodes.look(self._connection, ref) if _phase(resource) is Phase.UP else None)

    def _shown(self, ref: SliceRef, resource: Mapping[str, Any], node: nodes.Node | None) -> Slice:
        state = resource.get("state", {})
        raw = _raw(resource)
        base = Slice(
            name=ref.name,
            zone=ref.zone,
            phase=_phase(resource),
            raw_state=raw,
            refusal=_refusal(state, ref.provisioning),
            undeleted=None if raw == "DELETING" else self._undeleted(ref),
            ends_at=moment(resource.get("runDuration", {}).get("terminationTime")),
            provisioning=_MODELS.get(str(resource.get("provisioningModel"))),
        )
        if base.phase is not Phase.UP:
            return base
        found = nodes.joined(self._connection, base, node)
        run = resource.get("runDuration", {}).get("maxRunDuration")
        if run is None or found.ends_at is not None or found.created_at is None:
            return found
        # Counted from the node's creation, to within seconds.
        return replace(found, ends_at=found.created_at + float(run.removesuffix("s")))

    def _refused(self, ref: SliceRef) -> Slice | None:
        """A 404, held against the create operation: it knows whether there will ever be anything to see."""
        refusal = None if ref.operation is None else self._failure(ref, ref.operation)
        if refusal is None:
            return None
        return Slice(name=ref.name, zone=ref.zone, phase=Phase.REFUSED, raw_state="REFUSED", refusal=refusal)

    def _undeleted(self, ref: SliceRef) -> Refusal | None:
        """Why the last deletion failed. Only ever told, so whatever keeps us from knowing keeps nobody waiting."""
        try:
            return None if ref.deletion is None else self._failure(ref, ref.deletion)
        except errors.CloudError:
            return None

    def _failure(self, ref: SliceRef, operation: str) -> Refusal | None:
        """What this operation ended with; None where it is under way, has succeeded, or is no longer known."""
        calls = self._connection.collection("tpu", "v2alpha1", "projects", "locations", "operations")
        try:
            with looking(f"look at what became of {ref.name}"):
                found: dict[str, Any] = calls.get(name=operation).execute(num_retries=0)
        except Absent:
            return None
        error = found.get("error")
        return _read(error, ref.provisioning) if found.get("done") and error is not None else None

    def _resources(self) -> Any:
        return self._connection.collection("tpu", "v2alpha1", "projects", "locations", "queuedResources")


def _path(ref: SliceRef) -> str:
    return f"projects/{ref.project}/locations/{ref.zone}/queuedResources/{ref.name}"


def _raw(resource: Mapping[str, Any]) -> str:
    return str(resource.get("state", {}).get("state", "STATE_UNSPECIFIED"))


def _phase(resource: Mapping[str, Any]) -> Phase:
    return QUEUED_RESOURCE.get(_raw(resource), Phase.QUEUED)


def _refusal(state: Mapping[str, Any], asked: Provisioning | None) -> Refusal | None:
    error = state.get("failedData", {}).get("error")
    return None if error is None else _read(error, asked)


def _read(error: dict[str, Any], asked: Provisioning | None) -> Refusal:
    """A google.rpc.Status, from an operation or a FAILED resource."""
    return _late(verdict(str(error.get("message", "")), int(error.get("code", Code.UNKNOWN)), asked))


def _late(refusal: Refusal) -> Refusal:
    """What passes by itself is waited out where the call can be made again; here it was, and nothing came of it."""
    return replace(refusal, scope=Scope.PAIR) if refusal.remedy is Remedy.LOOK_AGAIN else refusal
