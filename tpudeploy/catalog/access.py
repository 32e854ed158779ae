"""List what a project needs before it can have a slice: enabled services and granted permissions."""

from __future__ import annotations

from collections.abc import Mapping

TPU, COMPUTE, SECRETS, IAP = (f"{s}.googleapis.com" for s in ("tpu", "compute", "secretmanager", "iap"))
# Services that only `zones` and `doctor` use: without them, fewer facts are known, but everything works.
TELLING = tuple(f"{s}.googleapis.com" for s in ("serviceusage", "cloudbilling", "cloudresourcemanager", "iam"))
APIS = (TPU, COMPUTE, SECRETS, IAP, *TELLING)

# Permissions, with what each allows. Google publishes none for queued resources; that those of nodes apply to them is
# unverified.
PERMISSIONS: Mapping[str, str] = {
    "tpu.nodes.create": "ask for a slice",
    "tpu.nodes.get": "look at one",
    "tpu.nodes.list": "see what is held",
    "tpu.nodes.update": "change one in place",
    "tpu.nodes.reset": "restart a server",
    "tpu.nodes.delete": "give one back",
    "tpu.operations.get": "learn why one was refused",
    "tpu.locations.list": "list zones",
    "tpu.acceleratortypes.list": "list what zones have",
}
# Without these, only fewer facts are known.
TELLING_PERMISSIONS = ("tpu.nodes.list", "tpu.locations.list", "tpu.acceleratortypes.list")
ACT_AS = "iam.serviceAccounts.actAs"
READ_SECRET = "secretmanager.versions.access"  # noqa: S105 - a permission's name
# Predefined roles with this permission; a custom role may have it too.
SECRET_READERS = ("roles/secretmanager.secretAccessor", "roles/secretmanager.admin", "roles/owner")
# The source addresses of Identity-Aware Proxy.
IAP_RANGE = "35.235.240.0/20"
