"""Slices of several hosts: a workload policy, an instance template, and a group that creates its instances in bulk.

    WAITING ─queued─▶ SEEKING ─waiting─▶ members: PROVISIONING ─▶ STAGING ─▶ RUNNING
A group in bulk mode waits for as long as it takes, and names the reason at its last progress check. Its members are
instances like others. That a TPU slice behaves in this way is UNVERIFIED: Google's pages describe groups in general.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from math import inf
from typing import Any

from tpudeploy import catalog
from tpudeploy.domain.accelerator import AcceleratorType
from tpudeploy.emulator import discovery, lifecycle, listings, refusals, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import insert_request, life, operations, quota, texts
from tpudeploy.emulator.compute_engine.lists import aggregated, listed
from tpudeploy.emulator.compute_engine.offers import is_served
from tpudeploy.emulator.compute_engine.operations import HOST
from tpudeploy.emulator.records import Group, GroupPart, Instance, ZoneOperation
from tpudeploy.emulator.wire import ApiCall

_PATTERN = re.compile(r"(?P<stem>[a-z][-a-z0-9]{0,51})-(?P<digits>#{1,10})")  # as the discovery document has it
_LOOKS_EVERY = 60.0  # UNVERIFIED
_CREATING = ("PROVISIONING", "STAGING")
_SCHEMAS = {"resourcePolicies": "ResourcePolicy", "instanceTemplates": "InstanceTemplate"}
_KINDS = {"resourcePolicies": "compute#resourcePolicy", "instanceTemplates": "compute#instanceTemplate"}


def insert_part(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Create a workload policy or an instance template: it can be used once its operation is over."""
    kind = _kind(call)
    body = discovery.accept(call.body or {}, _SCHEMAS[kind], insert_request.DOCUMENT, at="resource")
    name, earlier = _begin_insert(cloud, call, body)
    if earlier is not None:
        return operations.render(cloud, earlier)
    if kind == "resourcePolicies":
        _check_policy(body)
    else:
        insert_request.read_properties(cloud, call, body.get("properties", {}))
    now = cloud.clock.now()
    life_of = cloud.life_of(call)
    part = GroupPart(
        name=name, body=body, uid=_uid(cloud, name), created_at=now, seconds=life_of["timings"].patch, kind=kind
    )
    cloud.group_parts[name] = part
    operation = operations.begin(cloud, call, part, "insert")
    operation.due = now + part.seconds
    cloud.agenda.add(now + part.seconds, lambda at: operation.succeed(at, "Empty", {}))
    return operations.render(cloud, operation)


def get_part(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return _render_part(_part(cloud, call))


def delete_part(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Delete a policy or a template, which no group may use."""
    part, now = _part(cloud, call), cloud.clock.now()
    user = next((group for group in cloud.groups.values() if part.name in (group.policy, group.template)), None)
    if user is not None:
        raise texts.refuse("in-use", name=part.name, user=user.name)
    operation = operations.begin(cloud, call, part, "delete")

    def end(at: float) -> None:
        cloud.group_parts.pop(part.name, None)
        operation.succeed(at, "Empty", {})

    cloud.agenda.add(now + part.seconds, end)
    return operations.render(cloud, operation)


def list_parts(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """List all policies, or all templates, over all regions."""
    kind = call.name.rpartition("/")[2]
    rows = [
        (part.name.split("/")[3], _render_part(part))
        for name, part in sorted(cloud.group_parts.items())
        if part.kind == kind and name.split("/")[1] == call.project
    ]
    return aggregated(cloud, call, f"{_KINDS[kind]}AggregatedList", kind, rows, scope="regions")


def insert(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Create a group: its operation is over once the group exists, whether or not it has instances."""
    body = discovery.accept(call.body or {}, "InstanceGroupManager", insert_request.DOCUMENT, at="resource")
    name, earlier = _begin_insert(cloud, call, body)
    if earlier is not None:
        return operations.render(cloud, earlier)
    policy, template = _used_parts(cloud, call, body)
    zone = _only_zone(cloud, call, body)
    properties = insert_request.read_properties(cloud, replace(call, zone=zone), template.body["properties"])
    accelerator = _accelerator(policy, properties.accelerator, body)
    group = Group(
        name=name,
        project=call.project,
        zone=zone,
        body=body,
        accelerator=accelerator,
        model=properties.model,
        uid=_uid(cloud, name),
        policy=policy.name,
        template=template.name,
        properties=properties,
        members=_member_names(body, accelerator.hosts),
        **cloud.life_of(call),
    )
    layer, group.refusal = refusals.later_refusal(group, call.troubles, cloud.scenario.project.flex_start_zones)
    group.breaks = layer == "L3"
    cloud.groups[name] = group
    group.enter("WAITING")
    operation = operations.begin(cloud, call, group, "insert")
    cloud.track_creation(group, operation)

    def create(at: float) -> None:
        operation.succeed(at, "Empty", {})
        group.enter("SEEKING")
        cloud.later(group, at + group.timings.waiting, lambda now: _seek(cloud, group, now))

    cloud.later(group, group.created_at + group.timings.queued, create)
    return operations.render(cloud, operation)


def get(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    return render(cloud, _find(cloud, call))


def delete(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Delete a group with all of its instances."""
    group, now = _find(cloud, call), cloud.clock.now()
    operation = operations.begin(cloud, call, group, "delete")
    if "delete-refused" in call.troubles:
        refusal = texts.status("delete-refused", {"name": group.name})
        cloud.agenda.add(now + group.timings.delete_refused, lambda at: operation.fail(at, refusal))
        return operations.render(cloud, operation)
    group.enter("DELETING")
    if "deletion-hangs" in call.troubles:
        return operations.render(cloud, operation)
    for instance in members_of(cloud, group):
        life.delete(cloud, instance, None, now)

    def end(at: float) -> None:
        if any(members_of(cloud, group)):
            cloud.later(group, at + 1.0, end)
            return
        cloud.groups.pop(group.name, None)
        operation.succeed(at, "Empty", {})

    cloud.later(group, now, end)
    return operations.render(cloud, operation)


def list_managed_instances(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return a row for each instance that the group is to have; one that does not exist has no state."""
    group = _find(cloud, call)
    if group.state == "WAITING":
        return {}
    by_name = {instance.id: instance for instance in members_of(cloud, group)}
    rows = []
    for name in group.members:
        row = {"name": name, "instance": f"{HOST}/projects/{group.project}/zones/{group.zone}/instances/{name}"}
        row["currentAction"] = "NONE"
        if name in by_name:
            row["instanceStatus"] = by_name[name].state
        if group.state == "DELETING":
            row["currentAction"] = "DELETING"
        elif group.state == "SEEKING" or by_name.get(name) in _in_creation(cloud, group):
            row["currentAction"] = "CREATING"
        rows.append(row)
    body = listed(call, "", rows)
    return {"managedInstances": body.get("items", [])} | {k: body[k] for k in ("nextPageToken",) if k in body}


def render(cloud: Cloud, group: Group) -> dict[str, Any]:
    existing = members_of(cloud, group)
    states = [instance.state.lower() for instance in existing]
    count = len(group.members)
    is_waiting = group.state in ("WAITING", "SEEKING")
    in_progress = is_waiting or bool(_in_creation(cloud, group))
    bulk: dict[str, Any] = {"inProgress": in_progress}
    if is_waiting and isinstance(group.reason, texts.ComputeStatus):
        check = {"timestamp": wire.timestamp(group.looked_at), **group.reason.operation_error()}
        bulk["lastProgressCheck"] = {key: check[key] for key in ("timestamp", "error")}
    statuses = {name: states.count(name) for name in sorted(set(states))} | {"nonExistent": count - len(existing)}
    status: dict[str, Any] = {
        "isStable": not in_progress and group.state != "DELETING",
        "bulkInstanceOperation": bulk,
        "currentInstanceStatuses": statuses,
    }
    if existing:
        policy = cloud.group_parts[group.policy].body["workloadPolicy"]
        state = "ACTIVATING" if in_progress else "INCOMPLETE"
        if states.count("running") == count:
            state = "FAILED" if "never-healthy" in group.troubles else "ACTIVE"
        status["appliedAcceleratorTopologies"] = [
            {"acceleratorTopology": policy["acceleratorTopology"], "state": state}
        ]
    actions = {"deleting": count if group.state == "DELETING" else 0, "creating": count if in_progress else 0}
    return {
        **group.body,
        "kind": "compute#instanceGroupManager",
        "id": str(group.uid),
        "creationTimestamp": wire.timestamp(group.created_at),
        "region": f"{HOST}/{group.name.rpartition('/instanceGroupManagers/')[0]}",
        "selfLink": f"{HOST}/{group.name}",
        "currentActions": actions,
        "status": status,
    }


def members_of(cloud: Cloud, group: Group) -> list[Instance]:
    """Return the instances of a group that exist, in the order of their numbers."""
    place = f"projects/{group.project}/zones/{group.zone}/instances"
    members = (cloud.instances.get(f"{place}/{name}") for name in group.members)
    return [instance for instance in members if instance is not None and instance.group is group]


def state_of(cloud: Cloud, group: Group) -> str:
    """Return one word for a group and its instances: the state that all of them have, or what they do."""
    states = {instance.state for instance in members_of(cloud, group)}
    is_whole = len(states) == 1 and len(members_of(cloud, group)) == len(group.members)
    return next(iter(states)) if is_whole and group.state == "FILLED" else group.state


def provision(cloud: Cloud, group: Group, at: float) -> None:
    """Create all instances at once."""
    group.enter("FILLED")
    for number, name in enumerate(group.members):
        path = f"projects/{group.project}/zones/{group.zone}/instances/{name}"
        instance = Instance(
            name=path,
            project=group.project,
            zone=group.zone,
            body={**group.properties.body, "name": name},
            accelerator=group.properties.accelerator,
            model=group.model,
            uid=_uid(cloud, path),
            created_at=at,
            timings=group.timings.varied(group.jitter.part_of("member", number)),
            jitter=group.jitter.part_of("member", number),
            behaviour=group.behaviour,
            troubles=group.troubles,
            hidden_until=0.0,
            unlisted_until=0.0,
            group=group,
        )
        # One instance that is not created leaves the others: what becomes of them is UNVERIFIED.
        instance.refusal = group.refusal if group.breaks and number == len(group.members) - 1 else None
        cloud.instances[path] = instance
        life.provision(cloud, instance, at)


def _seek(cloud: Cloud, group: Group, at: float) -> None:
    """Create the instances, or note why that is not possible now, and look again."""
    group.looked_at, again = at, at + _LOOKS_EVERY
    if group.refusal is not None and not group.breaks:
        group.reason = group.refusal
    elif (excess := quota.excess_of_group(cloud, group)) is not None:
        group.reason = excess
    else:
        opens = inf if "wait-for-ever" in group.troubles else lifecycle.opens_at(cloud, group, at)
        if opens <= at:
            provision(cloud, group, at)
            return
        again = min(opens, again)
        facts = {**life.facts_of(group), "machine": group.accelerator.machine_type}
        group.reason = texts.status("insufficient-capacity", facts)
    cloud.later(group, again, lambda now: _seek(cloud, group, now))


def _in_creation(cloud: Cloud, group: Group) -> list[Instance]:
    return [each for each in members_of(cloud, group) if each.state in _CREATING and each.started_at is None]


def _begin_insert(cloud: Cloud, call: ApiCall, body: Mapping[str, Any]) -> tuple[str, ZoneOperation | None]:
    """Return the name of what is to be created, and the operation that the same request began before.

    Raise ApiError for a name that is taken, or has another form.
    """
    insert_request.check_request_id(call)
    insert_request.check_name(body)
    name = f"projects/{call.project}/regions/{call.query['region']}/{_kind(call)}/{body['name']}"
    earlier = operations.find_earlier(cloud, call, "insert")
    if earlier is None and (name in cloud.group_parts or name in cloud.groups):
        raise texts.refuse("already-exists", name=name)
    return name, earlier


def _check_policy(body: Mapping[str, Any]) -> None:
    policy = body.get("workloadPolicy", {})
    if policy.get("type") != "HIGH_THROUGHPUT" or not policy.get("acceleratorTopology"):
        text = "A topology of accelerators needs the type HIGH_THROUGHPUT."
        raise texts.invalid("workloadPolicy", policy.get("type", ""), text)


def _used_parts(cloud: Cloud, call: ApiCall, body: Mapping[str, Any]) -> tuple[GroupPart, GroupPart]:
    """Return the policy and the template. Raise ApiError for one that does not exist, or is still being created."""
    links = (body.get("resourcePolicies", {}).get("workloadPolicy", ""), body.get("instanceTemplate", ""))
    parts = []
    for link in links:
        path = link.partition("/compute/v1/")[2] or link
        path = path if path.startswith("projects/") else f"projects/{call.project}/{path}"
        part = cloud.group_parts.get(path)
        if part is None:
            raise texts.refuse("not-found", name=path)
        if cloud.clock.now() < part.created_at + part.seconds:
            raise texts.refuse("state-refused", name=path)
        parts.append(part)
    return parts[0], parts[1]


def _only_zone(cloud: Cloud, call: ApiCall, body: Mapping[str, Any]) -> str:
    rows = body.get("distributionPolicy", {}).get("zones", [])
    zones = [row.get("zone", "").rpartition("/")[2] for row in rows]
    if body.get("distributionPolicy", {}).get("targetShape") != "ANY_SINGLE_ZONE" or len(zones) != 1:
        raise texts.invalid("distributionPolicy", zones, "A slice is in one zone.")
    if zones[0] not in listings.zones(cloud) or zones[0].rpartition("-")[0] != call.query["region"]:
        raise texts.refuse("zone-unsupported", zone=zones[0])
    return str(zones[0])


def _accelerator(policy: GroupPart, machine: AcceleratorType, body: Mapping[str, Any]) -> AcceleratorType:
    """Return the slice that the machines form. Raise ApiError where they form none."""
    topology, size = policy.body["workloadPolicy"]["acceleratorTopology"], body.get("targetSize")
    types = [t for t in catalog.accelerator_types() if t.machine_type == machine.machine_type and t.hosts > 1]
    fitting = [t for t in types if t.topology == topology and t.hosts == size and is_served(t)]
    if not fitting:
        raise texts.invalid("targetSize", size, f"{machine.machine_type} does not form {topology}.")
    if body.get("targetSizePolicy", {}).get("mode") != "BULK":
        raise texts.invalid("targetSizePolicy.mode", "", "A slice of several hosts is created in bulk.")
    return fitting[0]


def _member_names(body: Mapping[str, Any], count: int) -> tuple[str, ...]:
    """Return the names that the group gives: numbers from 1 on, with as many digits as the pattern has."""
    match = _PATTERN.fullmatch(body.get("baseInstanceName", ""))
    if match is None:
        base = body.get("baseInstanceName", body["name"])
        if not re.fullmatch(r"[a-z][-a-z0-9]{0,57}", base):
            raise texts.invalid("baseInstanceName", base, "It has another form.")
        return tuple(f"{base}-{number * 46_337 % 1_679_616:04x}" for number in range(1, count + 1))
    return tuple(f"{match['stem']}-{number:0{len(match['digits'])}d}" for number in range(1, count + 1))


def _part(cloud: Cloud, call: ApiCall) -> GroupPart:
    name = call.name.partition("compute/v1/")[2]
    part = cloud.group_parts.get(name)
    if part is None:
        raise texts.refuse("not-found", name=name)
    return part


def _find(cloud: Cloud, call: ApiCall) -> Group:
    region, name = call.query["region"], call.query["instanceGroupManager"]
    path = f"projects/{call.project}/regions/{region}/instanceGroupManagers/{name}"
    group = cloud.groups.get(path)
    if group is None or not group.is_visible(cloud.clock.now()):
        raise texts.refuse("not-found", name=path)
    return group


def _render_part(part: GroupPart) -> dict[str, Any]:
    region = f"{HOST}/{part.name.rpartition(f'/{part.kind}/')[0]}"
    return {
        **part.body,
        "kind": _KINDS[part.kind],
        "id": str(part.uid),
        "creationTimestamp": wire.timestamp(part.created_at),
        "region": region,
        "selfLink": f"{HOST}/{part.name}",
    }


def _kind(call: ApiCall) -> str:
    """Return the collection of a call, by its path."""
    words = call.name.partition("compute/v1/")[2].split("/")
    return words[4]


def _uid(cloud: Cloud, name: str) -> int:
    return int(cloud.scenario.draw("group", name, cloud.clock.now()) * 2**62)
