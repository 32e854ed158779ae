"""What the weights weigh at least decides without engine, data or family: nothing that misses by that bound is valid."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import CommandLine, Open


@pytest.fixture
def at(cli: Open) -> CommandLine:
    opened: CommandLine = cli()
    opened.write()
    return opened


def errors_of(at: CommandLine, *settings: str) -> dict[str, Any]:
    words = [word for setting in settings for word in ("--set", setting)]
    (profile,) = json.loads(at.run("validate", "gemma.yaml", "-format", "json", *words).out)["profiles"]
    return {each["code"]: each for each in profile["diagnostics"] if each["severity"] == "error"}


def size(at: CommandLine, *settings: str) -> dict[str, Any]:
    words = [word for setting in settings for word in ("--set", setting)]
    tree: dict[str, Any] = json.loads(at.run("size", "gemma.yaml", "-json", *words).out)
    return tree


@pytest.mark.parametrize(
    ("settings", "arithmetic"),
    [
        (("model.id=deepseek-ai/DeepSeek-R1",), "671.0 billion parameters"),
        (("model.id=moonshotai/Kimi-K2-Instruct", "tpu.type=v6e-8"), "1,026.4 billion parameters"),
        (
            ("model.id=acme/GLM-4.5", "tpu.type=v6e-8"),
            "352.8 billion parameters as Transformers' class counts them x 16 bits",
        ),
        (
            ("model.id=acme/Llama-3.3-70B-Instruct-AWQ", "serving.env.MODEL_IMPL_TYPE=vllm"),
            "70.6 billion parameters x 4 bits",
        ),
        (
            (
                "model.id=meta-llama/Llama-3.3-70B-Instruct",
                "tpu.type=v6e-4",
                "serving.image=vllm/vllm-torchtpu:v0.29.0",
            ),
            "70.6 billion parameters",
        ),
    ],
)
def test_a_model_that_misses_by_the_bound_is_refused_with_the_arithmetic(
    at: CommandLine, settings: tuple[str, ...], arithmetic: str
) -> None:
    refusal = errors_of(at, *settings)["TPU2101"]
    assert arithmetic in refusal["message"]
    assert "may hold them" in refusal["hint"] or "No slice" in refusal["hint"]
    tree = size(at, *settings)
    assert tree["fits"] is False
    assert tree["weights_bytes_at_least"] > 0
    words = [word for setting in settings for word in ("--set", setting)]
    assert at.run("plan", "gemma.yaml", *words).code != 0


@pytest.mark.parametrize(
    "settings",
    [
        ("model.id=acme/Qwen3-8B-AWQ", "serving.env.MODEL_IMPL_TYPE=vllm"),
        ("model.id=acme/GLM-4.5", "tpu.type=v6e-32", "serving.args.pipeline_parallel_size=8"),
        ("model.id=somebody/Something-405B",),
    ],
)
def test_what_may_fit_or_is_told_by_a_name_alone_is_not_refused(at: CommandLine, settings: tuple[str, ...]) -> None:
    assert "TPU2101" not in errors_of(at, *settings)
    assert size(at, *settings)["fits"] is None


def test_shapes_of_a_config_that_no_family_covers_are_enough(at: CommandLine) -> None:
    config = {
        "architectures": ["NewForCausalLM"],
        "hidden_size": 8192,
        "num_hidden_layers": 120,
        "vocab_size": 128_000,
        "intermediate_size": 32_768,
    }
    at.write(json.dumps(config), "config.json")
    settings = ("model.id=somebody/new", f"model.config={at.folder / 'config.json'}", "tpu.type=v6e-1")
    assert "by its config.json x 16 bits" in errors_of(at, *settings)["TPU2101"]["message"]
    assert size(at, *settings)["fits"] is False


def test_a_number_in_a_name_is_a_warning_that_says_what_settles_it(at: CommandLine) -> None:
    out = at.run("validate", "gemma.yaml", "--set", "model.id=somebody/Something-405B")
    assert out.code == 0
    assert "By its name, somebody/Something-405B has 405 billion parameters" in out.words
