"""Check `serving.image`: it can run on TPU, it has a server, and its tag does not move."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tpudeploy.catalog.engines import names_release
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.config import codes
from tpudeploy.config.diagnose import quoted
from tpudeploy.config.nodes import Path
from tpudeploy.config.rules.violation import Violation, is_set
from tpudeploy.config.schema import ProfileSpec

_IMAGE: Path = ("serving", "image")
_TAG = re.compile(r":([\w.-]+)$")
# A full date (nightly-20260801, 2026-08-01), a commit, or a digest written as a tag.
_DATE = re.compile(r"(?:^|[-_.])20[0-9]{2}[-_.]?(?:0[1-9]|1[0-2])[-_.]?(?:0[1-9]|[12][0-9]|3[01])(?:[-_.T]|$)")
_COMMIT = re.compile(r"(?:^|[-_.])(?=[0-9a-f]*[0-9])(?=[0-9a-f]*[a-f])[0-9a-f]{7,64}(?:[-_.]|$)")
# Builds of vLLM for other hardware: their names as vLLM and the hardware's vendors publish them.
_OTHER_HARDWARE = re.compile(
    r"(?:^|/)(?:vllm-(?:openai|cpu|rocm|xpu|neuron|gaudi|hpu|spyre|ascend|nvidia|cuda)(?:[-_.][\w.-]*)?|rocm/vllm[\w-]*)$"
)
_OFFICIAL = re.compile(r"^(?:(?:index\.|registry-1\.)?docker\.io/|mirror\.gcr\.io/)?vllm/vllm-tpu$")
_NUMBER = re.compile(r"[0-9]+\.[0-9]+\.[0-9]+")
_USE = f"use vllm/vllm-tpu:v{VLLM_VERSION}, or an image that is built on it"
_REGISTRIES = ("docker.io/", "index.docker.io/", "registry-1.docker.io/", "mirror.gcr.io/")
# Official images of Docker Hub and bases for GPUs, as people try them first; an unknown name is not refused.
_WITHOUT_SERVER = frozenset(
    [
        "ubuntu",
        "debian",
        "alpine",
        "busybox",
        "fedora",
        "centos",
        "rockylinux",
        "amazonlinux",
        "hello-world",
        "python",
        "node",
        "golang",
        "rust",
        "ruby",
        "php",
        "openjdk",
        "eclipse-temurin",
        "nginx",
        "httpd",
        "caddy",
        "traefik",
        "haproxy",
        "redis",
        "postgres",
        "mysql",
        "mongo",
        "tensorflow/tensorflow",
        "pytorch/pytorch",
        "nvidia/cuda",
        "continuumio/anaconda3",
        "continuumio/miniconda3",
        "jupyter/base-notebook",
        "jupyter/minimal-notebook",
        "jupyter/scipy-notebook",
        "jupyter/tensorflow-notebook",
    ]
)
# By the last part of their names, which mirrors keep.
_OTHER_SERVERS: Mapping[str, str] = {
    "ollama": "Ollama",
    "text-generation-inference": "Text Generation Inference",
    "sglang": "SGLang",
    "sglang-jax": "SGLang",
    "llama.cpp": "llama.cpp",
    "tritonserver": "Triton",
    "jetstream-pytorch": "JetStream",
    "jetstream-maxtext": "JetStream",
    "xla": "PyTorch/XLA",
    "maxtext": "MaxText",
}


def other_hardware(profile: ProfileSpec) -> Iterator[Violation]:
    """Report an image for a GPU or a CPU, which would find no device on a TPU machine."""
    name = _TAG.sub("", profile.serving.image.partition("@")[0])
    if _OTHER_HARDWARE.search(name):
        message = f"{quoted(name)} is not built for TPU: vLLM in it would find no device"
        yield Violation(codes.NOT_A_TPU_IMAGE, _IMAGE, message, _USE)


def no_server(profile: ProfileSpec) -> Iterator[Violation]:
    """Report a well-known image without vLLM. `serving.setup` may install it, and an unknown name may have it."""
    name = _TAG.sub("", profile.serving.image.partition("@")[0])
    for beginning in (*_REGISTRIES, "library/"):
        name = name.removeprefix(beginning)
    other = _OTHER_SERVERS.get(name.rpartition("/")[2], "")
    if is_set(profile, ("serving", "setup")) or (not other and name not in _WITHOUT_SERVER):
        return
    message = f"{quoted(name)} is {other}, not vLLM for TPU" if other else f"{quoted(name)} has no vLLM in it"
    yield Violation(codes.NOT_A_TPU_IMAGE, _IMAGE, message, _USE)


def floating_tag(profile: ProfileSpec) -> Iterator[Violation]:
    """Report a tag without release, date or commit, which its publisher may move: `latest`, `gemma4`, `v0.32`."""
    image = profile.serving.image
    tag = _TAG.search(image)
    if not image or "@" in image or (tag and _is_fixed(tag[1])):
        return
    message = f"{quoted(tag[1])} is a floating tag" if tag else "Without a tag, the image is `latest`, a floating tag"
    hint = "name a release or a digest; otherwise the first apply pins it in tpudeploy.lock.json"
    yield Violation(codes.FLOATING_IMAGE, _IMAGE, message, hint, is_warning=True)


def release_without_v(profile: ProfileSpec) -> Iterator[Violation]:
    """Report vLLM's own image with the number of a release alone. Source: its tags on Docker Hub, from v0.11.1 on."""
    image = profile.serving.image
    tag = _TAG.search(image)
    if tag and _OFFICIAL.search(image[: tag.start()]) and _NUMBER.fullmatch(tag[1]):
        message = f"vllm/vllm-tpu has no tag {quoted(tag[1])}: releases are tagged with a v"
        hint = f"write {image[: tag.start()]}:v{tag[1]}"
        yield Violation(codes.RELEASE_WITHOUT_V, _IMAGE, message, hint, is_warning=True)


def _is_fixed(tag: str) -> bool:
    return any(pattern.search(tag) for pattern in (_DATE, _COMMIT)) or names_release(tag)
