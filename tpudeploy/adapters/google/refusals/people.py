"""Errors that no other place would avoid, until a person acts."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.access import PERMISSION
from tpudeploy.adapters.google.refusals.row import Layer, RefusalRow

ROWS: tuple[RefusalRow, ...] = (
    PERMISSION,
    RefusalRow(
        kind="machine-refused",
        what="Compute Engine creates no instances of this machine type for users",
        pattern=r"user agent is not allowed to use the machine type",
        code=Code.PERMISSION_DENIED,
        layers=(Layer.REPLY,),
        hint="Set placement.backend: queued-resource.",
        examples=("This user agent is not allowed to use the machine type [ct5lp-hightpu-1t]",),
    ),
    RefusalRow(
        kind="machine-mismatch",
        what="The machine type does not take a part of the request",
        pattern=(
            r"disk type cannot be used by|not supported for the machine type"
            r"|machine type with placement policy is not supported"
        ),
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        hint="This is a bug in tpudeploy: please report it, with the output of `tpudeploy render PROFILE request`.",
        examples=("pd-ssd disk type cannot be used by ct6e-standard-1t.",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="machine-image",
        what="The machine's boot image no longer exists",
        pattern=(
            r"referenced image resource cannot be found|global/images/(?:family/)?[\w-]+'? was not found"
            r"|could not fetch (?:resource|image)\b.*image"
        ),
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        hint="Google deletes old images. Pin the newest one of the family: tpudeploy plan --pin PROFILE",
        examples=("The referenced image resource cannot be found.",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="runtime",
        what="The runtime version is unknown",
        pattern=r"runtime.?version|software version .{0,60}(?:not (?:valid|found|supported)|does not exist)",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        hint="Leave tpu.runtime_version out: each generation has a suitable default.",
        examples=('Cloud TPU received a bad request. The runtime version "v2-alpha" is not valid. [EID: 0x1a2b]',),
        is_recorded=False,
    ),
    RefusalRow(
        kind="network-missing",
        what="The network does not exist, or is not visible to the project",
        pattern=(
            r"referenced network resource cannot be found|/networks/[^/'\"\s]+['\"]? (?:was not found|is not found"
            r"|does not exist)|network '?[\w./-]+'? (?:was not found|not found|does not exist)"
        ),
        code=Code.NOT_FOUND,
        layers=(Layer.REPLY, Layer.CREATE, Layer.FAILED),
        hint="Correct placement.network.network: `gcloud compute networks list` prints the project's networks; "
        "there may be none called default. One of a host project is written in full: "
        "projects/HOST/global/networks/N.",
        # Compute Engine's words, HTTP 400, and those of a 404
        examples=(
            (
                "Invalid value for field 'resource.networkInterfaces[0].network': 'projects/p/global/networks/default'."
                " The referenced network resource cannot be found."
            ),
            "The resource 'projects/p/global/networks/default' was not found",
        ),
    ),
    RefusalRow(
        kind="network-address",
        what="The network or the subnetwork has no address left",
        pattern=r"IP_SPACE_EXHAUSTED|ip space of .{0,120}exhausted|no (?:free|available) (?:internal )?ip address",
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.CREATE, Layer.FAILED),
        hint="Expand the subnetwork's range (gcloud compute networks subnets expand-ip-range), or set "
        "placement.network.subnetwork to another one.",
        # cloud.google.com/compute/docs/troubleshooting/troubleshooting-vm-creation
        examples=("IP_SPACE_EXHAUSTED: IP space of 'projects/p/regions/us-east5/subnetworks/default-1' is exhausted.",),
    ),
    RefusalRow(
        kind="invalid",
        what="Google rejects the request as invalid, with an unknown message",
        code=Code.INVALID_ARGUMENT,
        by_code=True,
        hint="Google's own text, which is always shown, names the field. `tpudeploy render PROFILE request` shows "
        "what was sent.",
    ),
)
