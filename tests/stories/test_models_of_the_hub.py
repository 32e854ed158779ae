"""A model that the catalogue does not know is looked up on the hub once, and its shapes are locked with its commit."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from command_line import CommandLine, Open

LLAMA = {
    "architectures": ["LlamaForCausalLM"],
    "hidden_size": 4096,
    "num_hidden_layers": 32,
    "num_attention_heads": 32,
    "num_key_value_heads": 8,
    "head_dim": 128,
    "intermediate_size": 14336,
    "vocab_size": 128256,
    "max_position_embeddings": 131072,
    "torch_dtype": "bfloat16",
    "id2label": {str(number): "x" * 100 for number in range(200)},
}
TUNE, LARGE = "acme/support-tune", "acme/giant"
SCENARIO: dict[str, Any] = {
    "project": {
        "checkpoints": {
            TUNE: {"config": LLAMA, "tensors": {"BF16": 8_030_261_248}},
            LARGE: {"tensors": {"F8_E4M3": 700_000_000_000, "F32": 1_000_000}},
        }
    }
}


@pytest.fixture
def at(cli: Open) -> CommandLine:
    opened: CommandLine = cli(**SCENARIO)
    opened.write()
    return opened


def model(name: str) -> tuple[str, str]:
    return "--set", f"model.id={name}"


def size(at: CommandLine, *words: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(at.run("size", "gemma.yaml", "-json", *words).out)
    return tree


def lock(at: CommandLine) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads((at.folder / "tpudeploy.lock.json").read_text(encoding="utf-8"))
    return tree


def test_an_unknown_id_is_sized_by_what_the_hub_says_and_offline_as_the_lock_file_says(at: CommandLine) -> None:
    assert size(at, *model(TUNE))["fits"] is None
    planned = at.run("plan", "gemma.yaml", "-pin", *model(TUNE))
    assert "14.96 GiB of weights" in planned.words
    (checkpoint,) = lock(at)["checkpoints"].values()
    assert "id2label" not in checkpoint["config"]
    tree = size(at, *model(TUNE))  # the hub is not asked again: `size` has no network
    assert (tree["fits"], tree["model"]) == (True, TUNE)
    assert "TPU2120" not in at.run("validate", "gemma.yaml", *model(TUNE)).words


def test_what_the_hub_lists_as_too_large_is_refused_before_anything_is_requested(at: CommandLine) -> None:
    refused = at.run("plan", "gemma.yaml", *model(LARGE))
    assert refused.code != 0
    assert "700.0 billion elements in its checkpoint, by the hub's index" in refused.words


def test_an_apply_locks_what_the_hub_said_with_the_commit(at: CommandLine) -> None:
    at.run("apply", "gemma.yaml", "-auto-approve", *model(TUNE))
    assert list(lock(at)["checkpoints"]) == [lock(at)["models"][TUNE]]


def test_a_model_that_the_catalogue_knows_is_not_looked_up(at: CommandLine) -> None:
    at.run("plan", "gemma.yaml", "-pin")
    assert "checkpoints" not in lock(at)


@pytest.mark.parametrize(
    "row",
    [
        '{"config": 3, "tensors": {}}',
        '{"config": "{}", "tensors": {"BF16": -1}}',
        '{"config": "{}", "tensors": {"BF16": true}}',
        '"text"',
    ],
)
def test_an_impossible_checkpoint_in_the_lock_file_is_refused_by_its_commit(at: CommandLine, row: str) -> None:
    text = f'{{"format": "tpudeploy.lock/1", "checkpoints": {{"{"a" * 40}": {row}}}}}'
    Path(at.folder / "tpudeploy.lock.json").write_text(text, encoding="utf-8")
    refused = at.run("plan", "gemma.yaml")
    assert refused.code != 0
    assert "a" * 40 in refused.words
