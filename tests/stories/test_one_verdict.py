"""Text, JSON, exit code and library say the same of one thing, and two facts on one screen agree."""

from __future__ import annotations

import json

import pytest
from command_line import PROFILE, Open

import tpudeploy as td

V5E = PROFILE.replace("v6e-1", "v5litepod-1").replace("us-east5-a, us-east5-b, europe-west4-a", "us-west4-a")
V5E = V5E.replace("v0.32.0", "v0.31.0")  # whose largest program is three times as large


def with_utilization(share: float) -> str:
    return V5E.replace("max_model_len: 16384", f"max_model_len: 16384\n  hbm_utilization: {share}")


@pytest.mark.parametrize(
    ("text", "fits", "words", "code"),
    [
        pytest.param(with_utilization(0.92), True, "TP 1 fits", 0, id="booted"),
        pytest.param(with_utilization(0.95), None, "may run out of memory while it compiles", 0, id="on the edge"),
        pytest.param(with_utilization(0.98), False, "would not start: TPU2105", 13, id="no room for programs"),
        pytest.param(V5E.replace("E2B", "31B"), False, "does not fit: 58.25 GiB of weights a chip", 13, id="too large"),
    ],
)
def test_size_validate_plan_and_the_library_give_one_verdict(
    cli: Open, text: str, fits: bool | None, words: str, code: int
) -> None:
    at = cli()
    profile = at.write(text)
    sized, document, planned = at.run("size", profile), at.run("size", "-json", profile), at.run("plan", profile)
    assert words in sized.words
    assert ("TP 1 fits" in sized.words) is (fits is True)
    assert ("short: compiling may run out of memory" in sized.words) is (fits is None)
    assert (sized.code, document.code) == (code, code)
    assert json.loads(document.out)["fits"] is fits
    assert (at.run("validate", profile).code == 0) is (planned.code == 0) is (fits is not False)
    assert ("Cold start about" in planned.words) is (fits is not False)
    (goal,) = json.loads(at.run("plan", "-json", profile).out)["goals"]
    assert goal["size"]["fits"] is fits
    result = td.size(at.folder / profile)
    assert (result.budget.fits, result.exit_code) == (fits, code)


def changed(old: str, new: str) -> str:
    assert old in PROFILE
    return PROFILE.replace(old, new)


def more(text: str) -> str:
    return f"{PROFILE}{text}\n"


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (
            more("  max_run_duration: 5m"),
            "Google ends the run after 5m 0s, before the server serves: a cold start takes",
        ),
        (
            more("health: {timeout: 1s}"),
            "health.timeout is over after 1s, before the server serves: a cold start takes",
        ),
        (more("  valid_until: 5s"), "a request would lapse before Google answers it"),
        (changed("max_model_len", "port: 22\n  max_model_len"), "Port 22 of the machine belongs to ssh"),
        (changed("max_model_len", "port: 53\n  max_model_len"), "Port 53 of the machine belongs to its name resolver"),
        (changed("name: gemma", "name: m"), 'docker refuses "m" as the name of a container'),
        (changed("google/gemma-4-E2B-it", "gpt-4o"), '"gpt-4o" is a model of OpenAI\'s API'),
        (changed("google/gemma-4-E2B-it", "openai/o3-mini"), "is a model of OpenAI's API"),
        (changed("google/gemma-4-E2B-it", "claude-opus-4"), "is a model of Anthropic's API"),
        (changed("google/gemma-4-E2B-it", "google/gemini-2.5-pro"), "is a model of Google's API"),
        (changed("google/gemma-4-E2B-it", "bartowski/gemma-2-9b-it-GGUF"), "has its weights as GGUF"),
        (changed("google/gemma-4-E2B-it", "black-forest-labs/FLUX.1-dev"), "is a diffusion model"),
        (
            changed("max_model_len", "env: {JAX_PLATFORMS: cpu}\n  max_model_len"),
            'JAX_PLATFORMS "cpu" hides the TPU from the engine',
        ),
        (
            changed(
                "vllm/vllm-tpu:v0.32.0",
                "us-central1-docker.pkg.dev/cloud-tpu-v2-images/pytorch-xla-releases/xla:nightly",
            ),
            "is PyTorch/XLA, not vLLM for TPU",
        ),
        (changed("vllm/vllm-tpu:v0.32.0", "ubuntu:24.04"), '"ubuntu" has no vLLM in it'),
        (changed("vllm/vllm-tpu:v0.32.0", "docker.io/library/python:3.12"), '"python" has no vLLM in it'),
        (changed("vllm/vllm-tpu:v0.32.0", "nginx"), '"nginx" has no vLLM in it'),
        (changed("vllm/vllm-tpu:v0.32.0", "ollama/ollama:0.5.1"), '"ollama/ollama" is Ollama, not vLLM for TPU'),
        (changed("vllm/vllm-tpu:v0.32.0", "lmsysorg/sglang:v0.4.0"), "is SGLang, not vLLM for TPU"),
        (
            changed("vllm/vllm-tpu:v0.32.0", "ghcr.io/huggingface/text-generation-inference:3.0.0"),
            "is Text Generation Inference, not vLLM for TPU",
        ),
        (changed("vllm/vllm-tpu:v0.32.0", "vllm/vllm-openai:v0.32.0"), "is not built for TPU"),
    ],
)
def test_what_cannot_serve_is_refused_on_its_line_before_anything_is_bought(cli: Open, text: str, words: str) -> None:
    at = cli()
    profile = at.write(text)
    result = at.run("validate", profile)
    assert result.code == 1, result.all
    assert words in result.words
    assert "/gemma.yaml:" in result.words
    assert "^" in result.all
    assert at.run("apply", "-auto-approve", profile).code != 0
    assert not at.emulator.billed()


@pytest.mark.parametrize(
    ("text", "words"),
    [
        (more("health: {timeout: 5m}"), "health.timeout is over after 5m 0s, before the server serves"),
        (changed("max_model_len", "port: 25\n  max_model_len"), "Port 25 is one of those below 1024"),
        (changed("max_model_len", "port: 8471\n  max_model_len"), "Port 8471 is that of the TPU runtime"),
        (changed("google/gemma-4-E2B-it", "llama3"), '"llama3" has no organization'),
        (changed("google/gemma-4-E2B-it", "/models/gemma"), 'No volume of the container has "/models/gemma"'),
    ],
)
def test_what_may_not_serve_is_a_warning_on_its_line(cli: Open, text: str, words: str) -> None:
    at = cli()
    result = at.run("validate", at.write(text))
    assert result.code == 0, result.all
    assert words in result.words
    assert "^" in result.all


@pytest.mark.parametrize(
    "text",
    [
        changed("name: gemma", "name: m").replace("max_model_len", "container_name: vllm-m\n  max_model_len"),
        changed("max_model_len", "port: 80\n  max_model_len"),
        changed("google/gemma-4-E2B-it", "gpt2"),
        changed("google/gemma-4-E2B-it", "openai/gpt-oss-20b"),
        changed("google/gemma-4-E2B-it", "/models/gemma").replace(
            "max_model_len", "volumes: {/data: /models}\n  max_model_len"
        ),
        changed("vllm/vllm-tpu:v0.32.0", "us-docker.pkg.dev/my-project/team/ubuntu:v0.32.0"),
        changed("vllm/vllm-tpu:v0.32.0", "python:3.12.1\n  setup: [pip install vllm-tpu]"),
    ],
)
def test_what_is_unknown_or_sound_is_not_refused(cli: Open, text: str) -> None:
    at = cli()
    result = at.run("validate", at.write(text))
    assert result.code == 0, result.all
    assert not any(code in result.all for code in ("TPU1342", "TPU1344", "TPU1345", "TPU2006", "TPU2005"))


@pytest.mark.parametrize("size", ["16g", "16384m", "17179869184", "10gb", "16GiB", "1.5G", '"16 g"'])
def test_shm_size_is_what_docker_takes(cli: Open, size: str) -> None:
    at = cli()
    profile = at.write(changed("max_model_len", f"shm_size: {size}\n  max_model_len"))
    assert at.run("validate", profile).code == 0
    command = at.run("render", profile, "docker").out.replace("'", "")
    assert f"--shm-size {size.strip(chr(34))}" in command.replace("\\\n", " ").replace("  ", " ")
