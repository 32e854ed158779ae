"""The texts of Compute Engine's refusals: a row for each cause that a scenario can script, or that a request meets.

UNVERIFIED marks a wording that is not published. Layers: L1 the reply to the request, L2 the insert operation's error
at once, L3 its error after the instance was visible, L5 the delete operation's error.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from tpudeploy.emulator import texts as tpu_texts
from tpudeploy.emulator.wire import CODES, ApiError, RpcStatus

_CODES = {400: 3, 401: 16, 403: 7, 404: 5, 409: 6, 412: 9, 500: 13, 503: 14}  # HTTP -> google.rpc.Code
_PHRASES = {
    400: "BAD REQUEST",
    403: "FORBIDDEN",
    404: "NOT FOUND",
    412: "PRECONDITION FAILED",
    503: "SERVICE UNAVAILABLE",
}


@dataclass(frozen=True, slots=True)
class ComputeRefusalText:
    """`reason` is in the error of a reply, `code` in that of an operation."""

    layer: str
    http: int
    reason: str
    code: str
    text: str


_INVALID = (400, "invalid", "INVALID_USAGE")
_QUOTA = (403, "quotaExceeded", "QUOTA_EXCEEDED")
_NOT_READY = (400, "resourceNotReady", "RESOURCE_NOT_READY")
_STOCKOUT = (503, "backendError", "ZONE_RESOURCE_POOL_EXHAUSTED")
_FULL = (
    "The zone 'projects/{project}/zones/{zone}' does not have enough resources available to fulfill the request."
    " Try a different zone, or try again later. (state:STOCKOUT)"  # the second sentence is UNVERIFIED
)
_CONDITION = (412, "conditionNotMet", "CONDITION_NOT_MET")

_FORBIDDEN = (403, "forbidden", "PERMISSION_DENIED")


def _of_tpu_api(cause: str) -> str:
    """Return the text of the same cause at the TPU API."""
    return tpu_texts.CAUSES[cause].text


CAUSES: Mapping[str, ComputeRefusalText] = {
    "stockout": ComputeRefusalText("L2", *_STOCKOUT, _FULL),
    "insufficient-capacity": ComputeRefusalText(
        "L2", 503, "backendError", "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", _FULL
    ),
    "internal-error": ComputeRefusalText(  # its text is UNVERIFIED
        "L3", 500, "backendError", "INTERNAL_ERROR", "Internal error. Please try again or contact Google Support."
    ),
    "quota-zero": ComputeRefusalText("L2", *_QUOTA, "Quota '{quota}' exceeded. Limit: 0.0 in region {region}."),
    "quota-exhausted": ComputeRefusalText(
        "L2", *_QUOTA, "Quota '{quota}' exceeded. Limit: {limit} in region {region}."
    ),
    "ip-quota": ComputeRefusalText("L2", *_QUOTA, "Quota 'IN_USE_ADDRESSES' exceeded. Limit: 8.0 in region {region}."),
    "rate-limit": ComputeRefusalText(
        "L1", 403, "rateLimitExceeded", "RATE_LIMIT_EXCEEDED", "Rate Limit Exceeded"
    ),  # UNVERIFIED
    "zone-unsupported": ComputeRefusalText(  # UNVERIFIED
        "L1", *_INVALID, "Invalid value for field 'zone': '{zone}'. Unknown zone."
    ),
    "type-unsupported": ComputeRefusalText(  # all but the last four words are UNVERIFIED
        "L1",
        *_INVALID,
        "Invalid value for field 'resource.machineType': 'zones/{zone}/machineTypes/{machine}'."
        " The request must provide existing machine type",
    ),
    "model-unsupported": ComputeRefusalText(  # UNVERIFIED
        "L2", *_INVALID, "The provisioning model {model} is not supported for machine type {machine} in zone {zone}."
    ),
    "iam-denied": ComputeRefusalText(  # UNVERIFIED
        "L1",
        403,
        "forbidden",
        "PERMISSION_DENIED",
        "Required '{permission}' permission for 'projects/{project}/zones/{zone}/instances/{name}'",
    ),
    "no-subnetwork": ComputeRefusalText("L1", *_INVALID, "No default subnetwork was found in region {region}"),
    "org-policy": ComputeRefusalText(  # its frame is UNVERIFIED
        "L1",
        *_CONDITION,
        "Location ZONE:{zone} violates constraint constraints/gcp.resourceLocations on the resource"
        " projects/{project}/zones/{zone}/instances/{name}.",
    ),
    "reservation-missing": ComputeRefusalText("L2", 404, "notFound", "RESOURCE_NOT_FOUND", "Reservation not found"),
    "unavailable": ComputeRefusalText(  # UNVERIFIED
        "L1", 503, "backendError", "SERVICE_UNAVAILABLE", "The service is currently unavailable."
    ),
    "backend-error": ComputeRefusalText(
        "L1", 500, "backendError", "INTERNAL_ERROR", "Internal error encountered."
    ),  # UNVERIFIED
    # Both APIs answer these in the words of whatever refuses: a policy, IAM, the network.
    "external-ip-forbidden": ComputeRefusalText("L1", *_CONDITION, _of_tpu_api("external-ip-forbidden")),
    "organization-policy": ComputeRefusalText("L1", *_CONDITION, _of_tpu_api("organization-policy")),
    "subnetwork-missing": ComputeRefusalText(
        "L1", 404, "notFound", "RESOURCE_NOT_FOUND", _of_tpu_api("subnetwork-missing")
    ),
    "network-missing": ComputeRefusalText(
        "L1",
        *_INVALID,
        "Invalid value for field 'resource.networkInterfaces[0].network': 'projects/{project}/global/networks/default'."
        " The referenced network resource cannot be found.",
    ),
    "network-address": ComputeRefusalText(
        "L2", 403, "quotaExceeded", "IP_SPACE_EXHAUSTED", _of_tpu_api("network-address")
    ),
    "perimeter": ComputeRefusalText("L1", *_FORBIDDEN, _of_tpu_api("perimeter")),
    "scopes": ComputeRefusalText("L1", *_FORBIDDEN, _of_tpu_api("scopes")),
    "quota-project": ComputeRefusalText("L1", *_FORBIDDEN, _of_tpu_api("quota-project")),
    "billing-off": ComputeRefusalText("L1", *_FORBIDDEN, _of_tpu_api("billing-off")),
    "project-suspended": ComputeRefusalText("L1", *_FORBIDDEN, _of_tpu_api("project-suspended")),
    "project-missing": ComputeRefusalText("L1", *_FORBIDDEN, _of_tpu_api("project-missing")),
    "shared-network": ComputeRefusalText("L1", *_FORBIDDEN, _of_tpu_api("shared-network")),
    "act-as": ComputeRefusalText("L1", *_INVALID, _of_tpu_api("act-as")),
    "service-account-missing": ComputeRefusalText("L1", *_INVALID, _of_tpu_api("service-account-missing")),
    "key-permission": ComputeRefusalText("L2", *_FORBIDDEN, _of_tpu_api("key-permission")),
    "reservation-required": ComputeRefusalText("L1", *_INVALID, _of_tpu_api("reservation-required")),
    "reservation-used": ComputeRefusalText("L2", *_INVALID, _of_tpu_api("reservation-used")),
    "quota-global": ComputeRefusalText("L2", *_QUOTA, _of_tpu_api("quota-global")),
    # No scenario scripts the ones below.
    "not-found": ComputeRefusalText("L1", 404, "notFound", "RESOURCE_NOT_FOUND", "The resource '{name}' was not found"),
    "already-exists": ComputeRefusalText(
        "L1", 409, "alreadyExists", "RESOURCE_ALREADY_EXISTS", "The resource '{name}' already exists"
    ),
    "state-refused": ComputeRefusalText("L1", *_NOT_READY, "The resource '{name}' is not ready"),  # UNVERIFIED
    "delete-refused": ComputeRefusalText("L5", *_NOT_READY, "The resource '{name}' is not ready"),  # UNVERIFIED
    "lapsed": ComputeRefusalText("L2", *_STOCKOUT, _FULL),  # UNVERIFIED: whether there is an error at all, and which
    "withdrawn": ComputeRefusalText(  # UNVERIFIED
        "L2", 400, "invalid", "OPERATION_CANCELED_BY_USER", "The operation was canceled: the resource was deleted."
    ),
    "in-use": ComputeRefusalText(  # UNVERIFIED
        "L1",
        400,
        "resourceInUseByAnotherResource",
        "RESOURCE_IN_USE_BY_ANOTHER_RESOURCE",
        "The resource '{name}' is already being used by '{user}'",
    ),
    "machine-refused": ComputeRefusalText(
        "L1", 403, "forbidden", "FORBIDDEN", "This user agent is not allowed to use the machine type [{machine}]"
    ),
    "metadata-changed": ComputeRefusalText(
        "L1", *_CONDITION, "Supplied fingerprint does not match current metadata fingerprint."
    ),  # UNVERIFIED, like the next two
    "labels-changed": ComputeRefusalText(
        "L1", *_CONDITION, "Labels fingerprint either invalid or resource labels have changed"
    ),
    "tags-changed": ComputeRefusalText(
        "L1", *_CONDITION, "Supplied fingerprint does not match current tags fingerprint."
    ),
}


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeStatus(RpcStatus):
    """A refusal in Compute Engine's forms: `reason` of a reply, `error` the code of an operation."""

    http_code: int
    reason: str
    error: str

    @property
    def http(self) -> int:
        return self.http_code

    def error_body(self) -> dict[str, Any]:
        row = {"message": self.message, "domain": "global", "reason": self.reason}
        return {"error": {"code": self.http, "message": self.message, "errors": [row]}}

    def operation_error(self) -> dict[str, Any]:
        """Return the fields of an operation that ended with this error."""
        row: dict[str, Any] = {"code": self.error, "message": self.message}
        if self.details:
            row["errorDetails"] = list(self.details)
        phrase = _PHRASES.get(self.http, CODES[self.code][0])
        return {"error": {"errors": [row]}, "httpErrorStatusCode": self.http, "httpErrorMessage": phrase}


def status(
    cause: str, facts: Mapping[str, Any], *, message: str = "", code: object = None, zones_available: str = ""
) -> ComputeStatus:
    """Return the cause's status, its text filled from `facts`. `message` and `code` override the row.

    `code` is the code of an operation's error, or a google.rpc.Code, whose HTTP status then counts.
    """
    row = CAUSES[cause]
    http = next((http for http, number in _CODES.items() if number == code), row.http)
    details = {"stockout": _stockout, "quota-zero": _quota, "quota-exhausted": _quota}.get(cause)
    return ComputeStatus(
        code=_CODES[http],
        message=message or row.text.format_map(facts),
        details=() if details is None else details({**facts, "zones_available": zones_available}),
        http_code=http,
        reason=row.reason,
        error=code if isinstance(code, str) else row.code,
    )


def refuse(cause: str, **facts: Any) -> ApiError:
    return ApiError(status(cause, facts))


def invalid(field: str, value: object, text: str) -> ApiError:
    """Return the refusal of a field of a request."""
    message = f"Invalid value for field 'resource.{field}': '{value}'. {text}"
    return ApiError(status("zone-unsupported", {}, message=message))


def _stockout(facts: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    metadatas = {
        "zone": facts["zone"],
        "vmType": facts["machine"],
        "attachment": "",
        "zonesAvailable": facts["zones_available"],
    }
    info = {"reason": "stockout", "domain": "compute.googleapis.com", "metadatas": metadatas}
    return ({"errorInfo": info},)


def _quota(facts: Mapping[str, Any]) -> tuple[Mapping[str, Any], ...]:
    info = {
        "metricName": f"compute.googleapis.com/{str(facts['quota']).lower()}",
        "limitName": f"{str(facts['quota']).replace('_', '-')}-per-project-region",
        "dimensions": {"region": facts["region"]},
        "limit": float(facts["limit"]),
    }
    return ({"quotaInfo": info},)
