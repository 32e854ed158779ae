"""No external address, and something to fetch that Google's own network does not have."""

from __future__ import annotations

import re
from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.sizing.finding import warning

CODE = "TPU2119"
EXPLANATION = Explanation(
    "The machine cannot reach the image or the weights",
    "Without an external address a machine reaches only Google's services (Private Google Access): Artifact "
    "Registry and Cloud Storage, but neither Docker Hub nor the Hugging Face hub. Copy the image to Artifact "
    "Registry and the weights to a bucket (model.mirror), name a mirror of the hub (HF_ENDPOINT), or add Cloud NAT "
    "to the subnetwork; with Cloud NAT, ignore this warning.",
    'serving: {image: us-docker.pkg.dev/my-project/vllm/vllm-tpu:v0.32.0}\nmodel: {mirror: "gs://my-bucket/weights"}',
)

_GOOGLE = re.compile(r"([a-z0-9-]+\.)*(pkg\.dev|gcr\.io)/")


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    if deployment.network.external_ip:
        return
    hint = "It needs Cloud NAT, or a copy in Google's own services."
    if not _GOOGLE.match(deployment.container.image):
        image = deployment.attributes["serving.image"]
        message = f"Without an external address the machine cannot reach the registry of {image}."
        yield warning(deployment, CODE, message, path="serving.image", hint=hint)
    is_here = deployment.mirror is not None or deployment.model_id.startswith(("gs://", "/"))
    if not is_here and "HF_ENDPOINT" not in deployment.container.environment:
        message = f"Without an external address the machine cannot reach the hub for {deployment.model_id}."
        yield warning(deployment, CODE, message, path="model.id", hint=hint)
