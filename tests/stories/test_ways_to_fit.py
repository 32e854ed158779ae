"""A profile that does not fit is told what would: utilization, then length, then a slice, each tried and computed."""

from __future__ import annotations

import json
import re
from typing import Any

import pytest
from command_line import PROFILE, CommandLine, Open


@pytest.fixture
def at(cli: Open) -> CommandLine:
    opened: CommandLine = cli()
    opened.write()
    return opened


def problem(at: CommandLine, *settings: str) -> dict[str, Any]:
    """Return the one reason why the weights, or a request, do not fit."""
    result = at.run("validate", "gemma.yaml", "-format", "json", *_sets(*settings))
    (profile,) = json.loads(result.out)["profiles"]
    (diagnostic,) = [each for each in profile["diagnostics"] if each["code"] in {"TPU2101", "TPU2102", "TPU2103"}]
    tree: dict[str, Any] = diagnostic
    return tree


def size(at: CommandLine, *settings: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(at.run("size", "gemma.yaml", "-json", *_sets(*settings)).out)
    return tree


def _sets(*settings: str) -> list[str]:
    return [word for setting in settings for word in ("--set", setting)]


def ways(hint: str) -> list[tuple[list[str], int]]:
    """Return each way of a hint as settings for `--set`, with the tokens that it promises."""
    offers = re.findall(r"((?:\w[\w.]*: [\w.-]+(?: with |, )?)+) is enough: ([\d,]+) tokens", hint)
    return [
        (
            [
                f"{key if '.' in key else f'serving.{key}'}={value}"
                for key, value in re.findall(r"(\w[\w.]*): ([\w.-]+)", settings)
            ],
            int(tokens.replace(",", "")),
        )
        for settings, tokens in offers
    ]


CASES = {
    "utilization alone": (("serving.hbm_utilization=0.2",), ["serving.hbm_utilization", "tpu.type"]),
    "no cache": (("serving.hbm_utilization=0.2871",), ["serving.hbm_utilization", "tpu.type"]),
    "a length too": (
        ("serving.max_model_len=131072", "serving.hbm_utilization=0.32"),
        ["serving.hbm_utilization", "serving.max_model_len", "tpu.type"],
    ),
    "a slice alone": (("model.id=google/gemma-4-31B-it",), ["tpu.type"]),
    "utilization where one named every slice too small": (
        ("model.id=meta-llama/Llama-3.1-70B", "tpu.type=v6e-8", "serving.hbm_utilization=0.5"),
        ["serving.hbm_utilization"],
    ),
    "a slice, where the profile writes the split of the smaller one": (
        ("model.id=google/gemma-4-31B-it", "serving.tensor_parallel_size=1"),
        ["tpu.type"],
    ),
    "the same chips, shared": (
        (
            "model.id=google/gemma-4-31B-it",
            "tpu.type=v6e-8",
            "serving.tensor_parallel_size=1",
            "serving.data_parallel_size=8",
        ),
        ["serving.tensor_parallel_size"],
    ),
}


@pytest.mark.parametrize("case", list(CASES))
def test_each_way_that_is_named_does_and_holds_what_it_promises(at: CommandLine, case: str) -> None:
    settings, first_keys = CASES[case]
    offers = ways(problem(at, *settings)["hint"])
    assert [changes[0].split("=")[0] for changes, _ in offers] == first_keys
    for changes, tokens in offers:
        tree = size(at, *settings, *changes)
        assert tree["fits"] is True, tree["diagnostics"]
        assert tree["kv_cache_tokens"] == tokens
        assert not [each for each in tree["diagnostics"] if each["code"] == "TPU2105"]


@pytest.mark.parametrize("case", ["utilization alone", "a length too"])
def test_a_hundredth_less_utilization_is_not_enough(at: CommandLine, case: str) -> None:
    settings, _ = CASES[case]
    (change, *_), _ = ways(problem(at, *settings)["hint"])[0]
    key, value = change.split("=")
    assert size(at, *settings, f"{key}={float(value) - 0.01:.2f}")["fits"] is False


def test_what_was_tried_before_the_slice_is_told(at: CommandLine) -> None:
    hint = problem(at, "model.id=google/gemma-4-31B-it")["hint"]
    assert hint.startswith("Neither another hbm_utilization nor a shorter max_model_len is enough. tpu.type: v6e-4")


def test_no_slice_holds_it_is_said_only_where_none_does(at: CommandLine) -> None:
    big = {
        "architectures": ["LlamaForCausalLM"],
        "num_hidden_layers": 3_200,
        "hidden_size": 16_384,
        "num_attention_heads": 128,
        "num_key_value_heads": 8,
        "intermediate_size": 53_248,
        "vocab_size": 128_256,
        "max_position_embeddings": 131_072,
    }
    (at.folder / "big.json").write_text(json.dumps(big), "utf-8")
    at.write(PROFILE.replace("id: google/gemma-4-E2B-it", "id: acme/big\n  config: big.json"))
    diagnostic = problem(at, "tpu.type=v6e-8")
    assert "No slice fits it: on tpu7x-4x4x4 the weights alone take" in diagnostic["hint"]
