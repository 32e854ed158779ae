"""The shipped profiles: each is valid, resolves, and gives a clean script; the published one gives what was published."""

from __future__ import annotations

import json
import shlex
import shutil
import subprocess
from pathlib import Path

import pytest
from real_time import DEADLINE

from tpudeploy.adapters import assets
from tpudeploy.adapters.files import FileReader
from tpudeploy.config.parse import parse
from tpudeploy.domain.deployment import Deployment, SecretRef
from tpudeploy.node import serving
from tpudeploy.planning.resolve import resolve

FOLDER = Path(__file__).parents[2] / "profiles"
NAMES = sorted(assets.profiles())

PUBLISHED = """
vllm serve google/gemma-4-26B-A4B-it --tensor-parallel-size 4 --dtype bfloat16 --kv-cache-dtype fp8
--gpu-memory-utilization 0.90 --block-size 32 --max-model-len 16384 --max-num-seqs 256 --max-num-batched-tokens 4096
--speculative-config '{"method": "ngram", "num_speculative_tokens": 3}' --enable-prefix-caching
--disable_chunked_mm_input --safetensors-load-strategy prefetch --limit-mm-per-prompt '{"image":4,"audio":1}'
--enable-auto-tool-choice --tool-call-parser gemma4 --reasoning-parser gemma4 --trust-remote-code
"""


def resolved(name: str) -> Deployment:
    profile = parse(str(FOLDER / f"{name}.yaml"), FileReader(), environment={})
    return resolve(profile, assets.templates(), project="my-project")


def as_vllm_reads(words: list[str] | tuple[str, ...]) -> dict[str, object]:
    """Flags by name: `_` is `-`, numbers and JSON by value, a flag alone is true."""
    arguments: dict[str, object] = {"": words[:3]}
    flag = ""
    for word in words[3:]:
        if word.startswith("--"):
            flag = word.replace("_", "-")
            assert flag not in arguments
            arguments[flag] = True
        else:
            assert arguments[flag] is True
            arguments[flag] = json.loads(word) if word[0] in "{0123456789" else word
    return arguments


def test_the_published_container_is_reproduced_exactly() -> None:
    container = resolved("gemma4-26b-turbo-v6e4").container
    assert (container.name, container.image) == ("vllm-gemma4", "vllm/vllm-tpu:nightly")
    assert as_vllm_reads(container.serve) == as_vllm_reads(tuple(shlex.split(PUBLISHED)))
    assert container.environment == {
        "HF_HOME": "/dev/shm",
        "VLLM_TPU_BUCKET_PADDING_GAP": "512",
        "VLLM_XLA_CACHE_PATH": "/dev/shm/vllm_cache",
    }
    assert container.secrets == (SecretRef(variable="HF_TOKEN", secret="hf-token"),)
    assert container.setup == ("pip install git+https://github.com/huggingface/transformers.git",)
    assert (container.volumes, container.shm_size) == ((("/dev/shm", "/dev/shm"),), "10gb")


def test_the_published_docker_command_is_reproduced_exactly() -> None:
    container = resolved("gemma4-26b-turbo-v6e4").container
    words = serving.docker_run(container)
    before = words[: words.index(container.image)]
    published = "docker run --name vllm-gemma4 --privileged --net=host -d -v /dev/shm:/dev/shm --shm-size 10gb"
    variables = (
        "-e HF_HOME=/dev/shm -e HF_TOKEN -e VLLM_TPU_BUCKET_PADDING_GAP=512 -e VLLM_XLA_CACHE_PATH=/dev/shm/vllm_cache"
    )
    assert sorted(before) == sorted(shlex.split(f"{published} {variables}"))


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_profile_resolves_and_holds_no_secret(name: str) -> None:
    deployment = resolved(name)
    assert deployment.candidates
    assert str(deployment.startup_script).startswith("#!/bin/bash\n")
    assert [ref.variable for ref in deployment.container.secrets] == ["HF_TOKEN"]


@pytest.mark.parametrize("name", NAMES)
def test_a_shipped_profile_explains_itself(name: str) -> None:
    text = assets.profiles()[name]
    assert text.startswith("# ")
    assert text.count("#") >= 5
    assert f"`{name}`" in (FOLDER / "README.md").read_text()


@pytest.mark.parametrize("name", NAMES)
def test_images_are_encoded_whole_or_the_chunks_are_big_enough(name: str) -> None:
    """A multimodal item (2,496 tokens of video in Gemma 4) that exceeds an unchunked step ends vLLM's start."""
    words = as_vllm_reads(resolved(name).container.serve)
    if "gemma" in name:
        assert words["--disable-chunked-mm-input"] is True
        assert int(str(words["--max-num-batched-tokens"])) >= 2496


@pytest.mark.skipif(shutil.which("shellcheck") is None, reason="needs shellcheck (Debian: apt-get install shellcheck)")
@pytest.mark.parametrize("name", NAMES)
def test_shellcheck_has_nothing_to_say_about_a_shipped_profiles_script(name: str) -> None:
    text = str(resolved(name).startup_script)
    process = subprocess.run(
        ["shellcheck", "-"], input=text, capture_output=True, text=True, timeout=DEADLINE, check=False
    )
    assert (process.returncode, process.stdout) == (0, "")


def test_only_the_published_profile_floats() -> None:
    floating = [name for name in NAMES if parse(str(FOLDER / f"{name}.yaml"), FileReader(), environment={}).warnings]
    assert floating == ["gemma4-26b-turbo-v6e4"]
