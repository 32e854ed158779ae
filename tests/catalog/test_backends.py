"""The APIs through which a slice is requested: each has its row, and the rows say what users read."""

from __future__ import annotations

from dataclasses import fields

import pytest

from tpudeploy.catalog.backends import BACKENDS, BackendFacts
from tpudeploy.domain.accelerator import Backend


def test_each_api_has_a_row_and_no_fact_is_empty() -> None:
    assert set(BACKENDS) == set(Backend)
    for row in BACKENDS.values():
        assert all(getattr(row, each.name) != "" for each in fields(BackendFacts))


@pytest.mark.parametrize("backend", Backend)
def test_a_resource_has_its_place_in_its_path(backend: Backend) -> None:
    path = BACKENDS[backend].paths[0].format(project="p", zone="us-east5-b", name="gemma")
    assert path.split("/")[1::2] == ["p", "us-east5-b", "gemma"]
