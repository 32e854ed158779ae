"""Define accelerator types and TPU generations; catalog/generations.py has the rows."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.frozen import frozen


@frozen
class AcceleratorType:
    """One slice size, by Google's name, e.g. `v6e-4`."""

    name: str
    generation: str
    topology: str
    chips: int
    hosts: int
    host_ram_gib: int
    machine_type: str


@frozen
class Sku:
    """A SKU of the billing catalogue: the beginning of its description, and its usage type."""

    begins: str
    usage: str


@frozen
class Generation:
    """A TPU generation: sizes, runtime, memory, zones and prices.

    `bytes_limit` is the HBM that the runtime reports per chip (`memory_stats()["bytes_limit"]`), in bytes. The peaks
    are those of a chip by Google's page; no measured figure can exceed them.
    `zones` are hints, in the order to try: zones where accelerator-types lists the type. None is a promise.
    `flex_start_zones` accepted flex-start requests, `flex_start_refused` refused the model; each zone has the month of
    the last report. `prices` is USD per chip and hour, by region and provisioning model. `skus` is by provisioning
    model; `quota` is the name of the on-demand quota at the TPU API; that of preemptible chips is derived from it.
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
