"""Google's refusals and what they mean: one row for each text seen in the wild. Add a new one here.

Rows are tried from the top; the first whose pattern is found in the text wins. `example` is the text as it was seen,
and the row's test. What no row knows falls to its code, see `_BY_CODE`.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from tpudeploy.adapters.google.codes import Code
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.slices import Refusal, Remedy, Scope

_MINUTES = 60.0
_HOURS = 3600.0
_EID = re.compile(r"\s*\[EID: 0x[0-9a-f]+\]", re.IGNORECASE)


@frozen
class Verdict:
    """`scope` None: read from the text (`in region R`, `in zone Z`). `hint` is what a person can do."""

    kind: str
    pattern: str
    remedy: Remedy
    scope: Scope | None
    holds: float
    hint: str
    example: str


def _by_code(kind: str, remedy: Remedy, scope: Scope, holds: float, hint: str = "") -> Verdict:
    return Verdict(kind=kind, pattern="", remedy=remedy, scope=scope, holds=holds, hint=hint, example="")


_GRANT = "Run: gcloud projects add-iam-policy-binding PROJECT --member=user:YOU --role=roles/tpu.admin"
_LOGIN = "Run: gcloud auth application-default login"

VERDICTS: tuple[Verdict, ...] = (
    Verdict(
        kind="stockout-reserved",
        pattern=r"insufficient reserved capacity",
        remedy=Remedy.NEXT_ZONE,
        scope=Scope.PAIR,
        holds=10 * _MINUTES,
        hint="Also seen where no reservation was asked for. With a reservation: it is full, or of another type.",
        example="Insufficient reserved capacity. Contact customer support to increase your reservation. [EID: 0x1a]",
    ),
    Verdict(
        kind="stockout",
        pattern=r"no more capacity in the zone|insufficient capacity",
        remedy=Remedy.NEXT_ZONE,
        scope=Scope.PAIR,
        holds=5 * _MINUTES,
        hint="Nothing is wrong with the request: the zone is full. More zones, or flex-start, help.",
        example='There is no more capacity in the zone "us-central1-b"; you can try in another zone where Cloud TPU '
        "Nodes are offered (see https://cloud.google.com/tpu/docs/regions) [EID: 0x1a2b]",
    ),
    Verdict(
        kind="rate-limit",
        pattern=r"requests per minute",
        remedy=Remedy.LOOK_AGAIN,
        scope=Scope.PROJECT,
        holds=1 * _MINUTES,
        hint="The project may create 91 nodes a minute; we wait.",
        example="Quota exceeded for quota metric 'Create' and limit 'Maximum number of CreateNode requests per minute'",
    ),
    Verdict(
        kind="address-quota",
        pattern=r"IN_USE_ADDRESSES",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.REGION,
        holds=1 * _HOURS,
        hint="Each VM takes an external address. Set placement.network.external_ip: false (with Private Google "
        "Access), or raise the quota.",
        example="Quota 'IN_USE_ADDRESSES' exceeded. Limit: 8.0 in region us-east5.",
    ),
    Verdict(
        kind="quota-none",
        pattern=r"quota limit '[^']*' has been exceeded\. limit: 0\b",
        remedy=Remedy.DROP_ZONE,
        scope=None,
        holds=24 * _HOURS,
        hint="The project has no quota for this there; waiting does not help. Ask for it, or drop the zone.",
        example="Quota limit 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' has been exceeded. Limit: 0 in region "
        "us-east5.",
    ),
    Verdict(
        kind="quota",
        pattern=r"quota limit '[^']*' has been exceeded|quota '[^']*' exhausted|exceeded quota",
        remedy=Remedy.NEXT_ZONE,
        scope=None,
        holds=5 * _MINUTES,
        hint="Requests that failed or were preempted use quota until they are deleted.",
        example="Quota 'TPUV5sPreemptibleLitepodPerProjectPerRegionForTPUAPI' exhausted. Limit 10000 in region "
        "us-west4",
    ),
    Verdict(
        kind="zone-unsupported",
        pattern=r'the requested zone "[^"]*" is not supported',
        remedy=Remedy.DROP_ZONE,
        scope=Scope.ZONE,
        holds=24 * _HOURS,
        hint="Cloud TPU does not serve this zone.",
        example='Cloud TPU received a bad request. The requested zone "asia-northeast1-a" is not supported. [EID: 0x1]',
    ),
    Verdict(
        kind="type-unsupported",
        pattern=r"could not be found in the zonal accelerator configurations|invalid AcceleratorType",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.ZONE,
        holds=24 * _HOURS,
        hint="This slice type is not offered in the zone.",
        example="Cloud TPU received a bad request. The requested accelerator configuration for accelerator type, "
        '"v6e-1", could not be found in the zonal accelerator configurations for "asia-east1-a".; the accelerator '
        "v6e-1 was not found in zone asia-east1-a [EID: 0x1]",
    ),
    Verdict(
        kind="model-mismatch",
        pattern=r"STANDARD provisioning model is incompatible",
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * _MINUTES,
        hint="Our request contradicts itself. Please report this.",
        example="STANDARD provisioning model is incompatible with spot requests",
    ),
    Verdict(
        kind="model-unsupported",
        pattern=r"provisioning model is not supported for accelerator type",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.PAIR,
        holds=24 * _HOURS,
        hint="The zone offers the type, but not under this provisioning model.",
        example='FLEX_START provisioning model is not supported for accelerator type "v6e-1" in location '
        '"asia-east1-c"',
    ),
    Verdict(
        kind="no-queueing",
        pattern=r"queueing is not supported",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.ZONE,
        holds=24 * _HOURS,
        hint="The zone takes no queued resources for this type.",
        example="Queueing is not supported for accelerator type v5litepod-1",
    ),
    Verdict(
        kind="too-big",
        pattern=r"request size can be at most",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.ZONE,
        holds=24 * _HOURS,
        hint="The zone has no slice of this size; a smaller tpu.type may do.",
        example="Request size can be at most 16 chips in this zone",
    ),
    Verdict(
        kind="queue-closed",
        pattern=r"permission to submit requests (into this queue )?for accelerator type",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.PAIR,
        holds=24 * _HOURS,
        hint="Not a matter of IAM: Google has closed this queue to the project.",
        example="User does not have permission to submit requests into this queue for accelerator type v6e-8 in "
        "location us-east5-b",
    ),
    Verdict(
        kind="reservation-queue",
        pattern=r"reservation for request queue",
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * _MINUTES,
        hint="Check placement.reservation and its quota.",
        example="Could not find a reservation for request queue v6e",
    ),
    Verdict(
        kind="reservation-missing",
        pattern=r"reservation not found",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.PAIR,
        holds=24 * _HOURS,
        hint="The zone serves reservations only.",
        example="Reservation not found",
    ),
    Verdict(
        kind="location-denied",
        pattern=r"location \S+ is not found or access is unauthorized",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.ZONE,
        holds=24 * _HOURS,
        hint="The zone does not exist for this project.",
        example="Location us-east1-d is not found or access is unauthorized.",
    ),
    Verdict(
        kind="policy",
        pattern=r"constraints/gcp\.resourceLocations|no default subnetwork was found",
        remedy=Remedy.DROP_ZONE,
        scope=Scope.REGION,
        holds=24 * _HOURS,
        hint="An organisation policy, or a missing subnetwork, closes this region: see placement.network.",
        example="No default subnetwork was found in region us-east5",
    ),
    Verdict(
        kind="api-off",
        pattern=r"api has not been used in project|it is disabled",
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * _MINUTES,
        hint="Run: gcloud services enable tpu.googleapis.com",
        example="Cloud TPU API has not been used in project 1 before or it is disabled. Enable it by visiting "
        "https://console.developers.google.com/apis/api/tpu.googleapis.com/overview?project=1 then retry.",
    ),
    Verdict(
        kind="permission",
        pattern=r"permission '[^']*' denied on resource",
        remedy=Remedy.STOP,
        scope=Scope.PROJECT,
        holds=10 * _MINUTES,
        hint=_GRANT,
        example="Permission 'tpu.nodes.create' denied on resource '//tpu.googleapis.com/projects/p' "
        "(or it may not exist).",
    ),
    Verdict(
        kind="internal",
        pattern=r"an internal error has occurred",
        remedy=Remedy.NEXT_ZONE,
        scope=Scope.PAIR,
        holds=5 * _MINUTES,
        hint="Google's word for a slice whose capacity was withdrawn.",
        example="an internal error has occurred",
    ),
    Verdict(
        kind="lapsed",
        pattern=r"valid.?until|validity interval|expired|could not be fulfilled in time",
        remedy=Remedy.NEXT_ZONE,
        scope=Scope.PAIR,
        holds=1 * _MINUTES,
        hint="The request waited for placement.valid_until and lapsed. The wording is unverified.",
        example="The queued resource request expired: valid until time has passed",
    ),
    Verdict(
        kind="preempted",
        pattern=r"while in state PREEMPTED|preempted",
        remedy=Remedy.NEXT_ZONE,
        scope=Scope.PAIR,
        holds=0.0,
        hint="The slice was taken back; it is asked for again.",
        example="Cloud TPU received a bad request. update is not supported while in state PREEMPTED [EID: 0x1]",
    ),
)

# What the code alone says, where no row knows the text. Unknown texts are reported verbatim.
_BY_CODE: Mapping[int, Verdict] = {
    Code.INVALID_ARGUMENT: _by_code("invalid", Remedy.STOP, Scope.PROJECT, 10 * _MINUTES),
    Code.DEADLINE_EXCEEDED: _by_code("lapsed", Remedy.NEXT_ZONE, Scope.PAIR, 1 * _MINUTES),
    Code.PERMISSION_DENIED: _by_code("permission", Remedy.STOP, Scope.PROJECT, 10 * _MINUTES, _GRANT),
    Code.RESOURCE_EXHAUSTED: _by_code("exhausted", Remedy.NEXT_ZONE, Scope.PAIR, 5 * _MINUTES),
    Code.UNAUTHENTICATED: _by_code("credentials", Remedy.STOP, Scope.PROJECT, 10 * _MINUTES, _LOGIN),
}
_UNKNOWN = _by_code("unknown", Remedy.NEXT_ZONE, Scope.PAIR, 10 * _MINUTES)


def verdict(text: str, code: int) -> Refusal:
    """What a refusal means. `code` is the canonical (gRPC) one; the random `[EID: …]` is dropped from the text."""
    message = _EID.sub("", text).strip()
    known = next((v for v in VERDICTS if re.search(v.pattern, message, re.IGNORECASE)), None)
    row = known if known is not None else _BY_CODE.get(code, _UNKNOWN)
    scope = row.scope if row.scope is not None else _named_scope(message)
    return Refusal(kind=row.kind, message=message, remedy=row.remedy, scope=scope, holds_seconds=row.holds)


def hint_for(kind: str) -> str:
    return next((v.hint for v in (*VERDICTS, *_BY_CODE.values()) if v.kind == kind), "")


def _named_scope(message: str) -> Scope:
    """A quota text says whose limit was hit. Both forms at once: the region's, as the wider one."""
    if re.search(r"in region|,region", message):
        return Scope.REGION
    return Scope.ZONE
