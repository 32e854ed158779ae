"""What cannot be sized is still checked, and what was not looked at is named; nothing fits that would not start."""

from __future__ import annotations

import json
from typing import Any

import pytest
from command_line import CommandLine, Open

LORA = ("--set", "serving.args.enable_lora=true")
UNKNOWN = ("--set", "model.id=somebody/something")


@pytest.fixture
def at(cli: Open) -> CommandLine:
    opened: CommandLine = cli()
    opened.write()
    return opened


def validate(at: CommandLine, *settings: str) -> dict[str, Any]:
    result = at.run("validate", "gemma.yaml", "-format", "json", *settings)
    (profile,) = json.loads(result.out)["profiles"]
    return {each["code"]: each for each in profile["diagnostics"]}


def size(at: CommandLine, *settings: str) -> dict[str, Any]:
    tree: dict[str, Any] = json.loads(at.run("size", "gemma.yaml", "-json", *settings).out)
    return tree


def test_lora_leaves_every_figure_as_a_bound(at: CommandLine) -> None:
    plain, bound = size(at), size(at, *LORA)
    assert bound["fits"] is None
    assert bound["at_least"]["weights_bytes_per_chip"] == plain["weights_bytes_per_chip"]
    result = at.run("size", "gemma.yaml", *LORA)
    assert "weights at least 8.97 GiB" in result.words
    assert "requests at most" in result.words
    assert "whether the weights and one request fit in HBM together with that" in result.words
    assert " fits" not in result.out.splitlines()[0]
    assert "at least 8.97 GiB of weights" in at.run("plan", "gemma.yaml", *LORA).words


def test_lora_on_a_model_that_is_too_large_is_an_error(at: CommandLine) -> None:
    settings = (*LORA, "--set", "model.id=google/gemma-4-31B-it")
    assert validate(at, *settings)["TPU2101"]["severity"] == "error"
    assert "at least 58.3 GiB" in validate(at, *settings)["TPU2101"]["message"]
    assert size(at, *settings)["fits"] is False


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (("serving.max_model_len=262144",), "TPU2104"),
        (("serving.max_num_batched_tokens=128", "serving.max_num_seqs=256"), "TPU2110"),
        (("serving.block_size=16",), "TPU2111"),
        (("serving.padding_gap=512",), "TPU2112"),
        (("serving.kv_cache_dtype=fp8",), "TPU2108"),
        (("tpu.boot_disk_size=9GiB",), "TPU2117"),
        (("model.id=google/gemma-3-1b-it", "tpu.type=v6e-8"), "TPU2106"),
    ],
)
def test_checks_that_need_no_bytes_run_with_adapters_too(at: CommandLine, settings: tuple[str, ...], code: str) -> None:
    assert code in validate(at, *LORA, *(word for setting in settings for word in ("--set", setting)))


@pytest.mark.parametrize(
    ("settings", "code"),
    [
        (("serving.max_num_batched_tokens=128", "serving.max_num_seqs=256"), "TPU2110"),
        (("serving.max_num_batched_tokens=4096", "serving.padding_gap=512"), "TPU2112"),
        (("serving.max_num_batched_tokens=4096", "serving.block_size=16"), "TPU2111"),
        (("tpu.boot_disk_size=20GiB",), "TPU2117"),
        (("serving.volumes={}", "serving.env.HF_HOME=/dev/shm"), "TPU2116"),
    ],
)
def test_checks_that_need_no_model_run_for_an_unknown_one(
    at: CommandLine, settings: tuple[str, ...], code: str
) -> None:
    assert code in validate(at, *UNKNOWN, *(word for setting in settings for word in ("--set", setting)))


def test_validate_and_size_name_what_was_not_looked_at(at: CommandLine) -> None:
    for command in ("validate", "size"):
        result = at.run(command, "gemma.yaml", *UNKNOWN)
        assert result.code == 0
        for words in ("fit in HBM", "compiled programs have room", "weights fit on the boot disk"):
            assert f"whether {words}" in result.words or f"whether the {words}" in result.words or words in result.words
        assert "TPU2120" in result.all
        assert "model.config" in result.words


@pytest.mark.parametrize(
    "settings",
    [
        (
            "tpu.type=v5litepod-1",
            "serving.hbm_utilization=0.95",
            "serving.max_num_batched_tokens=4096",
            "serving.image=vllm/vllm-tpu:v0.31.0",
        ),
        ("serving.max_model_len=262144",),
        ("serving.max_num_batched_tokens=128", "serving.max_num_seqs=256"),
        ("serving.args.disable_chunked_mm_input=true", "serving.max_num_batched_tokens=2048"),
        ("tpu.boot_disk_size=9GiB",),
    ],
    ids=["programs", "model's length", "step", "video", "disk"],
)
def test_size_never_says_fits_of_a_boot_that_validate_says_will_die(at: CommandLine, settings: tuple[str, ...]) -> None:
    words = [word for setting in settings for word in ("--set", setting)]
    errors = {code for code, each in validate(at, *words).items() if each["severity"] == "error"}
    assert errors
    tree = size(at, *words)
    assert tree["fits"] is False
    assert set(tree["would_not_start"]) == errors
    head = at.run("size", "gemma.yaml", *words).out.splitlines()[0]
    assert f"would not start: {', '.join(tree['would_not_start'])}" in head


def test_doctor_does_not_promise_a_disk_for_weights_of_an_unknown_size(at: CommandLine) -> None:
    result = at.run("doctor", "gemma.yaml", *UNKNOWN)
    assert "hold image, weights and caches" not in result.words
    assert "The size of the weights is not known" in result.words


@pytest.mark.parametrize(
    "image",
    [
        "vllm/vllm-torchtpu:nightly",
        "vllm/vllm-torchtpu:v0.29.0",
        f"us-docker.pkg.dev/my-project/vllm/vllm-torchtpu@sha256:{'a' * 64}",
    ],
)
def test_another_engine_is_not_sized_as_if_it_were_ours(at: CommandLine, image: str) -> None:
    settings = ("--set", f"serving.image={image}")
    warning = validate(at, *settings)["TPU2120"]
    assert (warning["severity"], warning["path"]) == ("warning", "serving.image")
    assert "another engine than the tpu-inference" in warning["message"]
    assert "whether the weights and one request of max_model_len fit in HBM" in warning["message"]
    assert (size(at, *settings)["fits"], size(at, *settings)["at_least"]) == (None, None)
    planned = at.run("plan", "gemma.yaml", *settings)
    assert "another engine" in planned.words
    assert "tokens of KV cache" not in planned.words
    assert "at once" not in planned.words


def test_weights_above_the_memory_of_a_slice_do_not_fit_whatever_the_engine(at: CommandLine) -> None:
    image = ("--set", "serving.image=vllm/vllm-torchtpu:v0.29.0")
    large = size(at, *image, "--set", "model.id=Qwen/Qwen3-32B")
    assert (large["fits"], large["would_not_start"]) == (False, ["TPU2101"])
    assert large["weights_bytes_at_least"] // 2**30 == 61
    refused = at.run("validate", "gemma.yaml", *image, "--set", "model.id=Qwen/Qwen3-32B")
    assert refused.code == 1
    assert "61.0 GiB or more (32.8 billion parameters), and v6e-1 has 28.7 GiB" in refused.words
    assert "v6e-4 is the smallest slice of v6e that may hold them" in refused.words
    assert size(at, *image, "--set", "model.id=Qwen/Qwen3-32B", "--set", "tpu.type=v6e-4")["fits"] is None


def test_images_of_our_engine_by_other_names_are_sized(at: CommandLine) -> None:
    for image in ("vllm/vllm-tpu:v0.32.0", "us-docker.pkg.dev/my-project/vllm/torchtpu-notes:v0.32.0"):
        assert size(at, "--set", f"serving.image={image}")["fits"] is True
