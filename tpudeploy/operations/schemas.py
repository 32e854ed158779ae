"""List the JSON Schemas of all documents: those of the results of operations, and the others."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from typing import Any

from tpudeploy import feature_table
from tpudeploy.config.jsonschema import json_schema
from tpudeploy.operations import OPERATIONS, operation
from tpudeploy.results import Result
from tpudeploy.schemas import documents as schemas

PROFILE = "profile"


def all_schemas() -> Mapping[str, Callable[[], Mapping[str, Any]]]:
    """Return the function that makes each schema, by the name in the `format` of the document."""
    all_: dict[str, Callable[[], Mapping[str, Any]]] = dict(schemas.SCHEMAS)
    for module in feature_table.modules("documents"):
        all_ |= module.DOCUMENTS
    for name in OPERATIONS:
        for result in operation(name).results:
            if issubclass(result, Result) and result.IS_DOCUMENT:
                all_[result.FORMAT] = result.schema
    return all_


def schema_text(what: str = PROFILE) -> str:
    """Return a schema. That of profiles is also in profiles/profile.schema.json, which their first lines name."""
    if what == PROFILE:
        return json.dumps(json_schema(), indent=2, ensure_ascii=False)
    return json.dumps(all_schemas()[what](), indent=2, ensure_ascii=False)
