"""What kinds of TPU slice exist: pure description; the rows stand in catalog/generations.py."""

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
    """How the billing catalogue names one way of paying: how its description begins, and its usage type."""

    begins: str
    usage: str


@frozen
class Generation:
    """One TPU generation: sizes, runtime, memory, where it stands and what it costs.

    `bytes_limit` is the HBM that the runtime reports per chip (`memory_stats()["bytes_limit"]`), in bytes. The peaks
    are a chip's as Google states them, and are what no measured figure can exceed.
    `zones` is a hint, in the order to try: zones where accelerator-types lists the type. Never a promise.
    `flex_start_zones` took flex-start requests, `flex_start_refused` refused the model; each zone with the month of
    the last word on it. `prices` is USD per chip and hour, by region and provisioning model. `skus` is by provisioning
    model; `quota` is the name of its on-demand chips at the TPU API, of which the preemptible ones' is made.
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
