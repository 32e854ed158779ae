"""Results of another client, as files: cells of one load, and their import as a run."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any

from command_line import Result

Run = Callable[..., Result]
AIPERF = {
    "schema_version": "1.4",
    "aiperf_version": "0.13.0",
    "input_config": {"endpoint": {"model_names": ["google/gemma-4-E2B-it"]}},
    "request_count": {"unit": "requests", "avg": 2000.0},
    "benchmark_duration": {"unit": "sec", "avg": 60.0},
    "input_sequence_length": {"unit": "tokens", "avg": 4096.0},
    "output_sequence_length": {"unit": "tokens", "avg": 256.0},
}


def measured_cell(streams: int, rate: float, first_ms: float) -> Mapping[str, Any]:
    """Return what aiperf writes of a cell of 4,096 tokens in and 256 out."""
    return {
        **AIPERF,
        "input_config": {**AIPERF["input_config"], "load": [{"phase": {"concurrency": streams}}]},  # type: ignore[dict-item]  # a dict of dicts
        "effective_concurrency": {"unit": "requests", "avg": float(streams)},
        "request_count": {"unit": "requests", "avg": 60 * rate},
        "request_throughput": {"unit": "requests/sec", "avg": rate},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 256 * rate},
        "time_to_first_token": {"unit": "ms", "avg": first_ms, "p50": first_ms, "p95": first_ms * 2, "count": 200},
        "request_latency": {"unit": "ms", "avg": 1000 * streams / rate},
    }


def imported_run(
    run: Run, folder: Path, *cells: Mapping[str, Any], slice_type: str = "v6e-1", usd: str = "1.50"
) -> str:
    """Import cells as one run, and return its id."""
    names = [f"cell{n}.json" for n in range(len(cells))]
    for name, cell in zip(names, cells, strict=True):
        (folder / name).write_text(json.dumps(cell), encoding="utf-8")
    result = run("bench", "import", *names, "--type", slice_type, "--usd-per-hour", usd, "--json")
    assert result.code == 0, result.all
    return str(json.loads(result.out)["id"])
