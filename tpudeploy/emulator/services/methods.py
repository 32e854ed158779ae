"""The methods of the other services that a deployment calls, Compute Engine among them: a row for each.

Every service answers at the one address of the emulator; version and path distinguish them, as in Google's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.emulator import discovery
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.compute_engine import groups, instances, networks, offers, operations
from tpudeploy.emulator.services import (
    billing,
    cloud_logging,
    iam,
    registries,
    secret_manager,
    service_usage,
)
from tpudeploy.emulator.wire import ApiCall

_CONTROL = (
    "instances.",
    "zoneOperations.",
    "resourcePolicies.",
    "regionInstanceTemplates.",
    "regionInstanceGroupManagers.",
    "regionOperations.",
)
Answer = Callable[[Cloud, ApiCall], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class ServiceMethod:
    """`path` matches the path without its leading slash; its groups are in the call's `query`.

    `document` is the name of the discovery document, None for a service that is not Google's.
    """

    service: str
    name: str
    http: str
    path: re.Pattern[str]
    answer: Answer
    document: str | None = None

    @property
    def is_control(self) -> bool:
        """Whether it controls machines, and so replies as fast as the API of Cloud TPU does."""
        return self.name.startswith(_CONTROL)


def _google(document: str, name: str, place: str, answer: Answer) -> ServiceMethod:
    """Return the method of a discovery document at a place such as `GET v1/{project}/secrets/{secret}`."""
    http, _, template = place.partition(" ")
    template = template.replace("{project}", "projects/(?P<project>[^/]+?)")
    pattern = re.sub(r"\{(\w+)\}", r"(?P<\1>[^/:]+)", template)
    return ServiceMethod(document.partition(".")[0], name, http, re.compile(pattern), answer, document)


_SECRETS = "secretmanager.v1"
_RESOURCES = "cloudresourcemanager.v3"
_METRICS = "v1beta1/{project}/services/{service}/consumerQuotaMetrics"
_REGION = "GET compute/v1/{project}/regions/{region}"
_GLOBAL = "GET compute/v1/{project}/global"
_AGGREGATED = "GET compute/v1/{project}/aggregated"
_ZONE = "compute/v1/{project}/zones/{zone}"
_INSTANCE = f"{_ZONE}/instances/{{instance}}"
_IN_REGION = "compute/v1/{project}/regions/{region}"
_POLICIES, _TEMPLATES = f"{_IN_REGION}/resourcePolicies", f"{_IN_REGION}/instanceTemplates"
_GROUPS = f"{_IN_REGION}/instanceGroupManagers"
_GROUP = f"{_GROUPS}/{{instanceGroupManager}}"
# Compute Engine's rows are the last, for its document is by far the largest.
METHODS: tuple[ServiceMethod, ...] = (
    _google(
        "serviceusage.v1beta1", "services.consumerQuotaMetrics.list", f"GET {_METRICS}", service_usage.list_metrics
    ),
    _google("serviceusage.v1", "services.batchGet", "GET v1/{project}/services:batchGet", service_usage.batch_get),
    _google("cloudbilling.v1", "services.skus.list", "GET v1/services/{service}/skus", billing.list_skus),
    _google(_RESOURCES, "projects.get", "GET v3/{project}", iam.get_project),
    _google(_RESOURCES, "projects.getIamPolicy", "POST v3/{project}:getIamPolicy", iam.get_project_policy),
    _google(_RESOURCES, "projects.testIamPermissions", "POST v3/{project}:testIamPermissions", iam.test_project),
    _google("iam.v1", "roles.get", "GET v1/{project}/roles/{role}", iam.get_role),
    _google("iam.v1", "serviceAccounts.get", "GET v1/{project}/serviceAccounts/{email}", iam.get_account),
    _google(
        "iam.v1",
        "serviceAccounts.testIamPermissions",
        "POST v1/{project}/serviceAccounts/{email}:testIamPermissions",
        iam.test_account,
    ),
    _google(
        _SECRETS, "versions.get", "GET v1/{project}/secrets/{secret}/versions/{version}", secret_manager.get_version
    ),
    _google(_SECRETS, "secrets.getIamPolicy", "GET v1/{project}/secrets/{secret}:getIamPolicy", secret_manager.policy),
    _google(
        _SECRETS,
        "secrets.testIamPermissions",
        "POST v1/{project}/secrets/{secret}:testIamPermissions",
        secret_manager.test_permissions,
    ),
    _google("logging.v2", "entries.list", "POST v2/entries:list", cloud_logging.list_entries),
    _google("compute.v1", "regions.get", _REGION, networks.get_region),
    _google("compute.v1", "networks.get", f"{_GLOBAL}/networks/{{network}}", networks.get_network),
    _google("compute.v1", "subnetworks.get", f"{_REGION}/subnetworks/{{subnetwork}}", networks.get_subnetwork),
    _google("compute.v1", "routers.list", f"{_REGION}/routers", networks.list_routers),
    _google("compute.v1", "firewalls.list", f"{_GLOBAL}/firewalls", networks.list_firewalls),
    _google("compute.v1", "machineTypes.get", f"GET {_ZONE}/machineTypes/{{machineType}}", offers.get_machine_type),
    _google("compute.v1", "machineTypes.aggregatedList", f"{_AGGREGATED}/machineTypes", offers.list_machine_types),
    _google("compute.v1", "images.getFromFamily", f"{_GLOBAL}/images/family/{{family}}", offers.get_image),
    _google("compute.v1", "instances.insert", f"POST {_ZONE}/instances", instances.insert),
    _google("compute.v1", "instances.get", f"GET {_INSTANCE}", instances.get),
    _google("compute.v1", "instances.list", f"GET {_ZONE}/instances", instances.list_),
    _google("compute.v1", "instances.aggregatedList", f"{_AGGREGATED}/instances", instances.aggregated_list),
    _google("compute.v1", "instances.delete", f"DELETE {_INSTANCE}", instances.delete),
    _google("compute.v1", "instances.setMetadata", f"POST {_INSTANCE}/setMetadata", instances.replace_part),
    _google("compute.v1", "instances.setLabels", f"POST {_INSTANCE}/setLabels", instances.replace_part),
    _google("compute.v1", "instances.setTags", f"POST {_INSTANCE}/setTags", instances.replace_part),
    _google("compute.v1", "instances.reset", f"POST {_INSTANCE}/reset", instances.reset),
    _google("compute.v1", "instances.stop", f"POST {_INSTANCE}/stop", instances.stop),
    _google("compute.v1", "instances.start", f"POST {_INSTANCE}/start", instances.start),
    _google(
        "compute.v1",
        "instances.getGuestAttributes",
        f"GET {_INSTANCE}/getGuestAttributes",
        instances.get_guest_attributes,
    ),
    _google(
        "compute.v1", "instances.getSerialPortOutput", f"GET {_INSTANCE}/serialPort", instances.get_serial_port_output
    ),
    _google(
        "compute.v1",
        "instances.reportHostAsFaulty",
        f"POST {_INSTANCE}/reportHostAsFaulty",
        instances.report_host_as_faulty,
    ),
    _google("compute.v1", "zoneOperations.get", f"GET {_ZONE}/operations/{{operation}}", operations.get),
    _google("compute.v1", "zoneOperations.list", f"GET {_ZONE}/operations", operations.list_),
    _google("compute.v1", "resourcePolicies.insert", f"POST {_POLICIES}", groups.insert_part),
    _google("compute.v1", "resourcePolicies.get", f"GET {_POLICIES}/{{resourcePolicy}}", groups.get_part),
    _google("compute.v1", "resourcePolicies.delete", f"DELETE {_POLICIES}/{{resourcePolicy}}", groups.delete_part),
    _google("compute.v1", "resourcePolicies.aggregatedList", f"{_AGGREGATED}/resourcePolicies", groups.list_parts),
    _google("compute.v1", "instanceTemplates.aggregatedList", f"{_AGGREGATED}/instanceTemplates", groups.list_parts),
    _google("compute.v1", "regionInstanceTemplates.insert", f"POST {_TEMPLATES}", groups.insert_part),
    _google("compute.v1", "regionInstanceTemplates.get", f"GET {_TEMPLATES}/{{instanceTemplate}}", groups.get_part),
    _google(
        "compute.v1", "regionInstanceTemplates.delete", f"DELETE {_TEMPLATES}/{{instanceTemplate}}", groups.delete_part
    ),
    _google("compute.v1", "regionInstanceGroupManagers.insert", f"POST {_GROUPS}", groups.insert),
    _google("compute.v1", "regionInstanceGroupManagers.get", f"GET {_GROUP}", groups.get),
    _google("compute.v1", "regionInstanceGroupManagers.delete", f"DELETE {_GROUP}", groups.delete),
    _google(
        "compute.v1",
        "regionInstanceGroupManagers.listManagedInstances",
        f"POST {_GROUP}/listManagedInstances",
        groups.list_managed_instances,
    ),
    _google("compute.v1", "regionOperations.get", f"GET {_IN_REGION}/operations/{{operation}}", operations.get),
    _google("compute.v1", "regionOperations.wait", f"POST {_IN_REGION}/operations/{{operation}}/wait", operations.wait),
    _google("compute.v1", "regionOperations.list", f"GET {_IN_REGION}/operations", operations.list_),
    ServiceMethod(  # any registry, under its own name
        "registry",
        "manifests.head",
        "HEAD",
        re.compile(r"registry/(?P<host>[^/]+)/v2/(?P<repository>.+)/manifests/(?P<reference>[^/]+)"),
        registries.head_manifest,
    ),
    ServiceMethod(
        "registry",
        "manifests.get",
        "GET",
        re.compile(r"registry/(?P<host>[^/]+)/v2/(?P<repository>.+)/manifests/(?P<reference>[^/]+)"),
        registries.get_manifest,
    ),
    ServiceMethod(
        "registry",
        "blobs.get",
        "GET",
        re.compile(r"registry/(?P<host>[^/]+)/v2/(?P<repository>.+)/blobs/(?P<digest>sha256:[0-9a-f]{64})"),
        registries.get_blob,
    ),
    ServiceMethod(  # Hugging Face's hub
        "hub",
        "models.get",
        "GET",
        re.compile(r"hub/api/models/(?P<model>[^/]+(?:/[^/]+)?)/revision/(?P<revision>.+)"),
        registries.get_model,
    ),
    ServiceMethod(
        "hub",
        "models.config",
        "GET",
        re.compile(r"hub/(?P<model>[^/]+(?:/[^/]+)?)/resolve/(?P<revision>[^/]+)/config\.json"),
        registries.get_config,
    ),
)
DOCUMENTS = tuple(dict.fromkeys(method.document for method in METHODS if method.document is not None))


def find_method(http: str, path: str) -> tuple[ServiceMethod, Mapping[str, str]] | None:
    """Return the method at this path, and the names in the path."""
    for method in METHODS:
        match = method.path.fullmatch(path) if method.http == http else None
        if match is not None:
            return method, match.groupdict()
    return None


def is_googles(http: str, path: str) -> bool:
    """Return whether one of these services of Google's has a method at this path, served here or not."""
    return any(discovery.has_method(document, http, path) for document in DOCUMENTS)
