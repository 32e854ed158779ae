"""Google's replies that people met: what tpudeploy does about each, and the remedy that it names."""

from __future__ import annotations

import json
from pathlib import Path
from typing import NamedTuple

import pytest
import yaml
from command_line import Open

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.verdicts import classify_request, error_text, hint_for
from tpudeploy.domain.slices import Remedy

FOLDER = Path(__file__).parent / "google"
NEXT, DROP, STOP, LOOK = Remedy.NEXT_ZONE, Remedy.DROP_ZONE, Remedy.STOP, Remedy.LOOK_AGAIN
TEXTS = {row["id"]: row for row in map(json.loads, (FOLDER / "refusals.jsonl").read_text().splitlines())}

# By refusals.md: what is done about each, and words of the remedy.
ANSWERS: dict[str, tuple[Remedy, str]] = {
    "a01": (STOP, "placement.reservation"),
    "a03": (NEXT, "other zones"),
    "a04": (STOP, "placement.network.external_ip: false"),
    "a05": (STOP, "roles/compute.networkUser"),
    "a08": (NEXT, "the zone is full"),
    "a10": (NEXT, "the zone is full"),
    "a13": (STOP, "tpudeploy render PROFILE request"),
    "a14": (STOP, "tpudeploy render PROFILE request"),
    "a15": (STOP, "roles/tpu.admin"),
    "a16": (STOP, "roles/iam.serviceAccountUser"),
    "a19": (DROP, "placement.network"),
    "a20": (STOP, "placement.network"),
    "a22": (DROP, "Waiting does not help"),
}


def test_every_published_reply_has_its_answer() -> None:
    assert TEXTS.keys() == ANSWERS.keys()


@pytest.mark.parametrize("name", ANSWERS)
def test_a_published_reply_has_the_remedy_of_its_cause(name: str) -> None:
    row, (remedy, words) = TEXTS[name], ANSWERS[name]
    refusal = classify_request(row["text"], row["code"])
    hint = hint_for(refusal.kind, refusal.message)
    assert refusal.remedy is remedy
    assert refusal.is_known
    assert words in hint
    assert ("roles/tpu.admin" in hint) == (words == "roles/tpu.admin")


class Reply(NamedTuple):
    """Another text of the same kind. `hint`: words of the remedy."""

    text: str
    code: Code
    kind: str
    remedy: Remedy
    hint: str


DENIED, INVALID, ABSENT, EXHAUSTED = (
    Code.PERMISSION_DENIED,
    Code.INVALID_ARGUMENT,
    Code.NOT_FOUND,
    Code.RESOURCE_EXHAUSTED,
)
FAILED = Code.FAILED_PRECONDITION
OF_THE_SAME_KIND = (
    Reply(
        "Constraint constraints/compute.requireOsLogin violated for project 7.",
        FAILED,
        "organization-policy",
        STOP,
        "OS Login",
    ),
    Reply(
        "Constraint constraints/compute.restrictVpcPeering violated for project projects/p.",
        FAILED,
        "organization-policy",
        STOP,
        "peering",
    ),
    Reply(
        "Constraint constraints/compute.trustedImageProjects violated for project p. Use of images from project x is "
        "prohibited.",
        FAILED,
        "organization-policy",
        STOP,
        "image's project",
    ),
    Reply(
        "Constraint constraints/compute.requireShieldedVm violated for project projects/p.",
        FAILED,
        "organization-policy",
        STOP,
        "Shielded VM",
    ),
    Reply(
        "Location ZONE:us-east5-a violates constraint constraints/gcp.resourceLocations on the resource projects/p.",
        FAILED,
        "policy",
        DROP,
        "placement.zones",
    ),
    Reply(
        'Operation denied by org policy on resource "x": ["customConstraints/custom.a": "No TPUs."].',
        DENIED,
        "organization-policy",
        STOP,
        "gcloud org-policies describe",
    ),
    Reply(
        "Request is disallowed by organization's constraints/gcp.restrictServiceUsage constraint for 'projects/p' "
        "attempting to use service 'tpu.googleapis.com'.",
        DENIED,
        "organization-policy",
        STOP,
        "service that the text names",
    ),
    Reply(
        "The resource 'projects/p/global/networks/vpc' was not found", ABSENT, "network-missing", STOP, "networks list"
    ),
    Reply(
        "Invalid value for field 'resource.networkInterfaces[0].subnetwork': 'projects/p/regions/us-east5/subnetworks/s'."
        " The referenced subnetwork resource cannot be found.",
        INVALID,
        "policy",
        DROP,
        "placement.network.subnetwork",
    ),
    Reply("The resource 'projects/p/global/images/family/x' was not found", ABSENT, "machine-image", STOP, "--pin"),
    Reply(
        "The resource 'vm@p.iam.gserviceaccount.com' of type 'serviceAccount' was not found.",
        INVALID,
        "service-account-missing",
        STOP,
        "placement.service_account",
    ),
    Reply("Runtime version v2-alpha not found", ABSENT, "runtime", STOP, "tpu.runtime_version"),
    Reply(
        "the accelerator v6e-1 was not found in zone us-central2-b", INVALID, "type-unsupported", DROP, "other zones"
    ),
    Reply(
        "Machine type with name 'ct6e-standard-1t' does not exist in zone 'us-central1-f'.",
        INVALID,
        "type-unsupported",
        DROP,
        "other zones",
    ),
    Reply("Accelerator type v6e-1 is not available in zone us-x1-a.", INVALID, "type-unsupported", DROP, "other zones"),
    Reply(
        "The resource 'projects/p/zones/us-east5-a/acceleratorTypes/ct6e' was not found",
        ABSENT,
        "type-unsupported",
        DROP,
        "other zones",
    ),
    Reply("The resource 'projects/p/zones/us-east9-z' was not found", ABSENT, "zone-unsupported", DROP, "zones"),
    Reply(
        "Compute Engine API has not been used in project 7 before or it is disabled. Enable it by visiting "
        "https://console.developers.google.com/apis/api/compute.googleapis.com/overview?project=7 then retry.",
        DENIED,
        "api-off",
        STOP,
        "services enable compute.googleapis.com",
    ),
    Reply("API [tpu.googleapis.com] not enabled on project [7].", DENIED, "api-off", STOP, "enable tpu.googleapis.com"),
    Reply(
        "Quota exceeded for quota metric 'TPU v6e' and limit 'TPUV6EPerProjectPerZoneForTPUAPI' of service "
        "'tpu.googleapis.com' for consumer 'project_number:7'.",
        EXHAUSTED,
        "quota",
        NEXT,
        "quota",
    ),
    Reply(
        "Quota exceeded for quota metric 'Read requests' and limit 'Read requests per minute' of service "
        "'tpu.googleapis.com' for consumer 'project_number:7'.",
        EXHAUSTED,
        "rate-limit",
        LOOK,
        "minute",
    ),
    Reply("Quota CPUS exceeded.  Limit: 24.0 in region us-east5.", DENIED, "quota", NEXT, "quota"),
    Reply("Quota 'CPUS_ALL_REGIONS' exceeded.  Limit: 32.0 globally.", DENIED, "quota-global", STOP, "every zone"),
    Reply(
        "Permission 'cloudkms.cryptoKeyVersions.useToEncrypt' denied on resource 'projects/p/locations/l/keyRings/r/"
        "cryptoKeys/k' (or it may not exist).",
        DENIED,
        "key-permission",
        STOP,
        "roles/cloudkms.cryptoKeyEncrypterDecrypter",
    ),
    Reply("Permission denied: Consumer 'project:p' has been suspended.", DENIED, "project-suspended", STOP, "project"),
    Reply("Permission denied on resource project typo.", DENIED, "project-missing", STOP, "placement.project"),
    Reply(
        "The billing account for the owning project is disabled in state absent", DENIED, "billing-off", STOP, "link"
    ),
    Reply("Billing is disabled for project 7.", DENIED, "billing-off", STOP, "gcloud billing projects link"),
    Reply("Request had insufficient authentication scopes.", DENIED, "scopes", STOP, "cloud-platform"),
    Reply(
        "Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: 1A2B",
        DENIED,
        "perimeter",
        STOP,
        "perimeter",
    ),
    Reply(
        "Required 'compute.subnetworks.useExternalIp' permission for 'projects/h/regions/r/subnetworks/s'",
        DENIED,
        "shared-network",
        STOP,
        "roles/compute.networkUser",
    ),
    Reply(
        "Required 'compute.instances.create' permission for 'projects/p/zones/z/instances/x'",
        DENIED,
        "permission",
        STOP,
        "roles/compute.instanceAdmin.v1",
    ),
    Reply(
        "Required 'compute.images.useReadOnly' permission for 'projects/p/global/images/x'",
        DENIED,
        "permission",
        STOP,
        "roles/compute.imageUser",
    ),
    Reply(
        "Permission 'iam.serviceAccounts.actAs' denied on service account x",
        DENIED,
        "act-as",
        STOP,
        "serviceAccountUser",
    ),
    Reply("The caller does not have permission", DENIED, "permission", STOP, "tpudeploy doctor"),
    Reply(
        "Specified reservation 'r' does not have available resources for the request.",
        INVALID,
        "reservation-used",
        DROP,
        "placement.reservation",
    ),
    Reply(
        "The resource 'projects/p/zones/us-east5-a/reservations/r' was not found",
        ABSENT,
        "reservation-missing",
        DROP,
        "placement.reservation",
    ),
    Reply(
        "ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/p/zones/z' does not have enough resources available to fulfill "
        "the request. Try a different zone, or try again later.",
        Code.UNKNOWN,
        "stockout",
        NEXT,
        "full",
    ),
    Reply("ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS", Code.UNKNOWN, "stockout", NEXT, "full"),
    Reply(
        "The zone 'projects/p/zones/z' does not have enough resources available to fulfill the request. '(resource "
        "type:compute)'.",
        Code.UNAVAILABLE,
        "stockout",
        NEXT,
        "full",
    ),
    Reply(
        "INTERNAL_ERROR: Internal error. Please try again or contact Google Support. (Code: '5X')",
        Code.UNKNOWN,
        "internal",
        NEXT,
        "zones",
    ),
)


# By what people met: skypilot issues 3840, 4579 and 962; tensorflow/tpu issue 124; marin issue 87, PRs 1612 and 6198;
# keras-team/kinetic issue 305; hashicorp/terraform-provider-google issue 24153; kubernetes/k8s.io issue 9834;
# vagrant-google issue 163; sig-storage-local-static-provisioner PR 526; tables of zones that were asked for a v6e.
PUBLISHED = (
    Reply(
        'Cloud TPU received a bad request. The requested accelerator configuration for accelerator type, "v6e-1", could '
        'not be found in the zonal accelerator configurations for "asia-east1-a".; the accelerator v6e-1 was not found in '
        "zone asia-east1-a [EID: 0x362c45de1b38c529]",
        INVALID,
        "type-unsupported",
        DROP,
        "other zones",
    ),
    Reply(
        'Cloud TPU received a bad request. The requested zone "asia-northeast1-a" is not supported. [EID: 0x1994f2446]',
        INVALID,
        "zone-unsupported",
        DROP,
        "placement.zones",
    ),
    Reply(
        'FLEX_START provisioning model is not supported for accelerator type "v6e-1" in location "asia-east1-c"',
        INVALID,
        "model-unsupported",
        DROP,
        "placement.provisioning",
    ),
    Reply(
        "Permission denied on 'locations/us-central2-b' (or it may not exist).", DENIED, "location-denied", DROP, "zone"
    ),
    Reply(
        "Cloud TPU received a bad request. update is not supported while in state PREEMPTED [EID: 0x73013519f5b7feb2]",
        INVALID,
        "preempted",
        NEXT,
        "preempted",
    ),
    Reply(
        "Insufficient reserved capacity. Contact customer support to increase your reservation. [EID: 0x7adf6d58c0]",
        FAILED,
        "stockout-reserved",
        NEXT,
        "without a reservation",
    ),
    Reply(
        "Quota 'TPUV5sLitepodServingPerProjectPerZoneForTPUAPI' exhausted. Limit 4 in zone us-central1-a",
        EXHAUSTED,
        "quota",
        NEXT,
        "quota",
    ),
    Reply(
        "Quota 'TPUV5sPreemptibleLitepodPerProjectPerRegionForTPUAPI' exhausted.\n      Limit 10000 in region us-west4",
        EXHAUSTED,
        "quota",
        NEXT,
        "quota",
    ),
    Reply(
        "cannot create a TPU Node on a project linked to a free-trial billing account",
        DENIED,
        "billing-off",
        STOP,
        "upgrade the billing account",
    ),
    Reply(
        "Cloud TPU received a bad request. the accelerator v4-128 was not found in zone us-central2-b [EID: 0x945ef8]",
        INVALID,
        "type-unsupported",
        DROP,
        "other zones",
    ),
    Reply(
        "Cloud TPU received an invalid argument. A target reservation must be specified when the host project has at "
        "least one",
        INVALID,
        "reservation-required",
        STOP,
        "placement.reservation",
    ),
    Reply(
        "Required 'compute.diskTypes.get' permission for 'projects/p/zones/us-central1-f/diskTypes/pd-standard'.",
        DENIED,
        "permission",
        STOP,
        "roles/compute.viewer",
    ),
    Reply(
        "Required 'compute.subnetworks.use' permission for 'project/p/regions/us-east1/subnetworks/default'",
        DENIED,
        "shared-network",
        STOP,
        "roles/compute.networkUser",
    ),
    Reply("Quota 'GPUS_ALL_REGIONS' exceeded. Limit: 0.0 globally.", EXHAUSTED, "quota-global", STOP, "every zone"),
    Reply("Quota 'CPUS' exceeded. Limit: 24.0 in region us-central1.", DENIED, "quota", NEXT, "quota"),
    Reply(
        'Invalid machine type "e2-standard-4" in zone "us-central2-b": GCE_NOT_FOUND',
        INVALID,
        "type-unsupported",
        DROP,
        "other zones",
    ),
    Reply(
        "The resource 'projects/p/zones/us-west1-b/acceleratorTypes/nvidia-tesla-p4' was not found",
        ABSENT,
        "type-unsupported",
        DROP,
        "other zones",
    ),
    Reply(
        "A n1-standard-4 VM instance with 1 nvidia-tesla-t4 accelerator(s) is\n      currently unavailable in the "
        "us-central1-b zone. Consider trying your request\n      in the us-central1-a, us-central1-f zone(s), which "
        "currently has capacity to\n      accommodate your request.",
        Code.UNKNOWN,
        "stockout",
        NEXT,
        "full",
    ),
    Reply(
        "The zone 'projects/p/zones/us-central1-a' does not have enough resources available to fulfill the request.  "
        "'NULL:0/NULL:0/NULL:0 (state:STOCKOUT, sub-state:STOCKOUT, resource type:compute)'.",
        Code.UNAVAILABLE,
        "stockout",
        NEXT,
        "full",
    ),
    Reply("Quota 'TPUS_PER_TPU_FAMILY' exceeded.  Limit: 0.0 in region us-east5.", DENIED, "quota-none", DROP, "quota"),
    Reply("Maximum number of CreateNode requests per minute", EXHAUSTED, "rate-limit", LOOK, "91 creates a minute"),
    Reply(
        "Instance 'x' creation failed: Quota 'IN_USE_ADDRESSES' exceeded.  Limit: 8.0 in region europe-central2.",
        EXHAUSTED,
        "address-quota",
        DROP,
        "placement.network.external_ip",
    ),
    Reply(
        "Insufficient Permission: Request had insufficient authentication scopes.", DENIED, "scopes", STOP, "No role"
    ),
    Reply(
        "Required 'compute.zones.get' permission for 'projects/p/zones/us-central1-a', forbidden",
        DENIED,
        "permission",
        STOP,
        "roles/compute.viewer",
    ),
    Reply(
        "Error creating instance: googleapi: Error 503: Internal error. Please try again or contact Google Support. "
        "(Code: '-54')",
        Code.UNAVAILABLE,
        "internal",
        NEXT,
        "zones",
    ),
    Reply(
        "Insufficient project quota to satisfy request: resource \"CPUS_ALL_REGIONS\": request requires '16.0' and is "
        "short '4.0'. project has a quota of '12.0' with '12.0' available.",
        DENIED,
        "quota-global",
        STOP,
        "every zone",
    ),
    Reply("Project 'projects/p' not found or deleted.", DENIED, "project-missing", STOP, "placement.project"),
    Reply("Project number 123 is marked for deletion", FAILED, "project-missing", STOP, "placement.project"),
    Reply(
        "The Cloud TPU service account service-123@cloud-tpu.iam.gserviceaccount.com does not have permission on network",
        DENIED,
        "service-agent",
        STOP,
        "roles/tpu.serviceAgent",
    ),
    Reply(
        "TPU v6e is available only to allowlisted projects.", DENIED, "not-allowlisted", STOP, "your contact at Google"
    ),
    Reply(
        'There is no more capacity in the zone "europe-west4-a"; you can try in another zone where Cloud TPU Nodes are '
        "offered (see https://cloud.google.com/tpu/docs/regions) [EID: 0xba393c906974e61]",
        EXHAUSTED,
        "stockout",
        NEXT,
        "full",
    ),
    Reply(
        "<!DOCTYPE html>\n<html lang=en>\n  <title>Error 502 (Server Error)!!1</title>\n  <p>The server encountered a "
        "temporary error and could not complete your request.<p>Please try again in 30 seconds.",
        Code.UNAVAILABLE,
        "unavailable",
        LOOK,
        "temporary",
    ),
)


@pytest.mark.parametrize("reply", [*OF_THE_SAME_KIND, *PUBLISHED], ids=lambda reply: f"{reply.kind}-{reply.text[:30]}")
def test_other_replies_of_the_same_kind_have_the_remedy_of_their_cause(reply: Reply) -> None:
    refusal = classify_request(reply.text, reply.code)
    hint = hint_for(refusal.kind, refusal.message)
    assert (refusal.kind, refusal.remedy) == (reply.kind, reply.remedy)
    assert reply.hint in hint
    assert "roles/tpu.admin" not in hint


def test_a_refusal_that_several_zones_give_is_said_once_with_the_zones(cli: Open) -> None:
    at = cli(trouble=[{"fault": "quota-zero", "layer": "L1"}])
    profile = (FOLDER / "place.yaml").read_text()
    stopped = at.run("apply", "-auto-approve", at.write(profile))
    assert stopped.code == 1, stopped.all
    progress, error = stopped.err.split("Error: ")
    assert progress.count("has been exceeded") == 1
    assert ", as in us-east5-a, spot" in progress
    assert error.count("has been exceeded") == 1
    for zone in ("us-east5-a", "europe-west4-a"):
        assert error.count(zone) == 1
    assert "in region REGION" in error


# Of three zones in two regions: how many are asked, and the remedy.
STOPS = {"a04": (1, "Set placement.network.external_ip: false"), "a19": (2, "Set placement.network.network")}


def test_a_resource_that_no_row_knows_is_not_waited_for() -> None:
    refusal = classify_request("Requested entity was not found.", Code.NOT_FOUND)
    assert (refusal.remedy, refusal.is_known) == (NEXT, False)
    refusal = classify_request("The resource 'projects/p/zones/z/widgets/w' was not found", Code.NOT_FOUND)
    assert not refusal.is_known  # so it is tried a few times, and then waits for a person


def test_the_localized_message_of_an_error_is_read_with_its_zones() -> None:
    text = TEXTS["a10"]["text"]
    error = {
        "code": "ZONE_RESOURCE_POOL_EXHAUSTED_WITH_DETAILS",
        "errorDetails": [{"localizedMessage": {"locale": "en-US", "message": text}}],
    }
    status = {
        "code": 8,
        "message": "x",
        "details": [{"@type": "type.googleapis.com/google.rpc.LocalizedMessage", "message": text}],
    }
    assert error_text(error) == text
    assert error_text(status) == f"x {text}"
    assert classify_request(text, Code.UNKNOWN).zones_available == ("us-central1-a",)


@pytest.mark.parametrize(
    ("kind", "key", "text", "answer"),
    [
        (
            "BadRequest",
            "fieldViolations",
            "The resource 'projects/p/regions/us-east5/subnetworks/default' was not found",
            "policy",
        ),
        (
            "PreconditionFailure",
            "violations",
            "Constraint constraints/compute.vmExternalIpAccess violated for project 7.",
            "external-ip-forbidden",
        ),
        (
            "QuotaFailure",
            "violations",
            "Quota limit 'TPUV6EPerProjectPerZoneForTPUAPI' has been exceeded. Limit: 0 in zone us-east5-a.",
            "quota-none",
        ),
    ],
)
def test_what_the_details_of_an_error_violate_names_its_cause(kind: str, key: str, text: str, answer: str) -> None:
    violation = {"field": "queued_resource.tpu", "description": text}
    detail = {"@type": f"type.googleapis.com/google.rpc.{kind}", key: [violation, {}]}
    error = {"code": 400, "message": "Request contains an invalid argument.", "details": [detail]}
    refusal = classify_request(error_text(error), Code.INVALID_ARGUMENT)
    assert refusal.kind == answer
    assert text in refusal.message


@pytest.mark.parametrize("backend", ["queued-resource", "gce-instance"])
@pytest.mark.parametrize("layer", ["L1", "L2", "L3"])
@pytest.mark.parametrize("case", ["a04", "a19"])
def test_a_profile_that_meets_it_everywhere_stops_soon_and_names_the_remedy(
    cli: Open, backend: str, layer: str, case: str
) -> None:
    zones, words = STOPS[case]
    scenario = yaml.safe_load((FOLDER / f"{case}-scenario.yaml").read_text())
    at = cli(trouble=[{**trouble, "layer": layer} for trouble in scenario["trouble"]])
    profile = (FOLDER / "place.yaml").read_text().replace("provisioning:", f"backend: {backend}, provisioning:")
    stopped = at.run("apply", "-auto-approve", at.write(profile))
    assert stopped.code == 1, stopped.all
    assert words in stopped.err
    assert "more quota" not in stopped.err
    if (
        layer == "L1"
    ):  # what an operation or a queued resource says comes later, when other requests may be on their way
        assert stopped.err.count("Requesting") == zones
