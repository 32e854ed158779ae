"""The documents of benchmark runs, and their JSON Schemas."""

from __future__ import annotations

import json
from collections.abc import Iterable

from tpudeploy.features.benchmark import runfile
from tpudeploy.features.benchmark.run import Run
from tpudeploy.schemas.documents import formatted, whole_document
from tpudeploy.schemas.schema_of import TEXT, As, Schema


def replica_runs(runs: Iterable[Run]) -> dict[str, object]:
    """Return the whole run of each replica that `bench` measured."""
    return {"format": "tpudeploy.replica-runs/1", "runs": [json.loads(runfile.dumps(run)) for run in runs]}


def run() -> Schema:
    """Return the schema of a benchmark run as it is stored, and as `bench --json` prints it."""
    return whole_document("tpudeploy run", Run, adds={"format": {"const": runfile.FORMAT}, "hash": TEXT})


DOCUMENTS = {
    "run": run,
    "replica-runs": formatted(
        "replica-runs",
        {"runs": tuple[Run, ...]},
        printed_as={Run: As(adds={"format": {"const": "tpudeploy.run/1"}, "hash": TEXT})},
    ),
}
