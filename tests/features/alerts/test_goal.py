"""How long is too long for a first token: said by a person, or by what was measured."""

from __future__ import annotations

import json
import re
from pathlib import Path

import pytest
from command_line import PROFILE, CommandLine, Open, Result

from tpudeploy.features.alerts.watched import TTFT_EDGES


def cell(streams: int, rate: float, p95: float, context: int = 4096) -> str:
    """What another tool measured, as `bench import` takes it in: seconds and requests a second."""
    tree = {
        "schema_version": "1.4",
        "aiperf_version": "0.13.0",
        "input_config": {
            "endpoint": {"model_names": ["google/gemma-4-E2B-it"]},
            "load": [{"phase": {"concurrency": streams}}],
        },
        "request_count": {"unit": "requests", "avg": 60 * rate},
        "benchmark_duration": {"unit": "sec", "avg": 60.0},
        "input_sequence_length": {"unit": "tokens", "avg": float(context)},
        "output_sequence_length": {"unit": "tokens", "avg": 256.0},
        "effective_concurrency": {"unit": "requests", "avg": float(streams)},
        "request_throughput": {"unit": "requests/sec", "avg": rate},
        "output_token_throughput": {"unit": "tokens/sec", "avg": 256 * rate},
        "time_to_first_token": {"unit": "ms", "avg": 500 * p95, "p50": 500 * p95, "p95": 1000 * p95, "count": 200},
        "request_latency": {"unit": "ms", "avg": 1000 * streams / rate},
    }
    return json.dumps(tree)


def measured(at: CommandLine, *cells: str) -> str:
    names = [f"cell{number}.json" for number in range(len(cells))]
    for name, text in zip(names, cells, strict=True):
        Path(at.folder / name).write_text(text, encoding="utf-8")
    result = at.run("bench", "import", *names, "--type", "v6e-1", "--json")
    assert result.code == 0, result.all
    return str(json.loads(result.out)["id"])


# Throughput over response time is greatest at 16 streams: 20 / (16 / 20) beside 5 / (1 / 5) and 21 / (64 / 21).
CELLS = (cell(1, 4, 0.1), cell(16, 20, 0.3), cell(64, 21, 3.0))


def test_a_run_says_how_soon_first_tokens_are_wanted(cli: Open) -> None:
    at = cli()
    at.write()
    run = measured(at, *CELLS)
    result = at.run("alerts", "gemma.yaml", "-run", run)
    assert result.code == 0, result.all
    assert "> 0.5\n" in result.out
    first, warning = result.err.splitlines()
    assert first == f"First tokens: 0.5 s, from 1.5 times the 0.3 s of run {run} at 16 streams of 4,096 tokens."
    assert warning == f"Warning: 0.5 s is from run {run}, measured on the emulator, and says nothing about a TPU."


def test_of_several_loads_the_slowest_counts(cli: Open) -> None:
    at = cli()
    at.write()
    run = measured(at, *CELLS, cell(4, 2, 1.9, context=8192))
    assert "> 5\n" in at.run("alerts", "gemma.yaml", "-run", run).out


def refused(result: Result) -> str:
    assert result.code == 1, result.all
    return result.err


def test_a_run_of_something_else_or_of_nothing_is_an_error(cli: Open) -> None:
    at = cli()
    at.write()
    at.write(PROFILE.replace("E2B", "E4B").replace("name: gemma", "name: other"), "other.yaml")
    run = measured(at, *CELLS)
    assert "measured google/gemma-4-E2B-it, and other serves" in refused(at.run("alerts", "other.yaml", "-run", run))
    assert "There is no run" in refused(at.run("alerts", "gemma.yaml", "-run", "none"))
    for more in ("other.yaml", "-ttft=1"):
        assert "works with one profile" in refused(at.run("alerts", "gemma.yaml", more, "-run", run))


def test_a_run_without_first_tokens_is_an_error(cli: Open) -> None:
    at = cli()
    at.write()
    run = measured(at, cell(16, 20, 0.3).replace("time_to_first_token", "something_else"))
    assert "has no trusted time to the first token" in refused(at.run("alerts", "gemma.yaml", "-run", run))


def test_the_edges_are_those_of_vllms_own_histogram() -> None:
    dump = (Path(__file__).parent / "data" / "vllm_metrics_0.32.txt").read_text(encoding="utf-8")
    answer = re.findall(r'time_to_first_token_seconds_bucket\{[^}]*le="([\d.]+)"', dump)
    assert tuple(map(float, answer)) == TTFT_EDGES


@pytest.mark.parametrize("duration", ["2.5", "2500ms", "2.5s"])
def test_a_person_says_it_as_elsewhere(cli: Open, duration: str) -> None:
    at = cli()
    assert "> 2.5\n" in at.run("alerts", at.write(), "-ttft", duration).out
