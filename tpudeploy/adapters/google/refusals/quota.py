"""Errors for what a project may have or request, and already has."""

from __future__ import annotations

from tpudeploy.adapters.google.codes import Code
from tpudeploy.adapters.google.refusals.row import HOURS, MINUTES, Layer, RefusalRow
from tpudeploy.domain.slices import RefusalScope, Remedy

ROWS: tuple[RefusalRow, ...] = (
    RefusalRow(
        kind="rate-limit",
        what="Too many requests per minute",
        pattern=(
            r"(requests|queries)['\w ]* per (minute|second|day|100 seconds)|\brate limit exceeded\b|rateLimitExceeded"
            r"|RATE_LIMIT_EXCEEDED|\btoo many (?:concurrent )?requests\b|\brate exceeded\b"
        ),
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.REPLY,),
        remedy=Remedy.LOOK_AGAIN,
        scope=RefusalScope.PROJECT,
        holds=1 * MINUTES,
        hint="The TPU API accepts 91 creates a minute from a project; Compute Engine has limits too. Wait a minute.",
        examples=(
            "Maximum number of CreateNode requests per minute",
            "Quota exceeded for quota metric 'Create' and limit 'Maximum number of CreateNode requests per minute'",
            (
                "Quota exceeded for quota metric 'Queries' and limit 'Queries per minute' of service "
                "'compute.googleapis.com' for consumer 'project_number:7'."
            ),
        ),
    ),
    RefusalRow(
        kind="address-quota",
        what="No external address is left in the region",
        pattern=r"IN_USE_ADDRESSES",
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.FAILED,),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.REGION_RESOURCES,
        holds=24 * HOURS,
        hint="Each VM needs one. Set placement.network.external_ip: false (the subnetwork then needs Private Google "
        "Access), or request more quota.",
        examples=(
            "IN_USE_ADDRESSES limit (8)",
            "Quota 'IN_USE_ADDRESSES' exceeded. Limit: 8.0 in region us-east5.",
        ),
    ),
    RefusalRow(
        kind="disk-quota",
        what="The quota of disks in the region is used up",
        pattern=r"quota '?(HDB|SSD|DISKS|HYPERDISK)_[A-Z_]*'? exceeded",
        code=Code.PERMISSION_DENIED,
        layers=(Layer.REPLY, Layer.CREATE),
        remedy=Remedy.DROP_ZONE,
        scope=RefusalScope.REGION_RESOURCES,
        holds=24 * HOURS,
        hint="An instance needs a hyperdisk of tpu.boot_disk_size. Make it smaller, or ask for more quota.",
        examples=("Quota 'HDB_TOTAL_GB' exceeded. Limit: 500.0 in region us-east5.",),
        is_recorded=False,
    ),
    RefusalRow(
        kind="quota-global",
        what="A quota of the whole project is used up, or is 0",
        pattern=r"quota '?[\w-]+'? exceeded\. limit:? [\d.,]+ globally|quota '?[\w-]*ALL_REGIONS'? exceeded"
        r"|insufficient project quota",
        code=Code.RESOURCE_EXHAUSTED,
        layers=(Layer.REPLY, Layer.CREATE, Layer.FAILED),
        hint="It counts in every zone, so no other place helps. Request more of the quota named in the text, or "
        "delete resources.",
        # cloud.google.com/compute/quotas-limits
        examples=("Quota 'CPUS_ALL_REGIONS' exceeded. Limit: 32.0 globally.",),
    ),
    RefusalRow(
        kind="quota-none",
        what="No quota there",
        pattern=(
            r"quota (limit )?('[^']*'|[\w-]+) (has been exceeded|exhausted|exceeded)\. limit:? (\d+,)*0(\.0+)?(?!\.?\d)"
            r"(?! globally)"
        ),
        code=Code.RESOURCE_EXHAUSTED,
        remedy=Remedy.DROP_ZONE,
        scope=None,
        holds=24 * HOURS,
        hint="Waiting does not help. Request the quota named in the text, or leave the place out. Spot and "
        "flex-start draw from the preemptible one; zone and region must both have it.",
        examples=(
            (
                "Quota limit 'TPUV6EPreemptiblePerProjectPerRegionForTPUAPI' has been exceeded. Limit: 0 in region "
                "us-east5."
            ),
            "Quota limit 'A,B' has been exceeded. Limit: 0,0 in region us-central1,zone us-central1-a.",
            "QUOTA_EXCEEDED: Quota 'TPUS_PER_TPU_FAMILY' exceeded. Limit: 0.0 in region us-central1.",
        ),
    ),
    RefusalRow(
        kind="quota",
        what="The quota there is used up",
        pattern=(
            r"quota limit '[^']*' has been exceeded|quota '?[\w-]+'? (exhausted|exceeded)|exceeded (?:your |the )?quota"
            r"|quota exceeded|QUOTA_EXCEEDED|quotaExceeded|insufficient (?:\S+ )?quota|not enough quota"
            r"|quota is (?:exceeded|exhausted|not sufficient)|you have reached \S+ limit|exceeds (?:the |your )?quota"
        ),
        code=Code.RESOURCE_EXHAUSTED,
        remedy=Remedy.NEXT_ZONE,
        scope=None,
        holds=5 * MINUTES,
        hint="Slices count until they're deleted, including failed and preempted ones. Request more quota or "
        "delete some.",
        examples=(
            "Quota 'TPUV5sPreemptibleLitepodPerProjectPerRegionForTPUAPI' exhausted. Limit 10000 in region us-west4",
            (
                "Quota limit 'TPUV6EPreemptiblePerProjectPerZoneForTPUAPI' has been exceeded. Limit: 64 in zone "
                "us-east5-a."
            ),
            (
                "Quota exceeded for quota metric 'TPU v6e cores' and limit 'TPUV6EPerProjectPerZoneForTPUAPI' of "
                "service 'tpu.googleapis.com' for consumer 'project_number:7'."
            ),
        ),
    ),
    RefusalRow(
        kind="exhausted",
        what="A resource is exhausted, with an unknown message",
        code=Code.RESOURCE_EXHAUSTED,
        by_code=True,
        remedy=Remedy.NEXT_ZONE,
        scope=RefusalScope.PAIR,
        holds=5 * MINUTES,
        hint="The cause is capacity or a quota; Google's own text, always shown, says which.",
    ),
)
