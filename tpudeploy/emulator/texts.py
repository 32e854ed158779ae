"""The texts of Google's refusals: a row for each cause, verbatim where the field has recorded it.

UNVERIFIED marks a wording that is not published: only code and status can be relied on.
Layers: L1 the reply to the request, L2 the create operation's error, L3 the queued resource FAILED, L5 the delete
operation's error. (L4, a node's state, has no text.)
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from hashlib import blake2b
from typing import Any

from tpudeploy.emulator.wire import RpcStatus

_QUOTA_FAILURE = "type.googleapis.com/google.rpc.QuotaFailure"
_ERROR_INFO = "type.googleapis.com/google.rpc.ErrorInfo"
CREATE = "queuedResources.create"
INSERT = "compute.instances.insert"
GROUP_INSERT = "compute.regionInstanceGroupManagers.insert"


@dataclass(frozen=True, slots=True)
class TpuRefusalText:
    """`eid`: the text ends in Google's random error id. `detail`: the type of its details element.

    `strikes` is the method that a scenario's row of this name refuses unless it says otherwise; "" where it has none.
    """

    layer: str
    code: int
    text: str
    eid: bool = False
    detail: str = ""
    strikes: str = CREATE


CAUSES: Mapping[str, TpuRefusalText] = {
    "stockout": TpuRefusalText(
        "L2",
        8,
        'There is no more capacity in the zone "{zone}"; you can try in another zone where Cloud TPU Nodes are'
        " offered (see https://cloud.google.com/tpu/docs/regions)",
        eid=True,
    ),
    "insufficient-capacity": TpuRefusalText("L2", 8, "Insufficient capacity"),
    "reserved-stockout": TpuRefusalText(
        "L2",
        8,
        "Insufficient reserved capacity. Contact customer support to increase your reservation.",
        eid=True,
    ),
    "internal-error": TpuRefusalText("L3", 13, "an internal error has occurred"),
    "quota-zero": TpuRefusalText(
        "L1", 8, "Quota limit '{quota}' has been exceeded. Limit: 0 in region {region}.", detail=_QUOTA_FAILURE
    ),
    "quota-exhausted": TpuRefusalText(
        "L1", 8, "Quota '{quota}' exhausted. Limit {limit} in region {region}", detail=_QUOTA_FAILURE
    ),
    "ip-quota": TpuRefusalText(
        "L3", 8, "Quota 'IN_USE_ADDRESSES' exceeded. IN_USE_ADDRESSES limit (8) in region {region}."
    ),
    "rate-limit": TpuRefusalText("L1", 8, "Maximum number of CreateNode requests per minute", detail=_QUOTA_FAILURE),
    "zone-unsupported": TpuRefusalText(
        "L1", 3, 'Cloud TPU received a bad request. The requested zone "{zone}" is not supported.', eid=True
    ),
    "type-unsupported": TpuRefusalText(
        "L1",
        3,
        "Cloud TPU received a bad request. The requested accelerator configuration for accelerator type,"
        ' "{type}", could not be found in the zonal accelerator configurations for "{zone}".; the accelerator'
        " {type} was not found in zone {zone}",
        eid=True,
    ),
    "model-unsupported": TpuRefusalText(
        "L2", 3, '{model} provisioning model is not supported for accelerator type "{type}" in location "{zone}"'
    ),
    "spot-mismatch": TpuRefusalText("L1", 3, "{model} provisioning model is incompatible with spot requests"),
    "no-queueing": TpuRefusalText("L2", 3, "Queueing is not supported for accelerator type {type}"),
    "too-big": TpuRefusalText("L1", 3, "Request size can be at most {limit} chips"),  # the unit is UNVERIFIED
    "queue-closed": TpuRefusalText(
        "L2",
        7,
        "User does not have permission to submit requests into this queue for accelerator type {type}"
        " in location {zone}",
    ),
    "reservation-missing": TpuRefusalText("L2", 5, "Reservation not found"),
    "reservation-queue": TpuRefusalText(
        "L1", 3, "Could not find a reservation for request queue {type}."
    ),  # UNVERIFIED
    "iam-denied": TpuRefusalText(  # UNVERIFIED
        "L1",
        7,
        "Permission '{permission}' denied on resource '//{service}.googleapis.com/{parent}' (or it may not exist).",
        detail=_ERROR_INFO,
        strikes="*",
    ),
    "unauthenticated": TpuRefusalText(
        "L1", 16, "Request had invalid authentication credentials.", strikes="*"
    ),  # UNVERIFIED
    "api-off": TpuRefusalText(
        "L1",
        7,
        "{title} API has not been used in project {project} before or it is disabled. Enable it by visiting"
        " https://console.developers.google.com/apis/api/{service}.googleapis.com/overview?project={project}"
        " then retry."
        " If you enabled this API recently, wait a few minutes for the action to propagate to our systems and retry.",
        detail=_ERROR_INFO,
        strikes="*",
    ),
    "location-denied": TpuRefusalText("L1", 7, "Location {zone} is not found or access is unauthorized.", strikes="*"),
    "no-subnetwork": TpuRefusalText("L1", 3, "No default subnetwork was found in region {region}"),
    "org-policy": TpuRefusalText(  # UNVERIFIED
        "L1", 9, "Constraint constraints/gcp.resourceLocations violated for projects/{project} in {zone}."
    ),
    # googlecodelabs/feedback issue 695
    "external-ip-forbidden": TpuRefusalText(
        "L1",
        9,
        "Constraint constraints/compute.vmExternalIpAccess violated for project {project}. Add instance"
        " projects/{project}/zones/{zone}/instances/x to the constraint to use external IP with it.",
    ),
    "organization-policy": TpuRefusalText(  # UNVERIFIED
        "L1", 9, "Constraint constraints/compute.requireOsLogin violated for project {project}."
    ),
    "subnetwork-missing": TpuRefusalText(
        "L1", 5, "The resource 'projects/{project}/regions/{region}/subnetworks/default' was not found"
    ),
    "network-missing": TpuRefusalText(
        "L1", 5, "The resource 'projects/{project}/global/networks/default' was not found"
    ),
    "network-address": TpuRefusalText(
        "L2",
        8,
        "IP_SPACE_EXHAUSTED: IP space of 'projects/{project}/regions/{region}/subnetworks/default' is exhausted.",
    ),
    "perimeter": TpuRefusalText(
        "L1", 7, "Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: 1A2B3C4D5E6F"
    ),
    "scopes": TpuRefusalText("L1", 7, "Request had insufficient authentication scopes."),
    "quota-project": TpuRefusalText(
        "L1",
        7,
        "Caller does not have required permission to use project {project}. Grant the caller the"
        " roles/serviceusage.serviceUsageConsumer role, or a custom role with the serviceusage.services.use permission",
    ),
    "billing-off": TpuRefusalText(
        "L1",
        7,
        "This API method requires billing to be enabled. Please enable billing on project #{project} by visiting"
        " https://console.developers.google.com/billing/enable?project={project} then retry.",
    ),
    "project-suspended": TpuRefusalText("L1", 7, "Permission denied: Consumer 'project:{project}' has been suspended."),
    "project-missing": TpuRefusalText("L1", 7, "Permission denied on resource project {project}."),
    # hashicorp/terraform-provider-google issue 4961
    "shared-network": TpuRefusalText(
        "L1",
        7,
        "Required 'compute.subnetworks.use' permission for 'projects/host/regions/{region}/subnetworks/default'",
    ),
    "act-as": TpuRefusalText(
        "L1",
        7,
        "The user does not have access to service account 'vm@{project}.iam.gserviceaccount.com'.  User:"
        " 'you@example.com'.  Ask a project owner to grant you the iam.serviceAccountUser role on the service account.",
    ),
    "service-account-missing": TpuRefusalText(  # UNVERIFIED
        "L1", 3, "The resource 'vm@{project}.iam.gserviceaccount.com' of type 'serviceAccount' was not found."
    ),
    "key-permission": TpuRefusalText(  # UNVERIFIED
        "L2",
        7,
        "Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource"
        " 'projects/{project}/locations/{region}/keyRings/r/cryptoKeys/k' (or it may not exist).",
    ),
    # hashicorp/terraform-provider-google issue 24153
    "reservation-required": TpuRefusalText(
        "L1",
        3,
        "Cloud TPU received an invalid argument. A target reservation must be specified when the host project has at"
        " least one reservation.",
        eid=True,
    ),
    "reservation-used": TpuRefusalText(  # UNVERIFIED
        "L2", 8, "Specified reservation 'mine' does not have available resources for the request."
    ),
    "quota-global": TpuRefusalText(
        "L2", 8, "Quota 'CPUS_ALL_REGIONS' exceeded. Limit: 32.0 globally.", detail=_QUOTA_FAILURE
    ),
    "not-found": TpuRefusalText("L1", 5, "Resource '{name}' was not found", strikes=""),
    "already-exists": TpuRefusalText("L1", 6, "Resource '{name}' already exists", strikes=""),  # UNVERIFIED
    "runtime-unknown": TpuRefusalText(  # UNVERIFIED
        "L1", 3, 'Cloud TPU received a bad request. The runtime version "{runtime}" is not valid.', eid=True
    ),
    "delete-refused": TpuRefusalText(  # UNVERIFIED
        "L5", 9, "Queued resource {name} is in state {state} and cannot be deleted.", eid=True, strikes=""
    ),
    "delete-needs-force": TpuRefusalText(  # UNVERIFIED
        "L1",
        9,
        "Queued resource {name} is in state {state}: delete its nodes first, or set force.",
        eid=True,
        strikes="",
    ),
    "state-refused": TpuRefusalText(
        "L1",
        9,
        "Cloud TPU received a bad request. {verb} is not supported while in state {state}",
        eid=True,
        strikes="",
    ),
    "expired": TpuRefusalText(  # UNVERIFIED
        "L3", 4, "The queued resource was not provisioned before its validity interval ended."
    ),
    "unavailable": TpuRefusalText("L1", 14, "The service is currently unavailable.", strikes="*"),
    "backend-error": TpuRefusalText("L1", 13, "Internal error encountered.", strikes="*"),
}

# Google's names of its services in the refusal of one that is off.
TITLES = {
    "cloudbilling": "Cloud Billing",
    "cloudresourcemanager": "Cloud Resource Manager",
    "compute": "Compute Engine",
    "iam": "Identity and Access Management (IAM)",
    "secretmanager": "Secret Manager",
    "serviceusage": "Service Usage",
    "tpu": "Cloud TPU",
}
_REASONS = {"api-off": "SERVICE_DISABLED", "iam-denied": "IAM_PERMISSION_DENIED"}


def status(cause: str, facts: Mapping[str, Any], *, message: str = "", code: int | None = None) -> RpcStatus:
    """Return the cause's status, its text filled from `facts`; `message` and `code` override the row."""
    row = CAUSES[cause]
    text = message or row.text.format_map(_Blank(facts))
    if row.eid and not message:
        text = f"{text} [EID: 0x{_eid(cause, facts)}]"
    return RpcStatus(code=code or row.code, message=text, details=_details(cause, row, text, facts))


def _details(cause: str, row: TpuRefusalText, text: str, facts: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    if row.detail == _QUOTA_FAILURE:
        subject = f"project:{facts.get('project', '')}"
        return ({"@type": row.detail, "violations": [{"subject": subject, "description": text}]},)
    if row.detail == _ERROR_INFO:
        metadata = {
            "service": f"{facts.get('service', 'tpu')}.googleapis.com",
            "consumer": f"projects/{facts.get('project', '')}",
        }
        reason = _REASONS[cause]
        return ({"@type": row.detail, "reason": reason, "domain": "googleapis.com", "metadata": metadata},)
    return ()


def _eid(cause: str, facts: Mapping[str, Any]) -> str:
    """Return an error id. Google's is random; here the same scenario gives the same text."""
    return blake2b(f"{cause} {sorted(facts.items())}".encode(), digest_size=8).hexdigest()


class _Blank(dict[str, Any]):
    """Facts in which an unknown one reads as its own name in angle brackets."""

    def __missing__(self, key: str) -> str:
        return f"<{key}>"
