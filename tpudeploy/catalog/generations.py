"""TPU generations, one row each: sizes, memory, runtime, zones, list prices. Add a generation here.

Each row begins with a comment that says where its facts come from. Facts without a second source are marked as
unverified, and what is not known is None, "" or absent: a caller must say so, and never assume a value.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from tpudeploy.domain.accelerator import (
    AcceleratorType,
    Backend,
    ComputeEngineSupport,
    Generation,
    Sku,
    Support,
    TpuApi,
)

_TPU_API = (Backend.QUEUED_RESOURCE,)
_COMPUTE_ENGINE = (Backend.GCE_INSTANCE,)
_BOTH = (*_TPU_API, *_COMPUTE_ENGINE)


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
        backends=_BOTH,
        threads_per_core=threads_per_core,
        also_called=(f"{machine}-tpu",) if hosts == 1 else (),
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
        backends=_TPU_API,
    )


def _v5p(name: str, chips: int, topology: str, machine: str, **facts: Any) -> AcceleratorType:
    return AcceleratorType(
        name=name, generation="v5p", topology=topology, chips=chips, machine_type=machine, **{"hosts": 1, **facts}
    )


def _tpu7x(chips: int, topology: str, *, machine: str = "tpu7x-standard-4t", ram: int | None = 894) -> AcceleratorType:
    hosts = max(1, chips // 4)
    return AcceleratorType(
        # A number that is more than one machine's chips means TensorCores elsewhere: xpk names those by topology too.
        name=f"tpu7x-{chips if hosts == 1 else topology}",
        generation="tpu7x",
        topology=topology,
        chips=chips,
        hosts=hosts,
        host_ram_gib=ram,
        machine_type=machine,
        backends=_COMPUTE_ENGINE,
        devices_per_chip=2,
    )


# Sizes: Google's v6e page; host counts for 16 chips and up: four chips a VM. RAM of the 4t machine is unverified.
# bytes_limit: measured, vLLM pull request 16211 (`gpu_memory_per_device`).
# Peaks: Google's v6e page; of its revisions (1,600, 1,638, 1,640 GB/s) the highest, for they are there to be exceeded.
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
    hbm_gib=32,
    bytes_limit=33_550_237_696,
    peak_bf16_tflops=918,
    hbm_gbytes_per_second=1640,
    computes_fp8=False,
    support=Support.RECOMMENDED,
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
    tpu_api=TpuApi(runtime_version="v2-alpha-tpuv6e", config_type="V6E", quota="tpu-v6e"),
    compute_engine=ComputeEngineSupport(
        image_family="ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e",
        disk_type="hyperdisk-balanced",
        quotas={
            "spot": "PREEMPTIBLE-TPU-V6E-per-project-region",
            "flex-start": "PREEMPTIBLE-TPU-V6E-per-project-region",
            "on-demand": "TPUS-PER-TPU-FAMILY-per-project-region",
        },
        quota_family="CT6E",
    ),
    gke_accelerator="tpu-v6e-slice",
)

# The TPU API serves v5e. Compute Engine answers `403 This user agent is not allowed to use the machine type` (2026-09).
# bytes_limit: inferred from boot logs, which it reproduces. Peaks: Google's v5e page (197 TFLOPs; 819 GB/s, or 800
# GiB/s). Zones: Google's page of regions and zones (2026). Flex-start: those that a public builders' guide
# reports (2026-11, unverified); of the others nothing is recorded.
# Quota: Google's page on inference has a pool for serving apart from that for training, and slices of 1, 4 and 8 chips
# draw on it (marin pull request 6198). The names of its metrics, and in which zones it applies, are unverified.
# Prices: on-demand from SkyPilot catalogue v8, in a version of unknown date; spot and flex-start in us-west4 are from
# reports of 2026-08. The texts of its SKUs are not known, so live prices are not read.
V5E = Generation(
    name="v5e",
    hbm_gib=16,
    bytes_limit=16_909_336_576,
    peak_bf16_tflops=197,
    hbm_gbytes_per_second=859,
    computes_fp8=False,
    support=Support.RECOMMENDED,
    types=(_v5e(1, "1x1", ram=44), _v5e(4, "2x2", ram=176), _v5e(8, "2x4", ram=352)),
    zones=("us-west4-a", "us-central1-a", "us-south1-a", "us-west1-c", "europe-west4-b"),
    zones_as_of="2026",
    flex_start_zones={"us-west4-a": "2026-11", "europe-west4-b": "2026-11"},
    flex_start_refused={},
    prices={
        "us-west4": {"on-demand": 1.20, "spot": 0.607, "flex-start": 0.60},
        "us-central1": {"on-demand": 1.20},
        "us-south1": {"on-demand": 1.416},
        "us-west1": {"on-demand": 1.20},
        "us-east1": {"on-demand": 1.20},
        "us-east4": {"on-demand": 1.20},
        "us-east5": {"on-demand": 1.20},
        "europe-west4": {"on-demand": 1.56},
        "europe-west1": {"on-demand": 1.32132},
        "asia-southeast1": {"on-demand": 1.56},
    },
    prices_as_of="2026",
    skus={},
    tpu_api=TpuApi(
        runtime_version="v2-alpha-tpuv5-lite",
        config_type="V5LITE_POD",
        quota="tpu-v5s-litepod",
        serving_quota="tpu-v5s-litepod-serving",
    ),
    compute_engine=None,
    gke_accelerator="tpu-v5-lite-podslice",
)

# Sizes: Google's v5p page; its names at the TPU API count TensorCores, of which a chip has two and the runtime sees one
# device. Machines of 1 and 2 chips exist at Compute Engine alone. RAM: 112 GB is from Google's page, 448 GB is
# unverified, that of -2t is not known.
# bytes_limit: not recorded. XLA's messages name 95.74 GiB of HBM, so Google's "95 GB" is not an upper bound; 96 is.
# Zones: Google's page (2026), with europe-west4-b by SkyPilot's catalogue. Flex-start: zones that a public builders'
# guide reports (2026-11, unverified).
# Quota at the TPU API counts cores; the name of its metric is by analogy (unverified). Quota ids of Compute Engine:
# Cloud Quotas, 2026-08. The disk type is that of v6e (unverified).
# Prices: on-demand from SkyPilot catalogue v8, in a version of unknown date. The texts of its SKUs are not known.
V5P = Generation(
    name="v5p",
    hbm_gib=96,
    bytes_limit=None,
    peak_bf16_tflops=459,
    hbm_gbytes_per_second=2765,
    computes_fp8=False,
    support=Support.EXPERIMENTAL,
    types=(
        _v5p("ct5p-hightpu-1t-tpu", 1, "1x1x1", "ct5p-hightpu-1t-tpu", host_ram_gib=104, backends=_COMPUTE_ENGINE),
        _v5p("ct5p-hightpu-2t-tpu", 2, "1x2x1", "ct5p-hightpu-2t-tpu", host_ram_gib=None, backends=_COMPUTE_ENGINE),
        _v5p("v5p-8", 4, "2x2x1", "ct5p-hightpu-4t", host_ram_gib=417, backends=_BOTH),
        _v5p("v5p-16", 8, "2x2x2", "ct5p-hightpu-4t", host_ram_gib=417, backends=_BOTH, hosts=2),
    ),
    zones=("us-east5-a", "us-central1-a", "europe-west4-b"),
    zones_as_of="2026",
    flex_start_zones={"us-east5-a": "2026-11", "us-central1-a": "2026-11"},
    flex_start_refused={},
    prices={
        "us-east5": {"on-demand": 4.20},
        "us-central1": {"on-demand": 4.20},
        "us-east1": {"on-demand": 4.20},
        "us-south1": {"on-demand": 4.779},
        "europe-west1": {"on-demand": 4.459455},
        "europe-west4": {"on-demand": 4.2525},
    },
    prices_as_of="2026",
    skus={},
    tpu_api=TpuApi(runtime_version="v2-alpha-tpuv5", config_type="V5P", quota="tpu-v5p", quota_units_per_chip=2),
    compute_engine=ComputeEngineSupport(
        image_family="ubuntu-accel-2204-amd64-tpu-v5e-v5p-v6e",
        disk_type="hyperdisk-balanced",
        quotas={
            "spot": "PREEMPTIBLE-TPU-V5P-per-project-region",
            "flex-start": "PREEMPTIBLE-TPU-V5P-per-project-region",
            "on-demand": "TPU-V5P-per-project-region",
        },
    ),
    gke_accelerator="tpu-v5p-slice",
)

# TPU7x (Ironwood): a chip has two devices of 96 GB, and tensor parallelism counts devices. The TPU API has none.
# Topologies and host counts: node pools that others run (2026-09); 960 GB of RAM is unverified. The machine of one chip
# is from tpu-recipes (tpu7x-standard-1t, 1x1x1, tensor parallel 2); its RAM and its zones apart are not known.
# bytes_limit: not recorded. XLA's messages name 94.75 GiB a device. Peaks: Google's page; 7,380 GB/s is unverified.
# Zones: Google's page (2026). Flex-start: sources disagree (vLLM's page says no, Google's names an allowlist, SkyPilot
# asks in us-central1-c), so neither is recorded.
# Prices: Google's price page, 2026-08. No spot price is listed. That a unit of its SKU is a chip is by analogy.
# The quota of preemptible chips and the tpu_family are not known. The disk type is that of v6e (unverified).
TPU7X = Generation(
    name="tpu7x",
    hbm_gib=96,
    bytes_limit=None,
    peak_bf16_tflops=2307,
    hbm_gbytes_per_second=7380,
    computes_fp8=True,
    support=Support.RECOMMENDED,
    types=(
        _tpu7x(1, "1x1x1", machine="tpu7x-standard-1t", ram=None),
        _tpu7x(4, "2x2x1"),
        _tpu7x(8, "2x2x2"),
        _tpu7x(16, "2x2x4"),
        _tpu7x(64, "4x4x4"),
    ),
    zones=("us-central1-c", "us-central1-ai1a"),
    zones_as_of="2026",
    flex_start_zones={},
    flex_start_refused={},
    prices={"us-central1": {"on-demand": 12.00, "flex-start": 6.00}, "europe-west2": {"on-demand": 13.20}},
    prices_as_of="2026-08",
    skus={"on-demand": Sku(begins="TPU7x running in ", usage="OnDemand")},
    tpu_api=None,
    compute_engine=ComputeEngineSupport(
        image_family="ubuntu-accel-2404-amd64-tpu-tpu7x",
        disk_type="hyperdisk-balanced",
        quotas={"on-demand": "TPUS-PER-TPU-FAMILY-per-project-region"},
    ),
    gke_accelerator="tpu7x",
)

GENERATIONS = (V6E, V5E, V5P, TPU7X)

# Generations that Google has and tpudeploy refuses, and why. A guess would be worse: a wrong memory limit is found when
# the engine dies on a slice that was waited for. v4: tpu-inference pull request 2955; its kernel of 2026-08 raises.
UNSUPPORTED_GENERATIONS: Mapping[str, str] = {
    "v2": "tpudeploy does not know a vLLM that runs on it",
    "v3": "tpudeploy does not know a vLLM that runs on it",
    "v4": "vLLM's attention kernel for TPUs refuses it (Unsupported tpu_version=4)",
    "v8i": "tpudeploy does not know its sizes, its machines and its zones",
}

# What earlier versions called a type, in states and in the metadata of groups. Other tools count TensorCores in it.
FORMER_NAMES: Mapping[str, str] = {"tpu7x-8": "tpu7x-2x2x2", "tpu7x-16": "tpu7x-2x2x4", "tpu7x-64": "tpu7x-4x4x4"}
