"""Check `serving.image`: it can run on TPU, it has a server, and its tag does not move."""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from tpudeploy.catalog import releases
from tpudeploy.catalog.engines import names_release
from tpudeploy.catalog.flags import VLLM_VERSION
from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem, quoted, warning
from tpudeploy.config.nodes import MapNode, Path, find
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.domain.engine import EngineKind

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
_SETUP: Path = ("serving", "setup")
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


def other_hardware(root: MapNode) -> Iterator[Diagnostic]:
    """Report an image for a GPU or a CPU, which would find no device on a TPU machine."""
    image = look.value(root, _IMAGE, str) or ""
    name = _TAG.sub("", image.partition("@")[0])
    if _OTHER_HARDWARE.search(name):
        message = f"{quoted(name)} is not built for TPU: vLLM in it would find no device"
        hint = f"use vllm/vllm-tpu:v{VLLM_VERSION}, or an image that is built on it"
        yield problem(codes.NOT_A_TPU_IMAGE, message, look.at(root, _IMAGE), path=_IMAGE, hint=hint)


def no_server(root: MapNode) -> Iterator[Diagnostic]:
    """Report a well-known image without vLLM. `serving.setup` may install it, and an unknown name may have it."""
    image = look.value(root, _IMAGE, str) or ""
    name = _TAG.sub("", image.partition("@")[0])
    for beginning in (*_REGISTRIES, "library/"):
        name = name.removeprefix(beginning)
    if not image or find(root, _SETUP) is not None:
        return
    other = _OTHER_SERVERS.get(name.rpartition("/")[2], "")
    if not other and name not in _WITHOUT_SERVER:
        return
    message = f"{quoted(name)} is {other}, not vLLM for TPU" if other else f"{quoted(name)} has no vLLM in it"
    hint = f"use vllm/vllm-tpu:v{VLLM_VERSION}, or an image that is built on it"
    yield problem(codes.NOT_A_TPU_IMAGE, message, look.at(root, _IMAGE), path=_IMAGE, hint=hint)


def floating_tag(root: MapNode) -> Iterator[Diagnostic]:
    """Report a tag without release, date or commit, which its publisher may move: `latest`, `gemma4`, `v0.32`."""
    image = look.value(root, _IMAGE, str) or ""
    tag = _TAG.search(image)
    if not image or "@" in image or (tag and _is_fixed(tag[1])):
        return
    message = f"{quoted(tag[1])} is a floating tag" if tag else "Without a tag, the image is `latest`, a floating tag"
    hint = "name a release or a digest; otherwise the first apply pins it in tpudeploy.lock.json"
    yield warning(codes.FLOATING_IMAGE, message, look.at(root, _IMAGE), path=_IMAGE, hint=hint)


def release_without_v(root: MapNode) -> Iterator[Diagnostic]:
    """Report vLLM's own image with the number of a release alone. Source: its tags on Docker Hub, from v0.11.1 on."""
    image = look.value(root, _IMAGE, str) or ""
    tag = _TAG.search(image)
    if tag and _OFFICIAL.search(image[: tag.start()]) and _NUMBER.fullmatch(tag[1]):
        message = f"vllm/vllm-tpu has no tag {quoted(tag[1])}: releases are tagged with a v"
        hint = f"write {image[: tag.start()]}:v{tag[1]}"
        yield warning(codes.RELEASE_WITHOUT_V, message, look.at(root, _IMAGE), path=_IMAGE, hint=hint)


def severity_of_tables(root: MapNode) -> Severity:
    """Return the severity of what the tables refuse: only a warning unless the image has one of their releases."""
    return Severity.ERROR if unlike_tables(root) == "" else Severity.WARNING


def unlike_tables(root: MapNode) -> str:
    """Return what the image has instead of the release of the tables, as a clause, or "" if it has that one."""
    engine = look.engine_of(root)
    if engine.kind is EngineKind.TORCHTPU:
        return f"the image has another engine, {engine.kind}"
    if engine.release is None:
        return "which release the image has is not known"
    return "" if engine.release in releases.VERSIONS else f"the image has vLLM {engine.release}"


def _is_fixed(tag: str) -> bool:
    return any(pattern.search(tag) for pattern in (_DATE, _COMMIT)) or names_release(tag)
