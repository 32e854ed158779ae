"""Nothing is wrong with the request: there was no room for it, or no longer."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import HOURS, MINUTES, Layer, RefusalRow
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.slices import RefusalScope, Remedy

ROWS: tuple[RefusalRow, ...] = (
    RefusalRow(
        kind="reservation-full",
        what="The reservation has no room",
        pattern=r"insufficient reserved capacity",
        code=Code.RESOURCE_EXHAUSTED,
        only=Provisioning.RESERVED,
        layers=(Layer.CREATE, Layer.FAILED),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.PAIR,
        holds=24 * HOURS,
        hint="It's in use, hasn't started, has ended or is for another type. Check placement.reservation.",
        examples=(
            "Insufficient reserved capacity. Contact customer support to increase your reservation. [EID: 0x1a2b]",
        ),
    ),
    RefusalRow(
        kind="reservation-used",
        what="The reservation has no room for this request, or does not match it",
        pattern=(
            r"reservations? .{0,120}(?:does not have (?:available|enough|sufficient) resources"
            r"|is (?:in use|full|expired)|have (?:available|enough) resources|no available resources"
            r"|cannot be (?:consumed|used)"
            r"|does not match|incompatible)|no matching reservation"
        ),
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.CREATE, Layer.FAILED),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.PAIR,
        holds=24 * HOURS,
        hint="It's in use, hasn't started, has ended or is for another type. Check placement.reservation, or use "
        "another model in placement.provisioning.",
        examples=("Specified reservation 'mine' does not have available resources for the request.",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="stockout-reserved",
        what="No capacity, in the words for a reservation that was not requested",
        pattern=r"insufficient reserved capacity",
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.CREATE, Layer.FAILED),
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds=10 * MINUTES,
        hint="The zone is full for requests without a reservation. Allow more zones, or flex-start.",
        examples=(
            "Insufficient reserved capacity. Contact customer support to increase your reservation. [EID: 0x1a2b]",
        ),
    ),
    RefusalRow(
        kind="stockout",
        what="No capacity in the zone",
        pattern=(
            r"no more capacity in the zone|insufficient capacity|RESOURCE_POOL_EXHAUSTED"
            r"|not (?:have )?enough (?:resources|capacity)(?: available)?\b|out of (?:resources|capacity)\b"
            r"|is currently unavailable in the \S+ (?:zone|region)"
            r"|no (?:available )?capacity (?:is )?(?:available )?(?:in|for)\b|capacity is not available"
            r"|\(state:STOCKOUT\)"
        ),
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.CREATE, Layer.FAILED),
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds=3 * MINUTES,
        hint="The request is valid, but the zone is full. Allow more zones, or flex-start.",
        examples=(
            (
                'There is no more capacity in the zone "us-central1-b"; you can try in another zone where Cloud TPU '
                "Nodes are offered (see https://cloud.google.com/tpu/docs/regions) [EID: 0x1a2b]"
            ),
            "Insufficient capacity",
            # Compute Engine's; kubernetes/k8s.io issue 9834 has its details
            (
                "ZONE_RESOURCE_POOL_EXHAUSTED: The zone 'projects/p/zones/us-east5-a' does not have enough resources "
                "available to fulfill the request."
            ),
            # its localizedMessage (GoogleCloudPlatform/ai-on-gke issue 849)
            (
                "A ct6e-standard-4t VM instance is currently unavailable in the us-central1-b zone. Consider trying "
                "your request in the us-central1-a zone(s), which currently has capacity to accommodate your request."
            ),
        ),
    ),
    RefusalRow(
        kind="preempted",
        what="The slice was preempted",
        pattern=r"\bpreempted\b",
        code=Code.INVALID_ARGUMENT,
        layers=(Layer.NODE,),
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds=0.0,
        hint="Spot slices can be preempted at any time. Flex-start and on-demand slices are not.",
        examples=(
            "Cloud TPU received a bad request. update is not supported while in state PREEMPTED [EID: 0x1a2b]",
            'This TPU has terminal state "PREEMPTED"',
        ),
    ),
    RefusalRow(
        kind="lapsed",
        what="The request waited for its maximum time",
        pattern=r"valid.?until|validity interval|request [^.]*expired|could not be fulfilled in time",
        code=Code.DEADLINE_EXCEEDED,
        by_code=True,
        layers=(Layer.FAILED,),
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds=1 * MINUTES,
        hint="A longer placement.valid_until keeps the place in the queue for longer.",
        examples=("The queued resource request expired: valid until time has passed",),
        is_recorded=False,
    ),
)
