"""Define accelerator types and TPU generations; catalog/generations.py has the rows."""

from __future__ import annotations

from collections.abc import Mapping
from enum import StrEnum

from tpudeploy.domain.frozen import frozen


class Backend(StrEnum):
    """The API of Google through which a slice is requested: `placement.backend`."""

    QUEUED_RESOURCE = "queued-resource"
    GCE_INSTANCE = "gce-instance"


@frozen
class AcceleratorType:
    """One slice size, by the TPU API's name, e.g. `v6e-4`.

    `machine_type` is the machine of each host, by Compute Engine's name. `threads_per_core` is what Compute Engine
    requires an instance of this size to request, or None.
    """

    name: str
    generation: str
    topology: str
    chips: int
    hosts: int
    host_ram_gib: int
    machine_type: str
    threads_per_core: int | None = None


@frozen
class Sku:
    """A SKU of the billing catalogue: the beginning of its description, and its usage type."""

    begins: str
    usage: str


@frozen
class ComputeEngine:
    """How Compute Engine serves a generation.

    `image_family` is in the project IMAGE_PROJECT. `disk_type` is the type of the boot disk that its machines take.
    `quotas` are the quota ids at Cloud Quotas, by provisioning model; they are apart from those of the TPU API.
    """

    image_family: str
    disk_type: str
    quotas: Mapping[str, str]


# The project with Google's images for instances with accelerators.
IMAGE_PROJECT = "ubuntu-os-accelerator-images"


@frozen
class Generation:
    """A TPU generation: sizes, runtime, memory, zones and prices.

    `bytes_limit` is the HBM that the runtime reports per chip (`memory_stats()["bytes_limit"]`), in bytes. The peaks
    are those of a chip by Google's page; no measured figure can exceed them.
    `zones` are hints, in the order to try: zones where accelerator-types lists the type. None is a promise.
    `flex_start_zones` accepted flex-start requests, `flex_start_refused` refused the model; each zone has the month of
    the last report. `prices` is USD per chip and hour, by region and provisioning model. `skus` is by provisioning
    model; `quota` is the name of the on-demand quota at the TPU API; that of preemptible chips is derived from it.
    `compute_engine` is None for a generation of which Compute Engine creates no instances.
    """

    name: str
    runtime_version: str
    hbm_gib: int
    bytes_limit: int
    peak_bf16_tflops: float
    hbm_gbytes_per_second: float
    types: tuple[AcceleratorType, ...]
    zones: tuple[str, ...]
    zones_as_of: str
    flex_start_zones: Mapping[str, str]
    flex_start_refused: Mapping[str, str]
    prices: Mapping[str, Mapping[str, float]]
    prices_as_of: str
    skus: Mapping[str, Sku]
    quota: str
    compute_engine: ComputeEngine | None = None

    @property
    def backends(self) -> tuple[Backend, ...]:
        """Return the backends that serve the generation."""
        if self.compute_engine is None:
            return (Backend.QUEUED_RESOURCE,)
        return (Backend.QUEUED_RESOURCE, Backend.GCE_INSTANCE)

    def runtime_of(self, backend: Backend) -> str:
        """Return the machine's default software: a runtime version of the TPU API, or a family of images.

        Raise KeyError for a backend that does not serve the generation.
        """
        if backend is Backend.QUEUED_RESOURCE:
            return self.runtime_version
        if self.compute_engine is None:
            raise KeyError(backend)
        return self.compute_engine.image_family
