"""The JSON Schema of grids, for editors."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy.config.jsonschema import json_schema
from tpudeploy.features.campaign.grid_schema import GridSpec


def grid() -> Mapping[str, Any]:
    """Return the schema of grid.yaml."""
    return json_schema(GridSpec, "tpudeploy campaign grid")


DOCUMENTS: Mapping[str, Callable[[], Mapping[str, Any]]] = {"campaign-grid": grid}
