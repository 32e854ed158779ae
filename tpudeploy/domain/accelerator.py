"""Define accelerator types and TPU generations; catalog/generations.py has the rows."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from enum import StrEnum


class Backend(StrEnum):
    """The API of Google through which a slice is requested: `placement.backend`."""

    QUEUED_RESOURCE = "queued-resource"
    GCE_INSTANCE = "gce-instance"

    @property
    def boots_image(self) -> bool:
        """Return whether its machines boot an image of a family, which can be pinned."""
        return self is Backend.GCE_INSTANCE


# That of a profile that names none, and of states, histories and plans from before there were two.
DEFAULT_BACKEND = Backend.QUEUED_RESOURCE


class Support(StrEnum):
    """How far vLLM supports a generation, by the words of its own pages."""

    RECOMMENDED = "recommended"
    EXPERIMENTAL = "experimental"


@dataclass(frozen=True, slots=True, kw_only=True)
class AcceleratorType:
    """One slice size. `name` is the one name that plans and states use: the TPU API's, where that API has the size.

    `machine_type` is the machine of each host, by Compute Engine's name, and `also_called` are other names of it.
    `host_ram_gib` is None where it is not known. `backends` are those that create slices of this size, the default
    first. `threads_per_core` is what Compute Engine requires an instance of this size to request, or None.

    A device is what the runtime and vLLM count, and what has a memory of its own: a chip of some generations has two.
    """

    name: str
    generation: str
    topology: str
    chips: int
    hosts: int
    host_ram_gib: int | None
    machine_type: str
    # Each row has its own. A saved plan from before there were two APIs has none.
    backends: tuple[Backend, ...] = (DEFAULT_BACKEND,)
    devices_per_chip: int = 1
    threads_per_core: int | None = None
    also_called: tuple[str, ...] = ()

    @property
    def devices(self) -> int:
        return self.chips * self.devices_per_chip

    @property
    def chips_per_host(self) -> int:
        return self.chips // self.hosts

    @property
    def devices_per_host(self) -> int:
        return self.devices // self.hosts

    @property
    def device_noun(self) -> str:
        """Return the word for a device: "chip", or "device" where a chip has several."""
        return "chip" if self.devices_per_chip == 1 else "device"


@dataclass(frozen=True, slots=True, kw_only=True)
class Sku:
    """A SKU of the billing catalogue: the beginning of its description, and its usage type."""

    begins: str
    usage: str


@dataclass(frozen=True, slots=True, kw_only=True)
class TpuApi:
    """How the Cloud TPU API serves a generation.

    `config_type` is its name in `AcceleratorConfig.type`. `quota` is the name of the quota of on-demand chips, from
    which that of preemptible chips is derived; it is "" where it is not known. `serving_quota` is that of a pool apart
    for slices that serve, or "". The quota counts units, of which a chip has `quota_units_per_chip`.
    """

    runtime_version: str
    config_type: str
    quota: str = ""
    serving_quota: str = ""
    quota_units_per_chip: int = 1

    @property
    def runtime(self) -> str:
        """Return the default software of its machines."""
        return self.runtime_version

    @property
    def quota_metric(self) -> str:
        """Return the name of the metric that limits slices, or "" where it is not known."""
        return self.serving_quota or self.quota


@dataclass(frozen=True, slots=True, kw_only=True)
class ComputeEngineSupport:
    """How Compute Engine serves a generation.

    `image_family` is in the project IMAGE_PROJECT. `disk_type` is the type of the boot disk that its machines take.
    `quotas` are the quota ids at Cloud Quotas, by provisioning model, as far as they are known; they are apart from
    those of the TPU API. `quota_family` is the value of `tpu_family` in those that several generations share, or ""
    where it is not known.
    """

    image_family: str
    disk_type: str
    quotas: Mapping[str, str]
    quota_family: str = ""

    @property
    def runtime(self) -> str:
        """Return the default software of its machines."""
        return self.image_family

    @property
    def quota_metric(self) -> str:
        """Return "": its metrics are those of `quotas`, one a provisioning model."""
        return ""


# The project with Google's images for instances with accelerators.
IMAGE_PROJECT = "ubuntu-os-accelerator-images"


@dataclass(frozen=True, slots=True, kw_only=True)
class Generation:
    """A TPU generation: sizes, runtime, memory, zones and prices.

    `bytes_limit` is the HBM that the runtime reports per device (`memory_stats()["bytes_limit"]`), in bytes, or None
    where it is not recorded. `hbm_gib` is the HBM that a device is built with, which no report can exceed.
    The peaks are those of a chip by Google's page; no measured figure can exceed them. `computes_fp8` is whether its
    matrix units calculate in fp8; the others only store it.
    `zones` are hints, in the order to try: zones where accelerator-types lists the type. None is a promise.
    `flex_start_zones` accepted flex-start requests, `flex_start_refused` refused the model; each zone has the month of
    the last report. `prices` is USD per chip and hour, by region and provisioning model. `skus` is by provisioning
    model. `tpu_api` and `compute_engine` are None for a generation of which that API creates no slices.
    `gke_accelerator` is the value of GKE's node label.
    """

    name: str
    hbm_gib: int
    bytes_limit: int | None
    peak_bf16_tflops: float
    hbm_gbytes_per_second: float
    computes_fp8: bool
    support: Support
    types: tuple[AcceleratorType, ...]
    zones: tuple[str, ...]
    zones_as_of: str
    flex_start_zones: Mapping[str, str]
    flex_start_refused: Mapping[str, str]
    prices: Mapping[str, Mapping[str, float]]
    prices_as_of: str
    skus: Mapping[str, Sku]
    tpu_api: TpuApi | None
    compute_engine: ComputeEngineSupport | None
    gke_accelerator: str

    @property
    def backends(self) -> tuple[Backend, ...]:
        """Return the backends that serve the generation; a single size may have fewer."""
        return tuple(self.apis)

    @property
    def apis(self) -> Mapping[Backend, TpuApi | ComputeEngineSupport]:
        """Return how each backend that serves the generation does so."""
        apis = {Backend.QUEUED_RESOURCE: self.tpu_api, Backend.GCE_INSTANCE: self.compute_engine}
        return {backend: api for backend, api in apis.items() if api is not None}

    @property
    def most_bytes(self) -> int:
        """The HBM of a device in bytes, as the runtime reports it; where that is not recorded, an upper bound.

        Why: decision 59 in docs/decisions.md.
        """
        return self.hbm_gib * 1024**3 if self.bytes_limit is None else self.bytes_limit

    def runtime_of(self, backend: Backend) -> str:
        """Return the machine's default software: a runtime version of the TPU API, or a family of images.

        Raise KeyError for a backend that does not serve the generation.
        """
        return self.apis[backend].runtime
