"""Errors for what Google does not offer in a place, or not to this project: other places may offer it."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import HOURS, Layer, RefusalRow
from tpudeploy.domain.slices import RefusalScope, Remedy

ROWS: tuple[RefusalRow, ...] = (
    RefusalRow(
        kind="zone-unsupported",
        what="The zone has no TPUs",
        pattern=(
            r"""the requested zone "[^"]*" is not supported|field 'zone': '[^']*'\. unknown zone"""
            r"|projects/[^/'\s]+/(?:zones|locations)/[\w-]+'? was not found|unknown zone\b"
        ),
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.ZONE,
        holds=24 * HOURS,
        hint="Leave the zone out of placement.zones.",
        examples=(
            'Cloud TPU received a bad request. The requested zone "asia-northeast1-a" is not supported. [EID: 0x1a2b]',
        ),
    ),
    RefusalRow(
        kind="type-unsupported",
        what="The zone does not have this type",
        pattern=(
            r"could not be found in the zonal accelerator configurations|invalid AcceleratorType"
            r"|field 'resource\.machineType'|must provide existing machine type"
            r"|invalid machine type \"?[\w-]+\"? in zone"
            r"|(?:machineTypes|acceleratorTypes)/[\w-]+'? was not found"
            r"|(?:accelerator|machine|TPU)(?: type)? (?:with name )?['\"\[]?[\w-]+['\"\]]? "
            r"(?:was not found|not found|is not (?:available|supported|offered|found)|does not exist) in\b"
        ),
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.ZONE,
        holds=24 * HOURS,
        hint="Use another tpu.type, or other zones.",
        examples=(
            (
                "Cloud TPU received a bad request. The requested accelerator configuration for accelerator type, "
                '"v6e-1", could not be found in the zonal accelerator configurations for "asia-east1-a".; the '
                "accelerator v6e-1 was not found in zone asia-east1-a [EID: 0x1a2b]"
            ),
            (
                "Invalid value for field 'resource.machineType': 'zones/us-east1-d/machineTypes/ct6e-standard-1t'. The "
                "request must provide existing machine type"
            ),
            "the accelerator v6e-1 was not found in zone us-central2-b",
            "Machine type with name 'ct6e-standard-1t' does not exist in zone 'us-central1-f'.",
            'CloudTpu received an invalid AcceleratorType, "v3-8" for zone "us-central1-c". Valid values are "v2-8, ".',
        ),
    ),
    RefusalRow(
        kind="model-mismatch",
        what="The request contradicts itself",
        pattern=r"provisioning model is incompatible with",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        hint="This is a bug in tpudeploy: please report it, with the output of `tpudeploy render PROFILE request`.",
        examples=("STANDARD provisioning model is incompatible with spot requests",),
    ),
    RefusalRow(
        kind="model-unsupported",
        what="The zone has the type, but not under this provisioning model",
        pattern=r"provisioning model (\w+ )?is not supported for (accelerator|machine) type",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.CREATE,),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.PAIR,
        holds=24 * HOURS,
        hint="Use another model in placement.provisioning, or other zones.",
        examples=(
            'FLEX_START provisioning model is not supported for accelerator type "v6e-1" in location "asia-east1-c"',
        ),
    ),
    RefusalRow(
        kind="no-queueing",
        what="The type cannot be queued for in the zone",
        pattern=r"queueing is not supported",
        layers=(Layer.REPLY, Layer.CREATE),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.ZONE,
        holds=24 * HOURS,
        hint="Use other zones, or another tpu.type.",
        examples=("Queueing is not supported for accelerator type v5litepod-1",),
    ),
    RefusalRow(
        kind="too-big",
        what="The type has more chips than one request may have there",
        pattern=r"request size can be at most",
        layers=(Layer.REPLY, Layer.CREATE),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.ZONE,
        holds=24 * HOURS,
        hint="Use a smaller tpu.type, or other zones.",
        examples=("Request size can be at most 16",),
    ),
    RefusalRow(
        kind="queue-closed",
        what="Google has closed this queue to the project",
        pattern=r"permission to submit requests (into this queue )?for accelerator type",
        code=Code.PERMISSION_DENIED,
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.ZONE,
        holds=24 * HOURS,
        hint="This is not about IAM, and retrying does not help. Use other zones, or contact Google's support.",
        examples=(
            (
                "User does not have permission to submit requests into this queue for accelerator type v6e-8 in "
                "location us-east5-b"
            ),
            (
                'User does not have permission to submit requests for accelerator type "v5litepod-4" in location '
                "us-central1-a"
            ),
        ),
    ),
    RefusalRow(
        kind="reservation-required",
        what="The project has a reservation there, so requests must name one",
        pattern=r"target reservation must be specified|reservation (?:name )?(?:must be|is required)",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY, Layer.CREATE, Layer.FAILED),
        hint="Set placement.reservation to projects/P/locations/ZONE/reservations/NAME, and placement.provisioning to "
        "[reserved].",
        # hashicorp/terraform-provider-google issue 24153
        examples=(
            (
                "Cloud TPU received an invalid argument. A target reservation must be specified when the host project "
                "has at least one reservation. [EID: 0x1a2b]"
            ),
        ),
    ),
    RefusalRow(
        kind="reservation-queue",
        what="The reservation has no queue",
        pattern=r"reservation for request queue",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.REPLY,),
        hint="Check placement.reservation: its name, its zone and its start.",
        examples=("Could not find a reservation for request queue v6e",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="reservation-missing",
        what="The zone serves reservations only, or not this one",
        pattern=(
            r"reservation not found|/reservations/[^/'\"\s]+['\"]? (?:was not found|does not exist|not found)"
            r"|reservations? [\['\"]?[\w./-]*[\]'\"]? ?(?:was not found|do(?:es)? not exist|is not shared)"
        ),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.PAIR,
        holds=24 * HOURS,
        hint="Use another model in placement.provisioning, or other zones. With a reservation: check "
        "placement.reservation.",
        examples=(
            "Reservation not found",
            "The resource 'projects/p/zones/us-east5-a/reservations/mine' was not found",
            "Specified reservation [mine] does not exist.",
        ),
    ),
    RefusalRow(
        kind="location-denied",
        what="The zone does not exist for this project",
        pattern=(
            r"location \S+ is not found or access is unauthorized|permission denied on '?locations/[\w-]+"
            r"|LOCATION_POLICY_VIOLATED"
        ),
        code=Code.PERMISSION_DENIED,
        layers=(Layer.REPLY,),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.ZONE,
        holds=24 * HOURS,
        hint="Leave the zone out of placement.zones.",
        # The second is Google's 403 with the reason LOCATION_POLICY_VIOLATED, for a zone that was not granted.
        examples=(
            "Location us-east1-d is not found or access is unauthorized.",
            "Permission denied on 'locations/us-central2-b' (or it may not exist).",
        ),
    ),
)
