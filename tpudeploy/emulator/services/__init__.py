"""The other services that a deployment touches: one file each, one row a method. All of them only read.

Every service answers under the one address of the emulator, told apart by version and path as in Google's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.emulator import discovery
from tpudeploy.emulator.call import Call
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.services import (
    billing,
    cloud_logging,
    compute,
    hub,
    iam,
    registry,
    resource_manager,
    secret_manager,
    service_usage,
)

Deed = Callable[[Cloud, Call], dict[str, Any]]


@dataclass(frozen=True, slots=True)
class Method:
    """`path` is a pattern, its groups the call's `query` beside what was really queried."""

    service: str
    name: str
    http: str
    path: str
    deed: Deed

    @property
    def document(self) -> str | None:
        """The name of its discovery document, None for a service that is not Google's."""
        if self.service in NOT_GOOGLES:
            return None
        versions = (name for name in DOCUMENTS if name.startswith(f"{self.service}."))
        return next(name for name in versions if f"{name.partition('.')[2]}/" in self.path)

    def match(self, http: str, path: str) -> Mapping[str, str] | None:
        found = re.fullmatch(self.path, path) if http == self.http else None
        return None if found is None else {k: v for k, v in found.groupdict().items() if v is not None}


NOT_GOOGLES = ("registry", "hub")
# Google's own descriptions of these services; compute's last, for it is by far the largest.
DOCUMENTS = (
    "serviceusage.v1beta1",
    "serviceusage.v1",
    "cloudbilling.v1",
    "cloudresourcemanager.v3",
    "iam.v1",
    "secretmanager.v1",
    "logging.v2",
    "compute.v1",
)
_P = r"projects/(?P<project>[^/]+?)"
_C = rf"compute/v1/{_P}"
METHODS: tuple[Method, ...] = (
    Method(
        "serviceusage",
        "services.consumerQuotaMetrics.list",
        "GET",
        rf"v1beta1/{_P}/services/(?P<of>[^/]+)/consumerQuotaMetrics",
        service_usage.list_metrics,
    ),
    Method("serviceusage", "services.batchGet", "GET", rf"v1/{_P}/services:batchGet", service_usage.batch_get),
    Method("cloudbilling", "services.skus.list", "GET", r"v1/services/(?P<of>[^/]+)/skus", billing.list_skus),
    Method("compute", "regions.get", "GET", rf"{_C}/regions/(?P<region>[^/]+)", compute.get_region),
    Method("compute", "networks.get", "GET", rf"{_C}/global/networks/(?P<network>[^/]+)", compute.get_network),
    Method(
        "compute",
        "subnetworks.get",
        "GET",
        rf"{_C}/regions/(?P<region>[^/]+)/subnetworks/(?P<subnetwork>[^/]+)",
        compute.get_subnetwork,
    ),
    Method("compute", "routers.list", "GET", rf"{_C}/regions/(?P<region>[^/]+)/routers", compute.list_routers),
    Method("compute", "firewalls.list", "GET", rf"{_C}/global/firewalls", compute.list_firewalls),
    Method("cloudresourcemanager", "projects.get", "GET", rf"v3/{_P}", resource_manager.get),
    Method("cloudresourcemanager", "projects.getIamPolicy", "POST", rf"v3/{_P}:getIamPolicy", resource_manager.policy),
    Method(
        "cloudresourcemanager",
        "projects.testIamPermissions",
        "POST",
        rf"v3/{_P}:testIamPermissions",
        resource_manager.test_permissions,
    ),
    Method("iam", "serviceAccounts.get", "GET", rf"v1/{_P}/serviceAccounts/(?P<email>[^/:]+)", iam.get),
    Method(
        "iam",
        "serviceAccounts.testIamPermissions",
        "POST",
        rf"v1/{_P}/serviceAccounts/(?P<email>[^/:]+):testIamPermissions",
        iam.test_permissions,
    ),
    Method(
        "secretmanager",
        "versions.get",
        "GET",
        rf"v1/{_P}/secrets/(?P<secret>[^/]+)/versions/(?P<version>[^/:]+)",
        secret_manager.get_version,
    ),
    Method(
        "secretmanager",
        "secrets.getIamPolicy",
        "GET",
        rf"v1/{_P}/secrets/(?P<secret>[^/:]+):getIamPolicy",
        secret_manager.policy,
    ),
    Method(
        "secretmanager",
        "secrets.testIamPermissions",
        "POST",
        rf"v1/{_P}/secrets/(?P<secret>[^/:]+):testIamPermissions",
        secret_manager.test_permissions,
    ),
    Method("logging", "entries.list", "POST", r"v2/entries:list", cloud_logging.list_entries),
    # No service of Google's: any registry, under its own name.
    Method(
        "registry",
        "manifests.head",
        "HEAD",
        r"registry/(?P<host>[^/]+)/v2/(?P<repository>.+)/manifests/(?P<reference>[^/]+)",
        registry.head,
    ),
    # Nor this: Hugging Face's hub.
    Method(
        "hub",
        "models.get",
        "GET",
        r"hub/api/models/(?P<model>[^/]+(?:/[^/]+)?)/revision/(?P<revision>.+)",
        hub.get,
    ),
)


def find(http: str, path: str) -> tuple[Method, Mapping[str, str]] | None:
    """The method that this path is of, and what the path names."""
    for method in METHODS:
        named = method.match(http, path)
        if named is not None:
            return method, named
    return None


def is_googles(http: str, path: str) -> bool:
    """Return whether one of these services of Google's has a method at this path, served here or not."""
    return any(discovery.has_method(document, http, path) for document in DOCUMENTS)
