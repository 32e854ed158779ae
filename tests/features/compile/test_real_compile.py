"""The engine itself, where TPU_ENGINE_PYTHON names a Python with vllm-tpu: it answers as it was recorded."""

from __future__ import annotations

import json
import os
from pathlib import Path

import pytest
from command_line import Open
from features.compile.record import DATA, PROFILE

TPU_ENGINE_PYTHON = os.environ.get("TPU_ENGINE_PYTHON", "")

pytestmark = [
    pytest.mark.long,
    pytest.mark.skipif(not TPU_ENGINE_PYTHON, reason="TPU_ENGINE_PYTHON names no Python that has vllm-tpu"),
]


def test_the_engine_compiles_a_tiny_model_as_it_was_recorded(cli: Open) -> None:
    at = cli(nodes="simulated")
    (at.folder / "tiny.yaml").write_text(PROFILE, encoding="utf-8")
    (at.folder / "config.json").write_bytes((DATA / "config.json").read_bytes())
    result = at.run("compile", "tiny.yaml", "--python", TPU_ENGINE_PYTHON)
    assert result.code == 0, result.all
    (path,) = Path(at.folder).glob("compiled/*/example-tiny-qwen3-v6e-1.json")
    graphs = {(each["graph"], each["function"]): each for each in json.loads(path.read_text("utf-8"))["graphs"]}
    rows = [json.loads(line) for line in (DATA / "compiled.jsonl").read_text("utf-8").splitlines()]
    for row in rows:
        if "temp_bytes" in row and path.parent.name == "0.32.0-0.0.48":
            assert graphs[row["graph"], row["function"]]["temp_bytes"] == row["temp_bytes"]
