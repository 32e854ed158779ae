"""Registries of names that move: a container registry's tags, and the revisions of models on Hugging Face's hub.

Neither asks for credentials.
"""

from __future__ import annotations

import json
import re
from dataclasses import replace
from hashlib import sha1, sha256
from typing import Any

from tpudeploy.domain.pins import EMULATED
from tpudeploy.emulator import wire
from tpudeploy.emulator.cloud import Cloud
from tpudeploy.emulator.digests import image_digest
from tpudeploy.emulator.http_server import Reply
from tpudeploy.emulator.wire import ApiCall

_DOCKER_HUB = "registry-1.docker.io"
_DIGEST_HEADER = "Docker-Content-Digest"
_COMMIT = re.compile(r"[0-9a-f]{40}")


def head_manifest(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the digest of an image. Raise ApiError where it does not exist. The scenario uses a profile's names."""
    host, repository, reference = (call.query[key] for key in ("host", "repository", "reference"))
    place = "" if host == _DOCKER_HUB else f"{host}/"
    is_digest = reference.startswith("sha256:")
    name = f"{place}{repository}{'@' if is_digest else ':'}{reference}"
    images = cloud.scenario.project.images
    if images is not None and name not in images:
        raise wire.refuse(5, f"manifest unknown: {name}")
    return {_DIGEST_HEADER: reference if is_digest else image_digest(name, cloud.current_version(name))}


def get_manifest(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the manifest of an image for one platform, which names its configuration."""
    head = head_manifest(cloud, call)
    digest = f"sha256:{sha256(_configuration(cloud, head[_DIGEST_HEADER])).hexdigest()}"
    return {"schemaVersion": 2, "config": {"digest": digest}, **head}


def get_blob(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the configuration of this digest. Raise ApiError for any other blob: there are no layers."""
    for image in ("", *(_digest_of(cloud, name) for name in cloud.scenario.project.labels)):
        text = _configuration(cloud, image)
        if call.query["digest"] == f"sha256:{sha256(text).hexdigest()}":
            return dict(json.loads(text))
    raise wire.refuse(5, "blob unknown to registry")


def _digest_of(cloud: Cloud, name: str) -> str:
    return name.partition("@")[2] or image_digest(name, cloud.current_version(name))


def _configuration(cloud: Cloud, digest: str) -> bytes:
    """Return the configuration of an image, with the labels that the scenario gives it."""
    rows = cloud.scenario.project.labels.items()
    labels = next((labels for name, labels in rows if _digest_of(cloud, name) == digest), {})
    return json.dumps({"architecture": "amd64", "os": "linux", "config": {"Labels": dict(labels)}}).encode()


def pull_refusal(cloud: Cloud, image: str) -> str:
    """Return docker's words for an image that it cannot pull without credentials, or "".

    An image is there by its tag, or by the digest of a tag. To strangers, private and absent repositories look alike.
    """
    images = cloud.scenario.project.images
    if images is None or image in images:
        return ""
    repository = image.partition("@")[0] if "@" in image else image.rpartition(":")[0]
    tags = [name for name in images if name.rpartition(":")[0] == repository and "@" not in name]
    if any(image == f"{repository}@{image_digest(tag, cloud.current_version(tag))}" for tag in tags):
        return ""
    if any(name.startswith((f"{repository}:", f"{repository}@")) for name in images):
        return f"manifest for {image} not found: manifest unknown: manifest unknown"
    return (
        f"pull access denied for {repository}, repository does not exist or may require 'docker login': "
        "denied: requested access to the resource is denied"
    )


def add_digest_header(reply: Reply) -> Reply:
    """Return the reply with the digest in a header, since the reply to a HEAD has no body."""
    body = reply.body if isinstance(reply.body, dict) else {}
    return replace(reply, headers={_DIGEST_HEADER: body[_DIGEST_HEADER]}) if _DIGEST_HEADER in body else reply


def get_model(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the commit that a revision of a model is now. Raise ApiError for a model that does not exist."""
    model, revision = call.query["model"], call.query["revision"]
    models = cloud.scenario.project.models
    if models is not None and model not in models:
        raise wire.refuse(16, "Invalid username or password.")  # to strangers, private and absent models look alike
    commit = sha1(f"{cloud.current_version(model)} {revision}".encode(), usedforsecurity=False).hexdigest()
    emulated = EMULATED + commit[len(EMULATED) :]
    tensors = cloud.scenario.project.checkpoints.get(model, {}).get("tensors")
    summary = {"safetensors": {"parameters": tensors, "total": sum(tensors.values())}} if tensors else {}
    return {"id": model, "sha": revision if _COMMIT.fullmatch(revision) else emulated, **summary}


def get_config(cloud: Cloud, call: ApiCall) -> dict[str, Any]:
    """Return the config.json of a model. Raise ApiError for a model that the scenario gives none."""
    config = cloud.scenario.project.checkpoints.get(call.query["model"], {}).get("config")
    if config is None:
        raise wire.refuse(5, "Entry not found")
    return dict(config)
