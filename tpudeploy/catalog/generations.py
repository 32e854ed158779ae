"""TPU generations, one row each: sizes, memory, runtime, zones, list prices. Add a generation here."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.accelerator import AcceleratorType, ComputeEngine, Generation, Sku


def _v6e(
    chips: int,
    topology: str,
    *,
    hosts: int = 1,
    machine: str = "ct6e-standard-4t",
    ram: int = 720,
    threads_per_core: int | None = None,
) -> AcceleratorType:
    return AcceleratorType(
        name=f"v6e-{chips}",
        generation="v6e",
        topology=topology,
        chips=chips,
        hosts=hosts,
        host_ram_gib=ram,
        machine_type=machine,
        threads_per_core=threads_per_core,
    )


def _v5e(chips: int, topology: str, *, ram: int) -> AcceleratorType:
    return AcceleratorType(
        name=f"v5litepod-{chips}",
        generation="v5e",
        topology=topology,
        chips=chips,
        hosts=1,
        host_ram_gib=ram,
        machine_type=f"ct5lp-hightpu-{chips}t",
    )


# Sizes: Google's v6e page; host counts for 16 chips and up: four chips a VM. RAM of the 4t machine is unverified.
# bytes_limit: measured, vLLM pull request 16211 (`gpu_memory_per_device`); v5e inferred from boot logs.
# Peaks: Google's v6e page; of its revisions (1,600, 1,638, 1,640 GB/s) the highest, for they are there to be exceeded.
# v5e: Google's v5e page (197 TFLOPs; 819 GB/s, or 800 GiB/s).
# Zones: where accelerator-types lists v6e-1 (2026-08), those that took flex-start first. A zone can list a type and
# serve nothing; quota is no zone list either (37 zones report v6e quota, 18 have hardware).
# Flex-start: dated by the last of the published runs, operations guides and Google's page that speak of a zone; the
# refusals carry no date of their own, the operations in their log are of 2026-06. What stands in neither list, nobody
# has recorded.
# SKUs: seen in the billing catalogue, 2026-08. The anchors matter: "Capacity Optimized TpuV6e" and "Reserved TpuV6e"
# are sold in the same regions under the same usage type, at other prices.
# Quota: `tpu-v6e-preemptible` was seen in projects, `tpu-v6e` is by analogy (unverified).
# Compute Engine (2026-08): machines, image family and disk are from published runs of single-host v6e, the quota ids
# from Cloud Quotas; `threadsPerCore: 1` is what a DRA driver's script sends for ct6e-standard-8t alone. It offers the
# machines in the zones of accelerator-types, and in two AI zones (us-south1-ai1b, us-central1-ai1) that are not listed.
# Prices: USD per chip-hour, SkyPilot catalogue v8 and the billing catalogue (2026-08); spot prices move monthly.
V6E = Generation(
    name="v6e",
    runtime_version="v2-alpha-tpuv6e",
    hbm_gib=32,
    bytes_limit=33_550_237_696,
    peak_bf16_tflops=918,
    hbm_gbytes_per_second=1640,
    types=(
        _v6e(1, "1x1", machine="ct6e-standard-1t", ram=164),
        _v6e(4, "2x2"),
        _v6e(8, "2x4", machine="ct6e-standard-8t", ram=1340, threads_per_core=1),
        _v6e(16, "4x4", hosts=4),
        _v6e(32, "4x8", hosts=8),
        _v6e(64, "8x8", hosts=16),
        _v6e(128, "8x16", hosts=32),
        _v6e(256, "16x16", hosts=64),
    ),
    zones=(
        "us-east5-a",
        "us-east5-b",
        "europe-west4-a",
        "asia-northeast1-b",
        "southamerica-west1-a",
        "us-central1-a",
        "us-central1-b",
        "us-central1-c",
        "us-east1-d",
        "us-east5-c",
        "us-south1-a",
        "us-south1-c",
        "us-west1-c",
        "asia-southeast1-b",
        "asia-east1-c",
        "asia-south1-b",
        "asia-south1-c",
        "southamerica-east1-c",
    ),
    zones_as_of="2026-08",
    flex_start_zones={
        "us-east5-a": "2026-07",
        "us-east5-b": "2026-07",
        "europe-west4-a": "2026-07",
        "asia-northeast1-b": "2026-06",
        "southamerica-west1-a": "2026-07",
        "us-central1-a": "2026-07",
    },
    flex_start_refused={
        "us-central1-b": "2026-06",
        "us-south1-a": "2026-06",
        "asia-east1-c": "2026-06",
        "asia-south1-b": "2026-06",
        "asia-south1-c": "2026-06",
        "asia-southeast1-b": "2026-06",
        "southamerica-east1-c": "2026-06",
    },
    prices={
        "us-central1": {"on-demand": 2.70, "spot": 0.544},
        "us-east1": {"on-demand": 2.70, "spot": 0.544},
        "us-west1": {"on-demand": 2.70, "spot": 0.544},
        "us-east4": {"on-demand": 2.70, "spot": 0.578},
        "us-east5": {"on-demand": 2.70, "spot": 1.4033, "flex-start": 1.35},
        "us-south1": {"on-demand": 2.70, "spot": 1.35},
        "europe-west4": {"on-demand": 2.97, "spot": 1.78, "flex-start": 1.35},
        "asia-northeast1": {"on-demand": 3.24, "spot": 0.944},
        "asia-south1": {"on-demand": 3.24, "spot": 2.27},
        "asia-southeast1": {"on-demand": 2.97, "spot": 0.363},
        "southamerica-west1": {"on-demand": 2.70},
    },
    prices_as_of="2026-08",
    skus={
        "on-demand": Sku(begins="TpuV6e running in ", usage="OnDemand"),
        "spot": Sku(begins="TpuV6e attached to Spot Preemptible VMs", usage="Preemptible"),
        "flex-start": Sku(begins="DWS Defined Duration V6e running in ", usage="OnDemand"),
    },
    quota="tpu-v6e",
    compute_engine=ComputeEngine(
        image_family="ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e",
        disk_type="hyperdisk-balanced",
        quotas={
            "spot": "PREEMPTIBLE-TPU-V6E-per-project-region",
            "flex-start": "PREEMPTIBLE-TPU-V6E-per-project-region",
            "on-demand": "TPUS-PER-TPU-FAMILY-per-project-region",
        },
    ),
)

# The TPU API serves v5e. Compute Engine answers `403 This user agent is not allowed to use the machine type` (2026-09).
# Zones and prices are not researched yet, so `zones: any` finds none and a list is needed.
V5E = Generation(
    name="v5e",
    runtime_version="v2-alpha-tpuv5-lite",
    hbm_gib=16,
    bytes_limit=16_909_336_576,
    peak_bf16_tflops=197,
    hbm_gbytes_per_second=859,
    types=(_v5e(1, "1x1", ram=44), _v5e(4, "2x2", ram=176), _v5e(8, "2x4", ram=352)),
    zones=(),
    zones_as_of="",
    flex_start_zones={},
    flex_start_refused={},
    prices={},
    prices_as_of="",
    skus={},
    quota="tpu-v5s-litepod",
)

GENERATIONS = (V6E, V5E)

# Generations that Google has and tpudeploy refuses, with what is not known of them. A guess would be worse: a wrong
# memory limit is found when the engine dies on a slice that was waited for (docs of each generation, 2026-08).
UNSUPPORTED_GENERATIONS: Mapping[str, str] = {
    "v4": "the memory that its runtime reports, its machines and its zones",
    "v5p": "the memory that its runtime reports, its quota in chips and its prices",
    "tpu7x": "the memory that each of its two devices per chip reports, and where flex-start is accepted",
}
