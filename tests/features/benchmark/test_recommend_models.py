"""Several models for one workload: a row each, the cheapest within the limits first, and what is not known said so."""

from __future__ import annotations

import json
from collections.abc import Callable, Mapping
from functools import partial
from pathlib import Path
from typing import Any

import pytest
import yaml
from command_line import Result, command
from measured_files import imported_run, measured_cell

import tpudeploy as td

Run = Callable[..., Result]
PROFILES = Path(__file__).parents[3] / "profiles"
WORKLOAD = ("--users", "64", "--context", "4096", "--output", "256")


@pytest.fixture
def run(tmp_path: Path, capfd: pytest.CaptureFixture[str]) -> Run:
    """A command in a folder of its own, with two profiles in a folder of it."""
    folder = tmp_path / "models"
    folder.mkdir()
    for name in ("gemma4-e2b-v6e1", "qwen3-235b-v6e32"):
        (folder / f"{name}.yaml").write_text((PROFILES / f"{name}.yaml").read_text())
    return partial(command, tmp_path, capfd)


def _models(result: Result) -> list[Mapping[str, Any]]:
    return list(json.loads(result.out)["models"])


def test_a_folder_and_model_ids_are_rows_of_one_table_the_cheapest_first(run: Run) -> None:
    result = run("recommend", "models", "--model", "Qwen/Qwen3-8B", "--model", "Qwen/Qwen3-32B", *WORKLOAD)
    assert result.code == 0, result.all
    lines = [line.split()[0] for line in result.out.splitlines() if " modeled" in line]
    assert [line.rstrip(",") for line in lines] == [
        "google/gemma-4-E2B-it",
        "Qwen/Qwen3-8B",
        "Qwen/Qwen3-32B",
        "Qwen/Qwen3-235B-A22B-Instruct-2507",
    ]
    assert "models/qwen3-235b-v6e32.yaml" in result.out
    assert "List prices: v5e 2026, v6e 2026-08" in result.out
    rows = _models(run("recommend", "models", "--model", "Qwen/Qwen3-8B", *WORKLOAD, "--json"))
    prices = [row["best"]["usd_per_month"] for row in rows]
    assert prices == sorted(prices)


def test_the_profile_of_each_row_is_one_that_serves_it(run: Run, tmp_path: Path) -> None:
    models = ("Qwen/Qwen3-8B", "Qwen/Qwen3-235B-A22B-Instruct-2507")
    words = [word for model in models for word in ("--model", model)]
    for row in _models(run("recommend", *words, *WORKLOAD, "--json")):
        (tmp_path / "best.yaml").write_text(row["profile"])
        assert run("validate", "best.yaml").code == 0, row["model"]
        sized = json.loads(run("size", "best.yaml", "--json").out)
        assert sized["fits"], row["model"]
        assert sized["kv_cache_tokens"] >= 64 * (4096 + 256)


def test_one_model_id_alone_gets_a_profile_that_ends_by_itself(run: Run) -> None:
    result = run("recommend", "--model", "Qwen/Qwen3-8B", *WORKLOAD)
    profile = yaml.safe_load(result.out)
    assert profile["model"]["id"] == "Qwen/Qwen3-8B"
    assert profile["lifecycle"]["end"]
    assert "Unknown: the time to the first token, tokens per second." in result.err


def test_what_nothing_serves_comes_last_with_the_reason(run: Run) -> None:
    result = run("recommend", "models", "--model", "some/body", *WORKLOAD, "--budget", "5000")
    assert result.code == 0, result.all
    last = [line for line in result.out.splitlines() if line.startswith("Not ")]
    assert last[0].startswith("Not served: Qwen/Qwen3-235B-A22B-Instruct-2507, models/qwen3-235b-v6e32.yaml: ")
    assert "the weights do not fit (v6e-1, v6e-4, v6e-8, v6e-16 and" in last[0]
    assert last[1].startswith("Not known to be served: some/body: the catalogue does not know some/body")
    refused = run("recommend", "models", "--model", "some/body", *WORKLOAD, "--budget", "1")
    assert refused.code == 13
    assert "No model is served within these limits." in refused.out


def test_a_limit_that_nobody_measured_is_not_called_kept(run: Run, tmp_path: Path) -> None:
    result = run("recommend", "models", "--model", "Qwen/Qwen3-8B", *WORKLOAD, "--ttft", "2s")
    assert "keeps to 2 s is unknown for these models: measure it." in result.out
    imported_run(run, tmp_path, measured_cell(64, 20.0, 400.0), slice_type="v6e-4", usd="5.00")
    rows = _models(run("recommend", "models", "--model", "Qwen/Qwen3-8B", *WORKLOAD, "--ttft", "2s", "--json"))
    best = rows[0]["best"]
    assert (rows[0]["model"], best["basis"], best["is_checked"]) == ("google/gemma-4-E2B-it", "measured", True)
    assert rows[1]["best"]["is_checked"] is False
    assert best["usd_per_month"] > rows[1]["best"]["usd_per_month"], "what is known to keep the limit comes first"
    # 20 requests/s of 256 tokens for $5 an hour.
    assert best["usd_per_million_output_tokens"] == pytest.approx(5 / (20 * 256 * 3600) * 1e6)
    assert best["source"].startswith(f"run {best['run']}, imported from cell0.json ")


def test_an_invalid_file_and_a_server_of_embeddings_are_rows_with_reasons(run: Run, tmp_path: Path) -> None:
    (tmp_path / "broken.yaml").write_text("version: 1\nname: broken\nmodel: {id: 7}\n")
    old = (PROFILES / "gemma4-e2b-v6e1.yaml").read_text().replace("type: v6e-1", "type: v4-8")
    (tmp_path / "old.yaml").write_text(old)
    embeds = ("--model", "Qwen/Qwen3-Embedding-0.6B")
    result = run("recommend", "models", "broken.yaml", *embeds, *WORKLOAD)
    assert result.code == 0, result.all
    assert "Not known to be served: broken.yaml: " in result.out
    assert "Not known to be served: Qwen/Qwen3-Embedding-0.6B: " in result.out
    assert "completes no prompts" in result.out
    supported = run("recommend", "models", "old.yaml", *WORKLOAD)
    assert 'Not known to be served: old.yaml: "v4-8" is not supported: ' in supported.out


@pytest.mark.parametrize(
    "model_id", ["", "gemma", "a/b/c", "../../etc", "a/b\nfoo: 1", "a/b #c", "-x/y", "gs://bucket/weights"]
)
def test_a_text_that_is_no_model_id_is_refused(run: Run, model_id: str) -> None:
    result = run("recommend", "models", f"--model={model_id}", *WORKLOAD)
    assert result.code == 1
    assert "is not a model id" in result.err


def test_two_profiles_of_one_name_are_told_apart_by_their_files(run: Run, tmp_path: Path) -> None:
    text = (PROFILES / "gemma4-e2b-v6e1.yaml").read_text()
    (tmp_path / "models" / "copy.yaml").write_text(text)
    rows = _models(run("recommend", "models", *WORKLOAD, "--json"))
    assert sorted(row["file"].rpartition("/")[2] for row in rows if row["name"] == rows[0]["name"]) == [
        "copy.yaml",
        "gemma4-e2b-v6e1.yaml",
    ]


def test_values_on_top_are_those_of_all_models(run: Run) -> None:
    words = ("--set", "placement.zones=[us-east5-a]", "--set", "placement.provisioning=[spot]")
    rows = _models(run("recommend", "models", "--model", "Qwen/Qwen3-8B", *WORKLOAD, *words, "--json"))
    assert [yaml.safe_load(row["profile"])["placement"]["zones"] for row in rows] == [["us-east5-a"]] * 3


def test_a_file_or_a_model_that_is_named_twice_is_one_row(run: Run) -> None:
    twice = ("models/gemma4-e2b-v6e1.yaml", "./models//gemma4-e2b-v6e1.yaml", "--model", "a/b", "--model", "a/b")
    assert len(_models(run("recommend", *twice, *WORKLOAD, "--json"))) == 2


@pytest.mark.parametrize("value", [0, -5, float("nan"), float("inf")])
@pytest.mark.parametrize("name", ["users", "context", "output", "ttft_seconds", "usd_per_month"])
def test_a_program_that_asks_for_an_impossible_workload_is_told_which_number(
    tmp_path: Path, name: str, value: float
) -> None:
    workload: dict[str, Any] = {"users": 4, "context": 128, "output": 128, name: value}
    with td.Workspace.open(tmp_path) as workspace, pytest.raises(td.errors.UsageError, match=f"`{name}` is .*positive"):
        workspace.recommend_models(models="Qwen/Qwen3-8B", **workload)


def test_a_run_has_its_model(run: Run) -> None:
    assert "which has its model" in run("recommend", "--run", "2026", "--model", "a/b").err


def test_nothing_to_recommend_for_is_said(run: Run, tmp_path: Path) -> None:
    (tmp_path / "empty").mkdir()
    assert "There is no profile in `empty`" in run("recommend", "empty", *WORKLOAD).err
    assert "needs a profile or a model" in run("recommend", *WORKLOAD).err
    assert "none is named" in run("recommend", "--model", "a/b", "-f", "over.yaml", *WORKLOAD).err
