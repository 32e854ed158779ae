"""Images that cannot be pulled, and containers that docker does not start."""

from __future__ import annotations

import re

from tpudeploy.boot_log.settings import EngineFacts
from tpudeploy.boot_log.signatures.row import Signature


def _conflict(match: re.Match[str], _: EngineFacts) -> str:
    name = match["name"]
    removed = f"`docker rm -f {name}`" if name else "`docker rm -f NAME`"
    return (
        f"Remove the old container on the machine: {removed}. tpudeploy removes its own before it starts one, so this "
        "one was started by hand."
    )


ROWS: tuple[Signature, ...] = (
    Signature(
        name="pull-rate-limit",
        what="The registry limits how often this address may pull",
        pattern=(
            r"toomanyrequests|You have reached your (?:unauthenticated )?pull rate limit"
            r"|[Pp]ull rate limit reached"
        ),
        remedy=(
            "Wait (Docker Hub counts over some hours), or copy the image to an Artifact Registry of your project and "
            "name that copy in serving.image: pulls from it are not limited this way."
        ),
        # https://docs.docker.com/docker-hub/usage/pulls/
        example=(
            "Error response from daemon: toomanyrequests: You have reached your pull rate limit. You may increase the "
            "limit by authenticating and upgrading: https://www.docker.com/increase-rate-limit"
        ),
    ),
    Signature(
        name="registry-denied",
        what="The VM's service account may not read this image",
        pattern=(
            r"artifactregistry\.repositories\.downloadArtifacts"
            r"|denied: Unauthenticated request|pkg\.dev\S*[^\n]*: (?:denied|unauthorized)"
            r"|pkg\.dev\S*[^\n]*failed to (?:authorize|fetch oauth token)[^\n]*40[13]"
        ),
        remedy=(
            "Grant the VM's service account roles/artifactregistry.reader on the repository, and check project, "
            "location and repository in serving.image: the registry answers the same if they don't exist."
        ),
        # https://cloud.google.com/artifact-registry/docs/troubleshooting
        example=(
            'denied: Permission "artifactregistry.repositories.downloadArtifacts" denied on resource '
            '"projects/my-project/locations/us/repositories/my-repo" (or it may not exist)'
        ),
    ),
    Signature(
        name="image-missing",
        what="The registry has no such image, or does not show it",
        pattern=(
            r"manifest unknown|manifest for \S+ not found|repository does not exist|name unknown: "
            r"|pull access denied for|requested access to the resource is denied|invalid reference format"
        ),
        remedy=(
            "See serving.image for its name and tag. Where the tag is right, what it was pinned to is gone from the "
            "registry: `tpudeploy plan --pin` looks up what it is now. A private repository answers the same: the "
            "machine has credentials for Artifact Registry alone."
        ),
        example="The image cannot be pulled: manifest for vllm/vllm-tpu@sha256:0123 not found: manifest unknown",
    ),
    Signature(
        name="image-wrong-machine",
        what="The image was not built for this machine, or has no vLLM",
        pattern=(
            r"no matching manifest for \S+|requested image's platform \(linux/(?!amd64)"
            r"|exec format error|Failed to infer device type"
            r"|libcuda\.so\.1: cannot open|executable file not found in \$PATH"
        ),
        remedy="Name an image of vLLM for TPU and linux/amd64 in serving.image, such as vllm/vllm-tpu.",
        # vLLM config/device.py
        example=(
            "RuntimeError: Failed to infer device type, please set the environment variable `VLLM_LOGGING_LEVEL=DEBUG` "
            "to turn on verbose logging to help debug the issue."
        ),
    ),
    Signature(
        name="container-name-conflict",
        what="A container of the same name exists already",
        pattern=r"Conflict\. The container name \"/?(?P<name>[\w.-]*)\" is already in use",
        remedy=_conflict,
        # moby daemon/names.go
        example=(
            'docker: Error response from daemon: Conflict. The container name "/vllm" is already in use by container '
            '"5f0c1a3b". You have to remove (or rename) that container to be able to reuse that name.'
        ),
    ),
    Signature(
        name="docker-not-running",
        what="The machine's docker does not answer",
        pattern=r"Cannot connect to the Docker daemon|The docker daemon did not answer within",
        remedy=(
            "Read `journalctl -u docker` on the machine. A full disk is a frequent cause (`df -h`): raise "
            "tpu.boot_disk_size then; this needs a new slice."
        ),
        # moby client/errors.go
        example="Cannot connect to the Docker daemon at unix:///var/run/docker.sock. Is the docker daemon running?",
    ),
    Signature(
        name="registry-unreachable",
        what="The machine does not reach the image's registry",
        pattern=(
            r"(?:Head|Get) \"https://[^\"]*/v2/[^\"]*\": .*"
            r"(?:no such host|i/o timeout|network is unreachable|Client\.Timeout|request canceled|context deadline"
            r"|connection refused|TLS handshake timeout)"
            r"|dial tcp: lookup \S+"
        ),
        remedy=(
            "Give the machine a way out: an external address, or Cloud NAT in its network. Private Google Access "
            "suffices for an image in Artifact Registry."
        ),
        example=(
            'Error response from daemon: Get "https://registry-1.docker.io/v2/": net/http: request canceled while '
            "waiting for connection (Client.Timeout exceeded while awaiting headers)"
        ),
    ),
    Signature(
        name="pull-too-slow",
        what="Pulling the image took longer than the profile allows",
        pattern=r"The image could not be pulled: it took longer than (?P<seconds>\d+) s",
        remedy="Raise health.timeout, or copy the image to an Artifact Registry in the slice's region.",
        example=(
            "failed: The image could not be pulled: it took longer than 600 s, twice. A larger health.timeout gives it "
            "longer"
        ),
    ),
)
