"""What a project must allow before a slice can be had in it: services to be enabled, permissions to be held."""

from __future__ import annotations

from collections.abc import Mapping

TPU, COMPUTE, SECRETS, IAP = (f"{s}.googleapis.com" for s in ("tpu", "compute", "secretmanager", "iap"))
# What only `zones` and `doctor` ask: without them less is known, and everything works.
TELLING = tuple(f"{s}.googleapis.com" for s in ("serviceusage", "cloudbilling", "cloudresourcemanager", "iam"))
APIS = (TPU, COMPUTE, SECRETS, IAP, *TELLING)

# Permission → what goes without it. The published list of Cloud TPU's permissions has none for queued resources:
# that those of nodes govern them is unverified.
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
# Without these only less is known.
TELLING_PERMISSIONS = ("tpu.nodes.list", "tpu.locations.list", "tpu.acceleratortypes.list")
ACT_AS = "iam.serviceAccounts.actAs"
READ_SECRET = "secretmanager.versions.access"  # noqa: S105 - a permission's name
# Predefined roles that have it; a custom role may have it too.
SECRET_READERS = ("roles/secretmanager.secretAccessor", "roles/secretmanager.admin", "roles/owner")
# Where Identity-Aware Proxy comes from.
IAP_RANGE = "35.235.240.0/20"
