"""Refusals by an organization: its policies and its perimeters. No role of the caller lifts them."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import HOURS, Layer, RefusalRow
from tpudeploy.domain.slices import RefusalScope, Remedy

_ASK = "Or ask an administrator of the organization for an exception for this project."

ROWS: tuple[RefusalRow, ...] = (
    RefusalRow(
        kind="external-ip-forbidden",
        what="An organization policy forbids external addresses",
        pattern=r"constraints/compute\.(?:managed\.)?vmExternalIpAccess",
        code=Code.FAILED_PRECONDITION,
        layers=(Layer.REPLY, Layer.CREATE, Layer.FAILED),
        hint="Set placement.network.external_ip: false. The subnetwork then needs Private Google Access, and Cloud NAT "
        f"for the hub and other registries. {_ASK}",
        # googlecodelabs/feedback issue 695; gardener/gardener-extension-provider-gcp issue 415
        examples=(
            (
                "Constraint constraints/compute.vmExternalIpAccess violated for project 7. Add instance "
                "projects/p/zones/us-east5-a/instances/x to the constraint to use external IP with it."
            ),
        ),
    ),
    RefusalRow(
        kind="policy",
        what="An organization policy, or a missing subnetwork, closes the region",
        pattern=(
            r"constraints/gcp\.resourceLocations|no default subnetwork was found|does not have a subnetwork"
            r"|/subnetworks/[^/'\"\s]+['\"]? (?:was not found|is not found|does not exist)"
            r"|referenced subnetwork resource cannot be found|subnetwork \S+ (?:was not found|not found|does not exist)"
        ),
        code=Code.FAILED_PRECONDITION,
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.REGION,
        holds=24 * HOURS,
        hint="Set placement.network to a network with a subnetwork in that region, or limit placement.zones to "
        "regions the policy allows.",
        hints={
            r"resourceLocations": f"Limit placement.zones to locations that the policy allows. {_ASK}",
            r"subnetwork": (
                "Set placement.network.network and placement.network.subnetwork to one that exists in that region. A "
                "subnetwork of a host project is written in full: projects/HOST/regions/REGION/subnetworks/NAME."
            ),
        },
        examples=(
            "No default subnetwork was found",
            "Constraint constraints/gcp.resourceLocations violated for projects/p attempting to create a resource",
            "The resource 'projects/p/regions/us-east5/subnetworks/default' was not found",
        ),
    ),
    RefusalRow(
        kind="perimeter",
        what="A VPC Service Controls perimeter forbids the call",
        pattern=(
            r"vpcServiceControlsUniqueIdentifier|VPC Service Controls|VPC_SERVICE_CONTROLS|SECURITY_POLICY_VIOLATED"
            r"|^request is prohibited by organization's policy"
        ),
        code=Code.PERMISSION_DENIED,
        layers=(Layer.REPLY, Layer.CREATE, Layer.FAILED),
        hint="No role helps: call from inside the perimeter, or have an administrator allow this caller in an ingress "
        "rule. The identifier in the text finds the denial in the audit log and in the violation analyzer.",
        # cloud.google.com/vpc-service-controls/docs/troubleshooting
        examples=(
            "Request is prohibited by organization's policy. vpcServiceControlsUniqueIdentifier: 1A2B3C4D5E6F7G8H",
        ),
    ),
    RefusalRow(
        kind="organization-policy",
        what="An organization policy forbids a part of the request",
        pattern=(
            r"constraints/[a-z]+\.[\w.]+|denied by (?:custom )?org(?:ani[sz]ation)? policy|customConstraints/custom\."
            r"|organi[sz]ation(?:'s)? policy|org policy"
        ),
        code=Code.FAILED_PRECONDITION,
        layers=(Layer.REPLY, Layer.CREATE, Layer.FAILED),
        hint="No role, quota or zone helps. The text names the constraint; `gcloud org-policies describe "
        "CONSTRAINT --project=PROJECT --effective` prints its allowed values. Change the profile to fit it, "
        "or request an exception for this project from an administrator of the organization.",
        hints={
            r"compute\.requireOsLogin": (
                "The project requires OS Login: run `gcloud compute project-info add-metadata "
                "--metadata=enable-oslogin=TRUE`, and remove enable-oslogin=FALSE wherever it is set. " + _ASK
            ),
            r"compute\.restrictSharedVpcSubnetworks": (
                "Set placement.network.subnetwork to one that the constraint allows. " + _ASK
            ),
            r"compute\.restrictSharedVpcHostProjects": (
                "Set placement.network to one of a host project that the constraint allows. " + _ASK
            ),
            r"compute\.restrictVpcPeering": (
                "Cloud TPU peers its network with placement.network.network, which the constraint forbids. An "
                "administrator of the organization must allow that peering; placement.backend: gce-instance needs none."
            ),
            r"compute\.trustedImageProjects": (
                "The machine's image is from a project that the constraint does not list. An administrator of the "
                "organization must add the image's project, which the text names."
            ),
            r"compute\.requireShieldedVm": (
                "The machine must be a Shielded VM. tpudeploy requests none for TPUs: an administrator of the "
                "organization must exempt this project."
            ),
            r"restrictNonCmekServices|restrictCmekCryptoKeyProjects": (
                "The policy requires customer-managed keys, which tpudeploy does not set on a TPU's disk. An "
                "administrator of the organization must exempt this project."
            ),
            r"gcp\.restrictServiceUsage": (
                "The policy forbids the service that the text names. An administrator of the organization must allow "
                "it for this project."
            ),
            r"compute\.vmCanIpForward|compute\.skipDefaultNetworkCreation|compute\.disable": (
                "The text names the constraint and the part of the request. `tpudeploy render PROFILE request` prints "
                "the request. " + _ASK
            ),
        },
        # The frame of a custom constraint: cloud.google.com/resource-manager/docs/organization-policy
        examples=(
            "Constraint constraints/compute.requireOsLogin violated for project 7.",
            'Operation denied by org policy on resource "projects/p": ["customConstraints/custom.noTpu": "No TPUs."].',
            (
                "Constraint constraints/compute.trustedImageProjects violated for project p. Use of images from "
                "project cloud-tpu-v2-images is prohibited."
            ),
            "Constraint constraints/compute.requireShieldedVm violated for project projects/p.",
        ),
        is_recorded=False,
    ),
)
