"""Cloud Logging: what startup scripts printed, a line an entry, under the resource type `tpu_worker`."""

from __future__ import annotations

import re
from collections.abc import Iterator
from dataclasses import replace
from typing import Any

from tpudeploy.emulator import discovery, wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.records import Node
from tpudeploy.emulator.wire import ApiCall, page

_DATED = re.compile(r"^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\dZ")
_LABEL = re.compile(r"resource\.labels\.(?P<label>\w+)\s*=\s*\"(?P<value>[^\"]*)\"")
_TYPE = re.compile(r"resource\.type\s*=\s*\"(?P<type>[^\"]*)\"")


def list_entries(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return entries by the type and labels of the resource in the filter. Raise ApiError for an invalid body."""
    body = discovery.accept(call.body or {}, "ListLogEntriesRequest", "logging.v2", at="request")
    projects = [name.removeprefix("projects/") for name in body.get("resourceNames", ())]
    if not projects:
        raise wire.refuse(3, "At least one resource name is required.")  # UNVERIFIED
    filter_ = body.get("filter", "")
    kind, labels = _TYPE.search(filter_), dict(_LABEL.findall(filter_))
    nodes = [] if kind is None or kind["type"] != "tpu_worker" else list(cloud.nodes.values())
    entries = [e for node in nodes if _is_covered(node, projects, labels) for e in _entries(node)]
    query = {"pageSize": str(body.get("pageSize", 0)), "pageToken": body.get("pageToken", "")}
    return page(replace(call, query={**call.query, **query}), "entries", entries, lambda entry: entry)


def _is_covered(node: Node, projects: list[str], labels: dict[str, str]) -> bool:
    _, project, _, zone, _, name = node.name.split("/")
    return project in projects and labels.get("zone", zone) == zone and labels.get("node_id", name) == name


def _entries(node: Node) -> Iterator[dict[str, Any]]:
    """Yield the entries of a node. A line without a date of its own has that of the line before."""
    _, project, _, zone, _, name = node.name.split("/")
    for worker, host in enumerate(node.hosts):
        at = wire.timestamp(node.created_at)
        labels = {"project_id": project, "zone": zone, "node_id": name, "worker_id": str(worker)}
        for number, line in enumerate(host.log().splitlines()):
            dated = _DATED.match(line)
            at = dated[0] if dated is not None else at
            yield {
                "logName": f"projects/{project}/logs/startup-script",
                "resource": {"type": "tpu_worker", "labels": labels},
                "timestamp": at,
                "insertId": f"{node.uid}-{worker}-{number}",
                "textPayload": line,
            }
