"""List what a project needs before it can have a slice: enabled services and granted permissions."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.catalog import routers
from tpudeploy.catalog.backends import BACKENDS
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.router import RouterHost

TPU, COMPUTE, SECRETS, IAP = (f"{s}.googleapis.com" for s in ("tpu", "compute", "secretmanager", "iap"))
# Services that only `zones` and `doctor` use: without them, fewer facts are known, but everything works.
TELLING = tuple(f"{s}.googleapis.com" for s in ("serviceusage", "cloudbilling", "cloudresourcemanager", "iam"))
APIS = (TPU, COMPUTE, SECRETS, IAP, *TELLING)

# At `routers.BACKEND`, for the VM of a router in front of slices that another API grants.
ROUTER_PERMISSIONS: Mapping[str, str] = {
    "compute.instances.create": "create the router's VM",
    "compute.disks.create": "give the router's VM a disk",
    "compute.instances.get": "look at the router's VM",
    "compute.instances.list": "find the router's VM again",
    "compute.instances.setMetadata": "give the router the list of replicas",
    "compute.instances.setLabels": "label the router's VM",
    "compute.instances.reset": "restart the router's VM",
    "compute.instances.delete": "delete the router's VM",
    "compute.zoneOperations.get": "learn why the router's VM was refused",
}
# Without these, only fewer facts are known.
TELLING_PERMISSIONS = (
    "tpu.nodes.list",
    "tpu.locations.list",
    "tpu.acceleratortypes.list",
    "compute.machineTypes.list",
)
ACT_AS = "iam.serviceAccounts.actAs"
READ_SECRET = "secretmanager.versions.access"  # noqa: S105 - a permission's name
# Predefined roles with this permission; a custom role may have it too.
SECRET_READERS = ("roles/secretmanager.secretAccessor", "roles/secretmanager.admin", "roles/owner")
# The source addresses of Identity-Aware Proxy.
IAP_RANGE = "35.235.240.0/20"


# The predefined roles by which a machine may delete its own request. Source: Google's list of IAM roles, 2026-11.
_ENDS = {
    row.service: frozenset((*row.deletion_permissions, *row.group_deletion_permissions)) for row in BACKENDS.values()
}
_ALL_ENDS = frozenset().union(*_ENDS.values())
ROLES_THAT_END: Mapping[str, frozenset[str]] = {
    "roles/owner": _ALL_ENDS,
    "roles/editor": _ALL_ENDS,
    "roles/tpu.admin": _ENDS[TPU],
    "roles/compute.admin": _ENDS[COMPUTE],
    "roles/compute.instanceAdmin": _ENDS[COMPUTE],
    "roles/compute.instanceAdmin.v1": _ENDS[COMPUTE],
}


def end_permissions(deployment: Deployment) -> frozenset[str]:
    """Return what its machines, and the VM of its router, need to delete their own requests at an end.

    Empty without an end.
    """
    lifecycle, hosts = deployment.lifecycle, deployment.accelerator.hosts
    if lifecycle.end is None and lifecycle.idle is None and lifecycle.hours is None:
        return frozenset()
    requests = [BACKENDS[backend].deletion_of(hosts) for backend in deployment.backends]
    if deployment.router is not None and deployment.router.host is RouterHost.VM:
        requests.append(BACKENDS[routers.BACKEND].deletion_of(1))
    return frozenset(permission for _, permissions in requests for permission in permissions)


def needed_permissions(deployment: Deployment) -> Mapping[Backend, Mapping[str, str]]:
    """Return the permissions that a deployment needs at each API, with what each allows."""
    needed: dict[Backend, Mapping[str, str]] = {}
    for backend in deployment.backends:
        row, is_group = BACKENDS[backend], deployment.accelerator.hosts > 1
        needed[backend] = {**row.permissions, **row.group_permissions} if is_group else row.permissions
    if deployment.router is not None and deployment.router.host is RouterHost.VM:
        needed.setdefault(routers.BACKEND, ROUTER_PERMISSIONS)
    return needed
