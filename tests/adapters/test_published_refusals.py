"""Every text of Google's that was ever published: its class, what is done about it, and what it speaks of."""

from __future__ import annotations

import pytest

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals import VERDICTS
from tpudeploy.adapters.google.verdicts import classify
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import RefusalScope, Remedy

LOOK, NEXT, DROP, STOP = Remedy.LOOK_AGAIN, Remedy.NEXT_ZONE, Remedy.DROP_ZONE, Remedy.STOP
FULL = "Insufficient reserved capacity. Contact customer support to increase your reservation. [EID: 0x3f]"
NONE = "Quota limit 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' has been exceeded. Limit: 0 in region us-east5."
BAD = "Cloud TPU received a bad request."
QUEUE = "User does not have permission to submit requests"

# Texts as they were published, with the code they came with: class, what is done, what it speaks of.
PUBLISHED: tuple[tuple[str, Code, str, Remedy, RefusalScope], ...] = (
    (
        'There is no more capacity in the zone "us-central1-b"; you can try in another zone where Cloud TPU Nodes are offered (see https://cloud.google.com/tpu/docs/regions) [EID: 0x50c1bc4a1fcc2f4]',
        Code.RESOURCE_EXHAUSTED,
        "stockout",
        NEXT,
        RefusalScope.PAIR,
    ),
    ("Insufficient capacity", Code.RESOURCE_EXHAUSTED, "stockout", NEXT, RefusalScope.PAIR),
    # Compute Engine's; those of an operation begin with the code of its error.
    (
        "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS: The zone 'projects/p/zones/us-east5-a' does not have enough resources available to fulfill the request. '(resource type:compute)'.",
        Code.UNKNOWN,
        "stockout",
        NEXT,
        RefusalScope.PAIR,
    ),
    (
        "QUOTA_EXCEEDED: Quota 'TPUS_PER_TPU_FAMILY' exceeded. Limit: 0.0 in region us-central1.",
        Code.UNKNOWN,
        "quota-none",
        DROP,
        RefusalScope.REGION_QUOTA,
    ),
    (
        "Quota 'PREEMPTIBLE_TPU_V6E' exceeded. Limit: 16.0 in region us-east5.",
        Code.PERMISSION_DENIED,
        "quota",
        NEXT,
        RefusalScope.REGION_QUOTA,
    ),
    (
        "This user agent is not allowed to use the machine type [ct5lp-hightpu-1t]",
        Code.PERMISSION_DENIED,
        "machine-refused",
        STOP,
        RefusalScope.PROJECT,
    ),
    ("INTERNAL_ERROR: Internal error.", Code.UNKNOWN, "internal", NEXT, RefusalScope.PAIR),
    (
        "Invalid value for field 'resource.machineType': 'x'. The request must provide existing machine type",
        Code.INVALID_ARGUMENT,
        "type-unsupported",
        DROP,
        RefusalScope.ZONE,
    ),
    (
        (
            "Invalid value for field 'resource.machineType': 'zones/us-east5-a/machineTypes/ct6e-standard-4t'. The "
            "referenced resource does not exist."
        ),
        Code.INVALID_ARGUMENT,
        "type-unsupported",
        DROP,
        RefusalScope.ZONE,
    ),
    (
        "The resource 'projects/p/zones/us-east5-a/machineTypes/ct6e-standard-1t' was not found",
        Code.NOT_FOUND,
        "type-unsupported",
        DROP,
        RefusalScope.ZONE,
    ),
    ("Reservation not found", Code.UNKNOWN, "reservation-missing", DROP, RefusalScope.PAIR),
    ("Network default does not have a subnetwork in us-east5", Code.UNKNOWN, "policy", DROP, RefusalScope.REGION),
    (FULL, Code.RESOURCE_EXHAUSTED, "stockout-reserved", NEXT, RefusalScope.PAIR),
    (FULL, Code.FAILED_PRECONDITION, "stockout-reserved", NEXT, RefusalScope.PAIR),
    ("an internal error has occurred", Code.INTERNAL, "internal", NEXT, RefusalScope.PAIR),
    ("Code 13: Internal Error", Code.UNKNOWN, "internal", NEXT, RefusalScope.PAIR),
    (NONE, Code.RESOURCE_EXHAUSTED, "quota-none", DROP, RefusalScope.REGION_QUOTA),
    (
        "Quota limit 'A,B' has been exceeded. Limit: 0,0 in region us-central1,zone us-central1-a.",
        Code.RESOURCE_EXHAUSTED,
        "quota-none",
        DROP,
        RefusalScope.REGION_QUOTA,
    ),
    (
        "Quota limit 'TPUV6EPreemptiblePerProjectPerZoneForTPUAPI' has been exceeded. Limit: 64 in zone us-east1-d.",
        Code.RESOURCE_EXHAUSTED,
        "quota",
        NEXT,
        RefusalScope.ZONE_QUOTA,
    ),
    (
        "Quota 'TPUV5sPreemptibleLitepodPerProjectPerRegionForTPUAPI' exhausted. Limit 10000 in region us-west4",
        Code.RESOURCE_EXHAUSTED,
        "quota",
        NEXT,
        RefusalScope.REGION_QUOTA,
    ),
    (
        "Quota 'TPUV6EPreemptiblePerProjectPerZoneForTPUAPI' exhausted. Limit 512 in zone us-east1-d",
        Code.RESOURCE_EXHAUSTED,
        "quota",
        NEXT,
        RefusalScope.ZONE_QUOTA,
    ),
    (
        "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service 'compute.googleapis.com' for consumer 'project_number:7'.",
        Code.PERMISSION_DENIED,
        "rate-limit",
        LOOK,
        RefusalScope.PROJECT,
    ),
    (
        "Maximum number of CreateNode requests per minute",
        Code.RESOURCE_EXHAUSTED,
        "rate-limit",
        LOOK,
        RefusalScope.PROJECT,
    ),
    ("IN_USE_ADDRESSES limit (8)", Code.RESOURCE_EXHAUSTED, "address-quota", DROP, RefusalScope.REGION_RESOURCES),
    (
        f'{BAD} The requested zone "asia-northeast1-a" is not supported. [EID: 0x3f]',
        Code.INVALID_ARGUMENT,
        "zone-unsupported",
        DROP,
        RefusalScope.ZONE,
    ),
    (
        f'{BAD} The requested accelerator configuration for accelerator type, "v6e-1", could not be found in the zonal accelerator configurations for "asia-east1-a".; the accelerator v6e-1 was not found in zone asia-east1-a [EID: 0x3f]',
        Code.INVALID_ARGUMENT,
        "type-unsupported",
        DROP,
        RefusalScope.ZONE,
    ),
    (
        'CloudTpu received an invalid AcceleratorType, "v3-8" for zone "us-central1-c". Valid values are "v2-8, ".',
        Code.INVALID_ARGUMENT,
        "type-unsupported",
        DROP,
        RefusalScope.ZONE,
    ),
    (
        'FLEX_START provisioning model is not supported for accelerator type "v6e-1" in location "asia-east1-c"',
        Code.INVALID_ARGUMENT,
        "model-unsupported",
        DROP,
        RefusalScope.PAIR,
    ),
    (
        "Queueing is not supported for accelerator type v5litepod-1",
        Code.INVALID_ARGUMENT,
        "no-queueing",
        DROP,
        RefusalScope.ZONE,
    ),
    (
        "STANDARD provisioning model is incompatible with spot requests",
        Code.INVALID_ARGUMENT,
        "model-mismatch",
        STOP,
        RefusalScope.PROJECT,
    ),
    ("Request size can be at most 128 chips", Code.INVALID_ARGUMENT, "too-big", DROP, RefusalScope.ZONE),
    (
        f"{QUEUE} into this queue for accelerator type v6e-8 in location us-east5-b",
        Code.PERMISSION_DENIED,
        "queue-closed",
        DROP,
        RefusalScope.ZONE,
    ),
    (
        f'{QUEUE} for accelerator type "v5litepod-4" in location us-central1-a',
        Code.PERMISSION_DENIED,
        "queue-closed",
        DROP,
        RefusalScope.ZONE,
    ),
    ("Reservation not found", Code.NOT_FOUND, "reservation-missing", DROP, RefusalScope.PAIR),
    ("no reservation for request queue v6e", Code.INVALID_ARGUMENT, "reservation-queue", STOP, RefusalScope.PROJECT),
    # Texts of public issues: one cause each, with a remedy of its own.
    (
        "Constraint constraints/compute.vmExternalIpAccess violated for project 123456789. Add instance projects/my-project/zones/us-central1-f/instances/x to the constraint to use external IP with it.",
        Code.FAILED_PRECONDITION,
        "external-ip-forbidden",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "Required 'compute.subnetworks.use' permission for 'projects/host-prj/regions/asia-east1/subnetworks/host-subnet-1'",
        Code.PERMISSION_DENIED,
        "shared-network",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "The user does not have access to service account 'vm@p.iam.gserviceaccount.com'.  User: 'me@example.com'.  Ask a project owner to grant you the iam.serviceAccountUser role on the service account.",
        Code.PERMISSION_DENIED,
        "act-as",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "This API method requires billing to be enabled. Please enable billing on project #7 by visiting https://console.developers.google.com/billing/enable?project=7 then retry.",
        Code.PERMISSION_DENIED,
        "billing-off",
        STOP,
        RefusalScope.PROJECT,
    ),
    ("Request had insufficient authentication scopes.", Code.PERMISSION_DENIED, "scopes", STOP, RefusalScope.PROJECT),
    (
        "Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: 1A2B3C4D",
        Code.PERMISSION_DENIED,
        "perimeter",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "Permission denied: Consumer 'project:p' has been suspended.",
        Code.PERMISSION_DENIED,
        "project-suspended",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "Caller does not have required permission to use project p. Grant the caller the roles/serviceusage.serviceUsageConsumer role, or a custom role with the serviceusage.services.use permission",
        Code.PERMISSION_DENIED,
        "quota-project",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "Invalid value for field 'resource.networkInterfaces[0].network': 'projects/p/global/networks/default'. The referenced network resource cannot be found.",
        Code.INVALID_ARGUMENT,
        "network-missing",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "IP_SPACE_EXHAUSTED: IP space of 'projects/p/regions/us-east5/subnetworks/default-1' is exhausted.",
        Code.UNKNOWN,
        "network-address",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "Cloud TPU received an invalid argument. A target reservation must be specified when the host project has at least one reservation. [EID: 0x1a2b]",
        Code.INVALID_ARGUMENT,
        "reservation-required",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "Quota 'CPUS_ALL_REGIONS' exceeded. Limit: 32.0 globally.",
        Code.PERMISSION_DENIED,
        "quota-global",
        STOP,
        RefusalScope.PROJECT,
    ),
    ("PERMISSION_DENIED", Code.PERMISSION_DENIED, "permission", STOP, RefusalScope.PROJECT),
    ("Required 'tpu.nodes.create' permission for 'projects/p'", Code.UNKNOWN, "permission", STOP, RefusalScope.PROJECT),
    (
        "Cloud TPU API has not been used in project 7 before or it is disabled. Enable it by visiting https://console.developers.google.com/apis/api/tpu.googleapis.com/overview?project=7 then retry.",
        Code.PERMISSION_DENIED,
        "api-off",
        STOP,
        RefusalScope.PROJECT,
    ),
    (
        "Location us-east1-d is not found or access is unauthorized.",
        Code.PERMISSION_DENIED,
        "location-denied",
        DROP,
        RefusalScope.ZONE,
    ),
    (
        "Constraint constraints/gcp.resourceLocations violated",
        Code.FAILED_PRECONDITION,
        "policy",
        DROP,
        RefusalScope.REGION,
    ),
    ("No default subnetwork was found", Code.INVALID_ARGUMENT, "policy", DROP, RefusalScope.REGION),
    (
        "Resource 'projects/p/locations/z/nodes/x' already exists",
        Code.ALREADY_EXISTS,
        "exists",
        LOOK,
        RefusalScope.PAIR,
    ),
    ("Resource 'projects/p/locations/z/nodes/x' was not found", Code.NOT_FOUND, "not-found", LOOK, RefusalScope.PAIR),
    (
        f"{BAD} update is not supported while in state PREEMPTED [EID: 0x3f]",
        Code.INVALID_ARGUMENT,
        "preempted",
        NEXT,
        RefusalScope.PAIR,
    ),
    ('This TPU has terminal state "PREEMPTED"', Code.UNKNOWN, "preempted", NEXT, RefusalScope.PAIR),
    ("Reauthentication failed", Code.UNKNOWN, "credentials", STOP, RefusalScope.PROJECT),
    ("('invalid_grant: Bad Request', ...)", Code.UNKNOWN, "credentials", STOP, RefusalScope.PROJECT),
    (
        "There was a problem refreshing your current auth tokens",
        Code.UNAUTHENTICATED,
        "credentials",
        STOP,
        RefusalScope.PROJECT,
    ),
)


@pytest.mark.parametrize("row", PUBLISHED, ids=lambda row: f"{row[2]}-{row[0][:24]}")
def test_a_published_text_is_its_class_whatever_its_error_id(row: tuple[str, Code, str, Remedy, RefusalScope]) -> None:
    text, code, kind, remedy, scope = row
    refusal = classify(text, code)
    assert (refusal.kind, refusal.remedy, refusal.scope) == (kind, remedy, scope)
    assert refusal.is_known
    assert "EID" not in refusal.message
    assert text.startswith(refusal.message)


def test_every_class_that_has_been_seen_was_seen_in_some_text() -> None:
    guessed = {row.kind for row in VERDICTS if not row.is_recorded or row.pattern is None}
    # The same words as others; words of no interest; words of another service.
    never = {"reservation-full", "unavailable", "wrong-state", "bucket-permission"}
    assert {kind for _, _, kind, _, _ in PUBLISHED} | guessed | never == {row.kind for row in VERDICTS}


def test_a_full_reservation_is_no_stockout_for_those_who_asked_for_one() -> None:
    for model in Provisioning:
        refusal = classify(FULL, Code.RESOURCE_EXHAUSTED, model)
        expected = ("reservation-full", DROP) if model is Provisioning.RESERVED else ("stockout-reserved", NEXT)
        assert (refusal.kind, refusal.remedy) == expected


@pytest.mark.parametrize(
    ("quota", "chips"),
    [("TPUV6EPreemptiblePerProjectPerRegionForTPUAPI", 8), ("TPUV5PPerProjectPerRegionForTPUAPI", 4)],
)
def test_the_limit_of_a_quota_that_counts_cores_is_read_in_chips(quota: str, chips: int) -> None:
    text = f"Quota '{quota}' exhausted. Limit 8 in region us-east5"
    assert classify(text, Code.RESOURCE_EXHAUSTED).limit == chips
