"""TpuCloud over slices of several hosts at Compute Engine: groups of instances that are created in bulk.

docs/explanation/compute-engine.md has the table of phases. Nothing here waits for hardware: a call waits only until the
policy and the template of a new group can be used, which takes seconds.

Why: decision 77 in docs/decisions.md.
"""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Mapping
from dataclasses import replace
from typing import Any

from tpudeploy.adapters.google.body import moment
from tpudeploy.adapters.google.compute_engine import group_body
from tpudeploy.adapters.google.compute_engine.aggregated import list_all_places
from tpudeploy.adapters.google.compute_engine.body import read_back
from tpudeploy.adapters.google.compute_engine.group_body import WORKERS_KEY, slice_type, worker_names
from tpudeploy.adapters.google.compute_engine.instances import (
    ComputeEngine,
    ended_operation,
    operation_refusal,
    recorded_end,
    refusal_of,
    request_id,
)
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.reports import BootReports
from tpudeploy.adapters.google.safe_read import pages
from tpudeploy.adapters.google.states import INSTANCE
from tpudeploy.adapters.google.translate import (
    Absent,
    Exists,
    PreconditionFailed,
    send_deletion,
    send_request,
    translate_errors,
    translate_read_errors,
)
from tpudeploy.catalog.generations import GENERATIONS
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import AcceleratorType, Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.host_fault import HostFault
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import UNMARKED, CloudResource, Listing, ResourceRequest, mark_in, mark_of
from tpudeploy.domain.slices import (
    BootReport,
    CreateOperation,
    NodeUpdate,
    Phase,
    Refusal,
    RefusalScope,
    Remedy,
    Slice,
    SliceEnd,
    SliceRef,
    SliceRequest,
)
from tpudeploy.domain.together import together
from tpudeploy.ports import Clock

_POLICIES, _TEMPLATES, _GROUPS = "resourcePolicies", "regionInstanceTemplates", "regionInstanceGroupManagers"
# The parameter of a call that names the resource, by collection.
_PARAMETER = {_POLICIES: "resourcePolicy", _TEMPLATES: "instanceTemplate", _GROUPS: "instanceGroupManager"}
# States of a machine that Google starts, or starts again.
_STARTING = frozenset({"PENDING", "PROVISIONING", "STAGING", "REPAIRING"})
_USABLE = frozenset({"", "ACTIVE", "ACTIVE_DEGRADED"})


class BulkGroups:
    """See `ports.TpuCloud`. `instances` reads and changes the single machines of a group."""

    def __init__(
        self, connection: CloudConnection, clock: Clock, instances: ComputeEngine, *, threads: int = 1
    ) -> None:
        self._connection = connection
        self._clock = clock
        self._instances = instances
        self._threads = threads
        self._reports = BootReports(clock, self._guest_attributes)
        # Why Google refused the group itself: what exists of the slice by then is observed, and released.
        self._refusals: dict[SliceRef, Refusal] = {}
        self._lock = threading.Lock()

    def slices(self, refs: Iterable[SliceRef]) -> tuple[Slice, ...]:
        return tuple(slice_ for slice_ in together(self._threads, self._slice, tuple(refs)) if slice_ is not None)

    def list_marked(self, project: str, zones: Iterable[Zone], *, machines: bool = True) -> Listing:
        """See `ports.TpuCloud`. A group cannot lose its policy or its template, so the lists of these two have all."""
        del machines  # its instances go with the group
        listing = self._list(project, zones, lambda _name: True)
        return replace(listing, resources=tuple(r for r in listing.resources if r.mark != UNMARKED))

    def list_named(self, project: str, name: str, zones: Iterable[Zone], *, zone: Zone | None = None) -> Listing:
        listing = self._list(project, zones, lambda policy: policy == name)
        return replace(listing, resources=tuple(r for r in listing.resources if zone in {None, r.ref.zone}))

    def request(self, request: SliceRequest) -> str | None:
        """See `ports.TpuCloud`. A refusal after the policy exists is shown by `slices`, so that it is released too."""
        ref = _ref_of(request)
        self._keep_refusal(ref, None)
        kind = _kind(ref)
        policy = self._insert(_POLICIES, group_body.policy(request, kind), request)
        try:
            template = self._insert(_TEMPLATES, group_body.template(request, kind), request)
            refusal = self._await_end(ref, policy) or self._await_end(ref, template)
            if refusal is None:
                return self._insert(_GROUPS, group_body.group(request, kind), request)
        except (errors.Refused, errors.Denied) as error:
            refusal = error.refusal
            if refusal is None:
                # For example credentials that have expired: the next observation meets the same, and says so.
                raise errors.Fault(f"Could not ask for {request.name}: {error.message}", hint=error.hint) from error
        self._keep_refusal(ref, refusal)
        return None

    def release(self, ref: SliceRef) -> str | None:
        """See `ports.TpuCloud`. The policy and the template can only go after the group: `slices` shows them."""
        self._keep_refusal(ref, None)
        if self._get(_GROUPS, ref) is not None:
            return send_deletion(self._calls(_GROUPS).delete(**_path(_GROUPS, ref)), ref.name)
        for collection in (_TEMPLATES, _POLICIES):
            send_deletion(self._calls(collection).delete(**_path(collection, ref)), ref.name)
        return None

    def update(self, ref: SliceRef, node: NodeUpdate) -> None:
        """See `ports.TpuCloud`. The head comes last: what shows there is on the others already."""
        self._reports.forget(ref)
        names = worker_names(ref.name, _kind(ref).hosts)
        metadata = {**node.metadata, WORKERS_KEY: ",".join(names)}
        for name in reversed(names):
            self._instances.update(_member(ref, name), replace(node, metadata=metadata))

    def restart(self, ref: SliceRef) -> None:
        self._reports.forget(ref)
        for name in worker_names(ref.name, _kind(ref).hosts):
            self._instances.restart(_member(ref, name))

    def report(self, ref: SliceRef) -> BootReport | None:
        return self._reports.read(ref)

    def report_host(self, _ref: SliceRef, _fault: HostFault) -> str | None:
        """See `ports.TpuCloud`. The fault does not say which machine of the group it is about."""
        return None

    def lines(self, ref: SliceRef) -> tuple[str, ...]:
        """See `ports.Logs`. The lines of worker 0 come last and as they are, as those of a node of the TPU API."""
        names = worker_names(ref.name, _kind(ref).hosts)
        logs = together(self._threads, lambda name: self._instances.lines(_member(ref, name)), names)
        others = (f"worker {number}: {line}" for number, log in enumerate(logs) if number for line in log)
        return (*others, *logs[0])

    # Requesting.

    def _insert(self, collection: str, body: dict[str, Any], request: SliceRequest) -> str | None:
        """Send one insert. Return the name of its operation, or None for what an earlier run created."""
        place = {"project": request.project, "region": request.zone.region}
        id_ = request_id(request.project, request.zone, f"{request.name}/{collection}")
        return send_request(self._calls(collection).insert(**place, requestId=id_, body=body), request)

    def _await_end(self, ref: SliceRef, operation: str | None) -> Refusal | None:
        """Wait until an operation is over, for two minutes at most. Return why it failed, or None."""
        if operation is None:
            return None
        place = {"project": ref.project, "region": ref.zone.region}
        with translate_errors(f"wait for a part of {ref.name}", ref.provisioning):
            answer: dict[str, Any] = (
                self._calls("regionOperations").wait(**place, operation=operation).execute(num_retries=0)
            )
        return operation_refusal(answer, ref.provisioning)

    def _keep_refusal(self, ref: SliceRef, refusal: Refusal | None) -> None:
        with self._lock:
            self._refusals.pop(_key(ref), None)
            if refusal is not None:
                self._refusals[_key(ref)] = refusal

    # Observing.

    def _slice(self, ref: SliceRef) -> Slice | None:
        group = self._get(_GROUPS, ref)
        if group is None:
            return self._without_group(ref)
        names = worker_names(ref.name, _kind(ref).hosts)
        members = self._members(ref)
        head = self._instances.look_up(_member(ref, names[0])) if members.get(names[0]) else None
        base = head or Slice(name=ref.name, zone=ref.zone, phase=Phase.QUEUED, provisioning=ref.provisioning)
        phase, raw, refusal = self._phase(ref, group, members, is_head_there=head is not None)
        deletion = self._operation(ref, ref.deletion)
        if ref.deletion is not None and deletion is not None and deletion.get("status") != "DONE":
            phase = Phase.LEAVING
        return replace(
            base,
            name=ref.name,
            phase=phase,
            raw_state=raw,
            refusal=refusal,
            machines_running=0 if phase is Phase.UP else list(members.values()).count("RUNNING"),
            undeleted=None if deletion is None else operation_refusal(deletion, ref.provisioning),
            accelerator_type=ref.accelerator_type,
            metadata={key: value for key, value in base.metadata.items() if key != WORKERS_KEY},
        )

    def _phase(
        self, ref: SliceRef, group: Mapping[str, Any], members: Mapping[str, str], *, is_head_there: bool
    ) -> tuple[Phase, str, Refusal | None]:
        """Return the phase of a group, the words for it, and Google's reason where the slice is no use."""
        hosts = _kind(ref).hosts
        states = Counter(state for state in members.values() if state)
        running, count = states["RUNNING"], states.total()
        words = f"{running} of {hosts} workers run"
        topology = _topology(group)
        if group.get("currentActions", {}).get("deleting"):
            return Phase.LEAVING, "its group is being deleted", None
        if topology == "FAILED":
            # Its machines run, and are no slice.
            return Phase.HUSK, "the topology of its group is FAILED", None
        if running == hosts and is_head_there:
            # Once it was granted, Google may connect the machines again: the probe shows whether its server answers.
            is_up = topology in _USABLE or ref.was_granted
            return (Phase.UP, "RUNNING", None) if is_up else (Phase.PROVISIONING, f"topology {topology}", None)
        if ref.was_granted:
            return self._phase_of_incomplete(ref, members, states), words, None
        if count == 0:
            return _waiting(group, ref.provisioning)
        is_in_creation = group.get("status", {}).get("bulkInstanceOperation", {}).get("inProgress", False)
        if is_in_creation or not group.get("status", {}).get("isStable", False):
            return Phase.PROVISIONING, words, None
        # Google is done with it, and it is not whole: nothing completes it.
        return Phase.HUSK, words, None

    def _phase_of_incomplete(self, ref: SliceRef, members: Mapping[str, str], states: Counter[str]) -> Phase:
        """Return the phase of a slice that ran, and of which some workers do not: all of them are needed."""
        hosts = _kind(ref).hosts
        if states["RUNNING"] + sum(states[state] for state in _STARTING) == hosts:
            return Phase.UP
        if any(INSTANCE.get(state) is Phase.SUSPENDING for state in states):
            return Phase.SUSPENDING
        names = worker_names(ref.name, hosts)
        missing = [name for name in names if members.get(name, "") not in {"RUNNING", *_STARTING}]
        # What the group shows may be late: only what a look at each machine confirms is lost.
        machines = [self._instances.look_up(replace(_member(ref, name), was_granted=True)) for name in missing]
        return Phase.UP if all(each is not None and each.phase is Phase.UP for each in machines) else Phase.LOST

    def _without_group(self, ref: SliceRef) -> Slice | None:
        """Return what exists of a slice whose group does not: it was never created, or is deleted already."""
        with self._lock:
            refusal = self._refusals.get(_key(ref))
        base = Slice(name=ref.name, zone=ref.zone, phase=Phase.HUSK, accelerator_type=ref.accelerator_type)
        operation = None if ref.was_granted or refusal is not None else self._insert_operation(ref)
        if operation is not None and operation.get("status") != "DONE":
            raw = f"insert {operation.get('status', 'PENDING')}"
            return replace(base, phase=Phase.CREATING, raw_state=raw, operation=CreateOperation())
        if operation is not None:
            refusal = operation_refusal(operation, ref.provisioning)
            # The group may appear some time after its operation has succeeded.
            if refusal is None and ref.deletion is None and not ref.was_visible:
                base = replace(base, raw_state="insert DONE", operation=ended_operation(operation))
        # A deletion that is under way refuses nothing.
        refusal = None if ref.deletion is not None else refusal
        if self._get(_POLICIES, ref) is not None or self._get(_TEMPLATES, ref) is not None:
            is_remainder = ref.was_granted and refusal is None
            return replace(
                base, raw_state="its policy and its template are left", refusal=refusal, is_remainder=is_remainder
            )
        self._keep_refusal(ref, None)
        if refusal is not None:
            return replace(base, phase=Phase.REFUSED, raw_state="REFUSED", refusal=refusal)
        return None if base.operation is None else replace(base, phase=Phase.CREATING)

    def end(self, ref: SliceRef) -> SliceEnd | None:
        """See `ports.TpuCloud`: its first machine deletes the group."""
        place = {"project": ref.project, "region": ref.zone.region}
        target = f"projects/{ref.project}/regions/{ref.zone.region}/instanceGroupManagers/{ref.name}"
        return recorded_end(self._calls("regionOperations"), place, target)

    def _insert_operation(self, ref: SliceRef) -> Mapping[str, Any] | None:
        """Return the operation that inserts the group, by its name or by the request's id; None where none is known."""
        operation = self._operation(ref, ref.operation)
        if operation is not None:
            return operation
        id_ = request_id(ref.project, ref.zone, f"{ref.name}/{_GROUPS}")
        calls, place = self._calls("regionOperations"), {"project": ref.project, "region": ref.zone.region}
        request = calls.list(**place, filter=f'clientOperationId = "{id_}"')
        with translate_read_errors(f"look at what became of {ref.name}"):
            rows = [row for page in pages(calls, request) for row in page.get("items", ())]
        return next((row for row in rows if row.get("clientOperationId") == id_), None)

    def _operation(self, ref: SliceRef, name: str | None) -> Mapping[str, Any] | None:
        if name is None:
            return None
        place = {"project": ref.project, "region": ref.zone.region}
        try:
            with translate_read_errors(f"look at what became of {ref.name}"):
                answer: dict[str, Any] = (
                    self._calls("regionOperations").get(**place, operation=name).execute(num_retries=0)
                )
        except Absent:
            return None  # Google keeps operations for a limited time
        return answer

    def _members(self, ref: SliceRef) -> dict[str, str]:
        """Return the states of the group's instances by name, "" for one that does not exist."""
        calls = self._calls(_GROUPS)
        request = calls.listManagedInstances(**_path(_GROUPS, ref))
        try:
            with translate_read_errors(f"look at the workers of {ref.name}"):
                rows: list[Mapping[str, Any]] = []
                for page in pages(calls, request, next_method="listManagedInstances_next"):
                    rows += page.get("managedInstances", ())
        except Absent:
            return {}
        return {str(row.get("name")): str(row.get("instanceStatus", "")) for row in rows}

    def _get(self, collection: str, ref: SliceRef) -> Mapping[str, Any] | None:
        try:
            with translate_read_errors(f"look at {ref.name}"):
                item: dict[str, Any] = self._calls(collection).get(**_path(collection, ref)).execute(num_retries=0)
                return item
        except Absent:
            return None

    def _guest_attributes(self, ref: SliceRef) -> Mapping[str, Any]:
        names = worker_names(ref.name, _kind(ref).hosts)
        answers = together(self._threads, lambda name: self._attributes_of(_member(ref, name)), names)
        return {"guestAttributes": list(answers)}

    def _attributes_of(self, ref: SliceRef) -> Mapping[str, Any]:
        """Return the attributes of one worker: none where it has written nothing, or does not exist."""
        try:
            with translate_errors(f"read the report of {ref.name}"):
                return self._instances.guest_attributes(ref)
        except (Absent, PreconditionFailed, errors.Refused, errors.Denied):
            return {}

    # Listing.

    def _list(self, project: str, zones: Iterable[Zone], accepts: Callable[[str], bool]) -> Listing:
        """Return the slices whose policy or template has an accepted name and our description. Raise `errors.Fault`."""
        parts: dict[SliceRef, dict[str, Mapping[str, Any]]] = {}
        silent_regions: set[str] = set()
        for kind in (_POLICIES, "instanceTemplates"):
            try:
                with translate_read_errors(f"list the workload policies and instance templates of {project}"):
                    rows, silent = list_all_places(self._connection, kind, project=project)
            except (Absent, Exists, PreconditionFailed) as cause:
                raise errors.Fault(f"Could not list the {kind} of {project}: {cause}") from cause
            silent_regions |= silent
            for region, part in rows:
                ref = _ref_in(project, part)
                if ref is not None and ref.zone.region == region and accepts(ref.name):
                    parts.setdefault(ref, {})[kind] = part
        resources = (self._resource(ref, own) for ref, own in parts.items())
        known_zones = {*zones, *(Zone(zone) for each in GENERATIONS for zone in each.zones)}
        silent_zones = (zone for zone in known_zones if zone.region in silent_regions)
        return Listing(project=project, resources=tuple(resources), unreachable=tuple(sorted(silent_zones)))

    def _resource(self, ref: SliceRef, parts: Mapping[str, Mapping[str, Any]]) -> CloudResource:
        """Return the slice of a policy, a template or both, by the names of their lists."""
        template = parts.get("instanceTemplates")
        part = parts.get(_POLICIES, template)
        facts = None if part is None else group_body.parse_description(part)
        if part is None or facts is None:
            raise ValueError(ref.name)
        labels, zone, type_name = facts
        request = ResourceRequest(accelerator_type=type_name, provisioning=Provisioning.ON_DEMAND, labels=labels)
        if template is not None:
            # In a list of resources, the slice has its own name, and not those of its instances.
            request = replace(read_back(template.get("properties", {})), accelerator_type=type_name, nodes=(ref.name,))
        slice_ = self._slice(ref) or Slice(name=ref.name, zone=zone, phase=Phase.HUSK, accelerator_type=type_name)
        # The head may have been given other metadata since the request.
        metadata = self._instances.metadata(_member(ref, worker_names(ref.name, _kind(ref).hosts)[0]))
        request = replace(request, metadata=metadata or request.metadata)
        return CloudResource(
            ref=ref,
            mark=mark_of(ref.name, labels) or UNMARKED,
            is_signed=mark_in(labels) is not None,
            slice=slice_,
            request=request,
            requested_at=moment(part.get("creationTimestamp")),
        )

    def _calls(self, collection: str) -> Any:
        return self._connection.collection("compute", "v1", collection)


def _ref_in(project: str, part: Mapping[str, Any]) -> SliceRef | None:
    """Return the slice that a policy or a template belongs to by its description, or None for one that is not ours."""
    facts = group_body.parse_description(part)
    if facts is None or slice_type(facts[2]) is None:
        return None
    _, zone, type_name = facts
    return SliceRef(
        name=str(part["name"]),
        project=project,
        zone=zone,
        backend=Backend.GCE_INSTANCE,
        accelerator_type=type_name,
    )


def _kind(ref: SliceRef) -> AcceleratorType:
    kind = slice_type(ref.accelerator_type)
    if kind is None:
        raise KeyError(ref.accelerator_type)
    return kind


def _member(ref: SliceRef, name: str) -> SliceRef:
    return SliceRef(
        name=name, project=ref.project, zone=ref.zone, provisioning=ref.provisioning, backend=Backend.GCE_INSTANCE
    )


def _ref_of(request: SliceRequest) -> SliceRef:
    return SliceRef(
        name=request.name,
        project=request.project,
        zone=request.zone,
        provisioning=request.provisioning,
        backend=request.backend,
        accelerator_type=request.accelerator_type,
    )


def _key(ref: SliceRef) -> SliceRef:
    """Return what a slice has in every reference to it."""
    return SliceRef(name=ref.name, project=ref.project, zone=ref.zone)


def _path(collection: str, ref: SliceRef) -> dict[str, str]:
    return {"project": ref.project, "region": ref.zone.region, _PARAMETER[collection]: ref.name}


def _topology(group: Mapping[str, Any]) -> str:
    """Return the state of the slice's topology, or "" where the group shows none."""
    rows = group.get("status", {}).get("appliedAcceleratorTopologies", ())
    return str(next((row.get("state", "") for row in rows), ""))


def _waiting(group: Mapping[str, Any], provisioning: Provisioning | None) -> tuple[Phase, str, Refusal | None]:
    """Return the phase of a group without instances. In bulk mode it waits for capacity, whatever else is wrong."""
    check = group.get("status", {}).get("bulkInstanceOperation", {}).get("lastProgressCheck", {})
    refusal = refusal_of(check.get("error", {}).get("errors", ()), provisioning)
    if refusal is None:
        return Phase.QUEUED, "waiting", None
    if refusal.remedy is Remedy.NEXT_ZONE and refusal.scope is RefusalScope.PAIR and refusal.is_known:
        return Phase.QUEUED, f"waiting ({refusal.kind})", None
    # It would wait for a quota, or for a request that Google takes.
    return Phase.HUSK, f"waiting ({refusal.kind})", refusal
