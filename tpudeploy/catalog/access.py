"""List what a project needs before it can have a slice: enabled services and granted permissions."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.router import RouterHost

TPU, COMPUTE, SECRETS, IAP = (f"{s}.googleapis.com" for s in ("tpu", "compute", "secretmanager", "iap"))
# Services that only `zones` and `doctor` use: without them, fewer facts are known, but everything works.
TELLING = tuple(f"{s}.googleapis.com" for s in ("serviceusage", "cloudbilling", "cloudresourcemanager", "iam"))
APIS = (TPU, COMPUTE, SECRETS, IAP, *TELLING)

# Permissions at each API, with what each allows. Google publishes none for queued resources; that those of nodes apply
# to them is unverified.
PERMISSIONS: Mapping[Backend, Mapping[str, str]] = {
    Backend.QUEUED_RESOURCE: {
        "tpu.nodes.create": "request a slice",
        "tpu.nodes.get": "look at one",
        "tpu.nodes.list": "see what is held",
        "tpu.nodes.update": "change one in place",
        "tpu.nodes.reset": "restart a server",
        "tpu.nodes.delete": "delete one",
        "tpu.operations.get": "learn why one was refused",
        "tpu.locations.list": "list zones",
        "tpu.acceleratortypes.list": "list what zones have",
    },
    Backend.GCE_INSTANCE: {
        "compute.instances.create": "request a slice",
        "compute.disks.create": "give it a disk",
        "compute.instances.get": "look at one",
        "compute.instances.list": "see what is held",
        "compute.instances.setMetadata": "change one in place",
        "compute.instances.setLabels": "label one",
        "compute.instances.reset": "restart a server",
        "compute.instances.delete": "delete one",
        "compute.zoneOperations.get": "learn why one was refused",
        "compute.machineTypes.list": "list what zones have",
    },
}
# At Compute Engine, a slice of several hosts is a group of instances.
GROUP_PERMISSIONS: Mapping[str, str] = {
    "compute.resourcePolicies.create": "create a workload policy",
    "compute.resourcePolicies.use": "give a workload policy to a group",
    "compute.resourcePolicies.list": "find a workload policy again",
    "compute.resourcePolicies.delete": "delete a workload policy",
    "compute.instanceTemplates.create": "create an instance template",
    "compute.instanceTemplates.list": "find an instance template again",
    "compute.instanceTemplates.delete": "delete an instance template",
    "compute.instanceGroupManagers.create": "request a group of instances",
    "compute.instanceGroupManagers.get": "look at a group of instances",
    "compute.instanceGroupManagers.delete": "delete a group of instances",
    "compute.regionOperations.get": "learn why a group was refused",
}
# At Compute Engine, for the VM of a router in front of slices that the other API grants.
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


def needed_permissions(deployment: Deployment) -> Mapping[Backend, Mapping[str, str]]:
    """Return the permissions that a deployment needs at each API, with what each allows."""
    needed = {backend: PERMISSIONS[backend] for backend in deployment.backends}
    if Backend.GCE_INSTANCE in needed:
        if deployment.accelerator.hosts > 1:
            needed[Backend.GCE_INSTANCE] = {**PERMISSIONS[Backend.GCE_INSTANCE], **GROUP_PERMISSIONS}
    elif deployment.router is not None and deployment.router.host is RouterHost.VM:
        needed[Backend.GCE_INSTANCE] = ROUTER_PERMISSIONS
    return needed
