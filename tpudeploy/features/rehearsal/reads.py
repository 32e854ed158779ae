"""How a rehearsal looks at the facts that cost nothing: one function each, which reads and changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy.adapters.google import billing, lists, quotas, typed_reads
from tpudeploy.adapters.google.access import permissions
from tpudeploy.adapters.google.compute_engine.images import image_of_family
from tpudeploy.adapters.google.connect import CloudConnection
from tpudeploy.adapters.google.offers import offers
from tpudeploy.adapters.google.safe_read import pages, safe_read
from tpudeploy.adapters.google.translate import Absent, PreconditionFailed, translate_errors
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.catalog.generations import V6E
from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.facts import QuotaPool, Unknown
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import LINEAGE_LABEL
from tpudeploy.features.rehearsal import FactFinding, compare, not_seen
from tpudeploy.features.rehearsal.facts import RehearsalStage, facts_of

_LOCATION_FIELDS = frozenset({"name", "locationId", "displayName", "labels"})  # the typed client also knows `metadata`
_RUNTIME_ZONES = 3
_SAME_PRICE = 0.005  # USD
_GIB = 1024  # MiB


def look(connection: CloudConnection, project: str, fact: str) -> FactFinding:
    """Return what is seen of a fact of `RehearsalStage.READ`."""
    return look_safely(fact, lambda: _READS[fact](connection, project))


def look_safely(fact: str, see: Callable[[], FactFinding]) -> FactFinding:
    """Return what `see` finds. A read that fails is the reason why the fact was not seen."""
    finding = safe_read(f"look at {fact}", see)
    return not_seen(fact, finding.because) if isinstance(finding, Unknown) else finding


def _permissions(connection: CloudConnection, project: str) -> FactFinding:
    names = tuple(BACKENDS[Backend.QUEUED_RESOURCE].permissions)
    granted = permissions(connection, project, names)
    missing = sorted(set(names) - granted)
    # Google refuses a permission that does not exist; one that is not granted is left out of the answer.
    observation = f"All {len(names)} exist; you have {len(granted)} of them"
    return compare(
        "permissions",
        is_as_believed=True,
        observation=f"{observation}, and not {', '.join(missing)}." if missing else f"{observation}.",
    )


def _wildcard_queued_resources(connection: CloudConnection, project: str) -> FactFinding:
    fact = "wildcard-queued-resources"
    items, error = _list(lambda: lists.list_all(connection, "queuedResources", lists.parent_of(project, "-")))
    return compare(fact, is_as_believed=not error, observation=error or f"It lists {items} queued resources.")


def _wildcard_nodes(connection: CloudConnection, project: str) -> FactFinding:
    items, error = _list(lambda: typed_reads.list_nodes(connection, lists.parent_of(project, "-")))
    return compare("wildcard-nodes", is_as_believed=not error, observation=error or f"It lists {items} nodes.")


def _page_size(connection: CloudConnection, project: str) -> FactFinding:
    parent = lists.parent_of(project, V6E.zones[0])
    items, error = _list(lambda: lists.list_all(connection, "queuedResources", parent, only="name"))
    return compare(
        "page-size",
        is_as_believed=not error,
        observation=error or f"A page of {lists.PAGE} is answered, with {items} items.",
    )


def _location_fields(connection: CloudConnection, project: str) -> FactFinding:
    calls = connection.collection("tpu", "v2alpha1", "projects", "locations")
    fields: set[str] = set()
    for page in pages(calls, calls.list(name=f"projects/{project}")):
        fields = fields.union(*page.get("locations", ()))
    more = sorted(fields - _LOCATION_FIELDS)
    observation = f"They have {', '.join(more)} too." if more else f"They have {', '.join(sorted(fields))}."
    return compare("location-fields", is_as_believed=not more, observation=observation)


def _types(connection: CloudConnection, project: str) -> FactFinding:
    lacking, silent = [], []
    for name in V6E.zones:
        types = typed_reads.slice_types(connection, project, Zone(name))
        if isinstance(types, Unknown):
            silent.append(name)
        elif V6E.types[0].name not in types:
            lacking.append(name)
    if len(silent) == len(V6E.zones):
        return not_seen("types", "No zone of the catalogue answered.")
    observation = f"Not in {', '.join(lacking)}." if lacking else f"All {len(V6E.zones) - len(silent)} zones list it."
    return compare(
        "types",
        is_as_believed=not lacking,
        observation=f"{observation} No answer from {', '.join(silent)}." if silent else observation,
    )


def _runtime_version(connection: CloudConnection, project: str) -> FactFinding:
    zones = [Zone(name) for name in V6E.zones[:_RUNTIME_ZONES]]
    listed = {zone: typed_reads.runtime_versions(connection, project, zone) for zone in zones}
    answers = {zone: versions for zone, versions in listed.items() if not isinstance(versions, Unknown)}
    if not answers:
        return not_seen("runtime-version", "No zone answered.")
    lacking = [zone for zone, versions in answers.items() if V6E.runtime_of(Backend.QUEUED_RESOURCE) not in versions]
    observation = f"Not in {', '.join(lacking)}." if lacking else f"Listed in {', '.join(answers)}."
    return compare("runtime-version", is_as_believed=not lacking, observation=observation)


def _quota_parent(connection: CloudConnection, project: str) -> FactFinding:
    calls = connection.collection("serviceusage", "v1beta1", "services", "consumerQuotaMetrics")
    parent = f"projects/{project}/services/tpu.googleapis.com"
    count = sum(len(page.get("metrics", ())) for page in pages(calls, calls.list(parent=parent, view="FULL")))
    return compare("quota-parent", is_as_believed=count > 0, observation=f"It lists {count} metrics.")


def _quota_metrics(connection: CloudConnection, project: str) -> FactFinding:
    return _pools("quota-metrics", connection, project, Backend.QUEUED_RESOURCE)


def _instance_quota_metrics(connection: CloudConnection, project: str) -> FactFinding:
    return _pools("instance-quota-metrics", connection, project, Backend.GCE_INSTANCE)


def _pools(fact: str, connection: CloudConnection, project: str, backend: Backend) -> FactFinding:
    pools = {limit.pool for limit in quotas.limits(connection, project, backend) if limit.generation == V6E.name}
    lacking = [pool.value for pool in QuotaPool if pool not in pools]
    observation = (
        f"No metric of the {' and the '.join(lacking)} pool is named like that." if lacking else "Both are there."
    )
    return compare(fact, is_as_believed=not lacking, observation=observation)


def _machine_types(connection: CloudConnection, project: str) -> FactFinding:
    listed = offers(connection, project, Backend.GCE_INSTANCE, now=0.0)
    lacking = [name for name in V6E.zones if V6E.types[0].name not in listed.types.get(Zone(name), ())]
    silent = sorted(listed.silent)
    observation = f"Not in {', '.join(lacking)}." if lacking else f"All {len(V6E.zones)} zones list it."
    return compare(
        "machine-types",
        is_as_believed=not lacking,
        observation=f"{observation} No answer from {', '.join(silent)}." if silent else observation,
    )


def _prices(connection: CloudConnection, project: str) -> FactFinding:
    del project
    current = {(r.region, r.provisioning): r.usd for r in billing.rates(connection) if r.generation == V6E.name}
    if not current:
        return compare(
            "prices",
            is_as_believed=False,
            observation="No SKU of the billing catalogue is named as the catalogue says.",
        )
    changes = []
    for region, by_model in V6E.prices.items():
        for model, usd in by_model.items():
            price = current.get((region, Provisioning(model)))
            if price is not None and abs(price - usd) > _SAME_PRICE:
                changes.append(f"{model} in {region}: ${price:.2f}, not ${usd:.2f}")
    observation = f"{'; '.join(changes)}." if changes else f"{len(current)} prices are read, and none differs."
    return compare("prices", is_as_believed=not changes, observation=observation)


def _machine_memory(connection: CloudConnection, project: str) -> FactFinding:
    calls = connection.collection("compute", "v1", "machineTypes")
    memory = {type_.machine_type: type_.host_ram_gib for type_ in V6E.types if type_.hosts == 1}
    differences, machines_listed = [], []
    for name, gib in memory.items():
        request = calls.aggregatedList(project=project, filter=f'name = "{name}"')
        machines: list[Mapping[str, Any]] = []
        for page in pages(calls, request, next_method="aggregatedList_next"):
            for scope in page.get("items", {}).values():
                machines += scope.get("machineTypes", ())
        actual = {int(machine["memoryMb"]) / _GIB for machine in machines if "memoryMb" in machine}
        machines_listed += [name] if actual else []
        differences += [f"{name} has {each:.0f} GiB, not {gib}" for each in sorted(actual) if each != gib]
    if not machines_listed:
        return not_seen("machine-memory", "No zone lists a machine of v6e.")
    observation = (
        f"{'; '.join(differences)}." if differences else f"As the catalogue says: {', '.join(machines_listed)}."
    )
    return compare("machine-memory", is_as_believed=not differences, observation=observation)


def _image_family(connection: CloudConnection, project: str) -> FactFinding:
    del project
    image = image_of_family(connection, V6E.runtime_of(Backend.GCE_INSTANCE))
    return compare(
        "image-family", is_as_believed=True, observation=f"It is {image['name']}, of {image.get('diskSizeGb', '?')} GB."
    )


def _partial_success(connection: CloudConnection, project: str) -> FactFinding:
    calls = connection.collection("compute", "v1", "instances")
    request = calls.aggregatedList(project=project, filter=f"labels.{LINEAGE_LABEL}:*")
    request.uri = f"{request.uri}&returnPartialSuccess=true"

    def read() -> lists.Listed:
        with translate_errors("list the instances"):
            return [request.execute(num_retries=0)], set()

    _, error = _list(read)
    return compare("partial-success", is_as_believed=not error, observation=error or "The list is answered with it.")


def _region_quota(connection: CloudConnection, project: str) -> FactFinding:
    calls = connection.collection("compute", "v1", "regions")
    region = Zone(V6E.zones[0]).region
    rows = calls.get(project=project, region=region).execute(num_retries=0).get("quotas", ())
    metrics = {str(row.get("metric")) for row in rows}
    chips = sorted(metric for metric in metrics if "V6E" in metric or "CT6E" in metric)
    if chips:
        return compare("region-quota", is_as_believed=False, observation=f"It has {', '.join(chips)}.")
    has_addresses = "IN_USE_ADDRESSES" in metrics
    among = "are" if has_addresses else "are not"
    return compare(
        "region-quota", is_as_believed=has_addresses, observation=f"Addresses {among} among its {len(metrics)} quotas."
    )


def _list(read: Callable[[], lists.Listed]) -> tuple[int, str]:
    """Return how many items a list has, or why Google refuses this form of it.

    Raise `errors.CloudError` where that says nothing about the form: an outage, or a missing permission.
    """
    try:
        return len(read()[0]), ""
    except (Absent, PreconditionFailed) as cause:
        return 0, str(cause)
    except errors.Refused as refused:
        return 0, refused.message
    except errors.Denied as denied:
        if denied.refusal is None or denied.refusal.kind != "invalid":
            raise
        return 0, denied.message


_READS: Mapping[str, Callable[[CloudConnection, str], FactFinding]] = {
    "permissions": _permissions,
    "wildcard-queued-resources": _wildcard_queued_resources,
    "wildcard-nodes": _wildcard_nodes,
    "page-size": _page_size,
    "location-fields": _location_fields,
    "types": _types,
    "runtime-version": _runtime_version,
    "quota-parent": _quota_parent,
    "quota-metrics": _quota_metrics,
    "instance-quota-metrics": _instance_quota_metrics,
    "machine-types": _machine_types,
    "prices": _prices,
    "machine-memory": _machine_memory,
    "image-family": _image_family,
    "partial-success": _partial_success,
    "region-quota": _region_quota,
}
assert _READS.keys() == {fact.id for fact in facts_of(RehearsalStage.READ)}
