"""A boot disk that is too small for image, weights and caches."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.node.mounts import hub_home, is_memory
from tpudeploy.sizing.finding import error, gib, model_of, warning
from tpudeploy.sizing.starts import checkpoint_bytes

CODE = "TPU2117"
EXPLANATION = Explanation(
    "The boot disk is too small",
    "It holds the system, the container image (about 20 GiB unpacked), the weights and both caches. A disk that "
    "fills up while weights are downloaded stops the boot after many minutes. Leave the size out for a disk that "
    "is large enough.",
    "tpu: {boot_disk_size: 200GiB}",
)

_GIB = 1024**3
# The system and its docker, a vllm-tpu image unpacked, compiled graphs (170 to 200 MB measured). Estimates, rounded up.
_BESIDE_BYTES = (10 + 20 + 1) * _GIB


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    model = model_of(deployment)
    is_elsewhere = deployment.mirror is None and is_memory(deployment.container, hub_home(deployment.container))
    weights = 0 if is_elsewhere or model is None else checkpoint_bytes(model)
    disk = deployment.boot_disk_gib * _GIB
    needs = weights + _BESIDE_BYTES
    says = f"A boot disk of {deployment.boot_disk_gib} GiB"
    hint = f"boot_disk_size: {-(-needs // _GIB)}GiB is enough for one version of each."
    parts = "image, weights and caches"
    if model is None and not is_elsewhere:  # their size is not known: what is left is a lower bound
        hint = f"Add the size of the weights to {-(-needs // _GIB)} GiB, or leave boot_disk_size out."
        parts = "even without the weights, system, image and caches"
    if disk < weights:
        message = f"{says} cannot hold the {gib(weights)} of weights."
        yield error(deployment, CODE, message, path="tpu.boot_disk_size", hint=hint)
    elif disk < needs:
        message = f"{says} is short: {parts} take about {gib(needs)}."
        yield warning(deployment, CODE, message, path="tpu.boot_disk_size", hint=hint)
