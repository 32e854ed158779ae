"""Each row of the catalogue's generations: its names resolve, its figures agree, and what is not known is said."""

from __future__ import annotations

from math import prod

import pytest

from tpudeploy import catalog
from tpudeploy.catalog.generations import GENERATIONS, UNSUPPORTED_GENERATIONS
from tpudeploy.domain.accelerator import AcceleratorType, Backend, Generation

TYPES = catalog.accelerator_types()
by_generation = pytest.mark.parametrize("generation", GENERATIONS, ids=lambda each: each.name)
by_type = pytest.mark.parametrize("slice_type", TYPES, ids=lambda each: each.name)


@by_type
def test_each_name_and_the_topology_of_a_type_mean_that_type_alone(slice_type: AcceleratorType) -> None:
    for name in catalog.names_of(slice_type):
        assert catalog.accelerator_type(name) is slice_type
        assert sum(name in catalog.names_of(each) for each in TYPES) == 1
    assert catalog.type_of_topology(slice_type.generation, slice_type.topology) is slice_type


@by_type
def test_the_sides_of_a_topology_multiply_to_the_chips(slice_type: AcceleratorType) -> None:
    assert prod(map(int, slice_type.topology.split("x"))) == slice_type.chips
    assert slice_type.chips % slice_type.hosts == 0
    assert slice_type.devices == slice_type.chips * (2 if slice_type.generation == "tpu7x" else 1)


@by_type
def test_a_type_has_a_backend_and_each_has_its_software(slice_type: AcceleratorType) -> None:
    generation = catalog.generation(slice_type.generation)
    assert slice_type.backends
    for backend in slice_type.backends:
        assert generation.runtime_of(backend)


@by_generation
def test_a_backend_of_a_generation_creates_one_of_its_types(generation: Generation) -> None:
    assert set(generation.backends) == {backend for each in generation.types for backend in each.backends}
    for backend in set(Backend) - set(generation.backends):
        with pytest.raises(KeyError):
            generation.runtime_of(backend)


@by_generation
def test_the_nominal_memory_is_an_upper_bound_of_the_limit(generation: Generation) -> None:
    assert generation.most_bytes <= generation.hbm_gib * 1024**3
    if generation.bytes_limit is not None:
        assert generation.most_bytes == generation.bytes_limit


@by_generation
def test_where_no_limit_is_recorded_the_nominal_memory_is_taken(generation: Generation) -> None:
    assert generation.most_bytes == (generation.bytes_limit or generation.hbm_gib * 2**30)


@by_generation
def test_figures_that_change_have_a_date(generation: Generation) -> None:
    assert generation.zones
    assert generation.zones_as_of
    assert generation.prices_as_of
    assert set(generation.flex_start_zones) <= set(generation.zones)
    for region, prices in generation.prices.items():
        assert all(usd > 0 for usd in prices.values()), region
        # On-demand is the most that a chip costs, and bounds the price of models without one.
        assert max(prices.values()) == prices["on-demand"], region


def test_a_name_counts_cores_for_v5p_alone() -> None:
    assert {each.generation for each in TYPES if catalog.counts_cores(each)} == {"v5p"}
    assert catalog.accelerator_type("v5p-4") is None


def test_a_generation_that_is_refused_has_no_row() -> None:
    assert not set(UNSUPPORTED_GENERATIONS) & {each.name for each in GENERATIONS}
    assert catalog.unsupported_generation("v3-8") == "v3"
    assert catalog.unsupported_generation("v5p-8") is None
