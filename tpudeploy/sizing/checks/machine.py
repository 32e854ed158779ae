"""Checks of the machine's disk and memory: where the compile cache and the weights are kept, and whether they fit."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.node.compile_cache import inside
from tpudeploy.node.mounts import SHARED_MEMORY, host_path, hub_home, is_emptied, is_memory
from tpudeploy.sizing.checks.check import check_for, error, gib, model_of, warning
from tpudeploy.sizing.weights import checkpoint_bytes

_GIB = 1024**3
# The system and its docker, a vllm-tpu image unpacked, compiled graphs (170 to 200 MB measured). Estimates, rounded up.
_BESIDE_BYTES = (10 + 20 + 1) * _GIB
_HOME = "serving.env.HF_HOME"
_HOME_HINT = "Leave it out: the default volume keeps the weights on disk."


@check_for(
    "TPU2115",
    "The compile cache does not outlive the server",
    "A warm start reuses the graphs of an earlier one. In the container they are lost with it, at every change of"
    " the profile; in memory (/dev/shm) they are lost when the machine reboots. The default volume keeps both "
    "caches on disk: leave out serving.volumes and serving.xla_cache_path, or put the cache in a volume of your "
    "own. With serving.xla_cache_bucket, the startup script copies the cache between the bucket and a folder of "
    "the machine, so the folder must be in a volume.",
    "serving: {volumes: {/var/lib/tpudeploy: /data}, xla_cache_path: /data/xla}",
)
def graph_cache(deployment: Deployment) -> Iterator[Diagnostic]:
    cache = inside(deployment.container)
    host = host_path(deployment.container, cache)
    if "serving.xla_cache_bucket" in deployment.attributes:
        if host is None:
            message = f"The compile cache {cache} is not in a volume, so it cannot be copied to and from its bucket."
            hint = "Put it in a volume, or leave out serving.volumes."
            yield error(deployment, message, path="serving.xla_cache_bucket", hint=hint)
        return
    if host is None:
        message = f"The compile cache {cache} is not in a volume: it is lost with the container."
    elif is_emptied(host):
        message = f"The compile cache {cache} is in {host} on the machine: it is lost when the machine reboots."
    else:
        return
    path = "serving.xla_cache_path" if "serving.xla_cache_path" in deployment.origins else "serving.volumes"
    yield warning(deployment, message, path=path, hint="Put it in a volume on the machine's disk.")


def cache_outlives_container(deployment: Deployment) -> bool:
    """Return whether the cache is on the machine, be it in memory: a change in place reboots nothing."""
    return host_path(deployment.container, inside(deployment.container)) is not None


@check_for(
    "TPU2116",
    "HF_HOME is in memory",
    "The folder /dev/shm is memory. The checkpoint occupies it while the machine runs, must fit in half of the memory "
    "(Linux's limit for /dev/shm), and is downloaded again after every reboot. A container's own /dev/shm, "
    "without a volume, has 64 MiB unless shm_size says more. The default volume keeps the weights on disk: leave "
    "out HF_HOME and serving.volumes.",
    "serving: {env: {HF_HOME: null}}",
)
def hub_cache(deployment: Deployment) -> Iterator[Diagnostic]:
    model, container = model_of(deployment), deployment.container
    home = hub_home(container)
    host = host_path(container, home)
    if deployment.mirror is not None:  # the weights of a mirror are in a folder of the disk
        return
    if is_memory(container, home):
        yield _hub_cache_in_memory(deployment, host, None if model is None else checkpoint_bytes(model))
    elif home.rstrip("/") == SHARED_MEMORY:
        message = f"HF_HOME {home} is not memory here: {host} on the machine's disk is mounted over it."
        yield warning(deployment, message, path=_HOME, hint=_HOME_HINT)


def _hub_cache_in_memory(deployment: Deployment, host: str | None, size: int | None) -> Diagnostic:
    """Return the problem. Without `host` it is the container's own memory; `size` may be unknown."""
    home, ram_gib = host or hub_home(deployment.container), deployment.accelerator.host_ram_gib
    if host is None and deployment.container.shm_size is None:
        weights = "the weights take more" if size is None else f"the weights take {gib(size)}"
        message = f"HF_HOME {home} is not in a volume: docker gives it 64 MiB, and {weights}."
        return error(deployment, message, path=_HOME, hint=_HOME_HINT)
    weights = "as much as the weights" if size is None else gib(size)
    memory = "memory, whose size is not known" if ram_gib is None else f"{gib(ram_gib * _GIB)} of memory"
    usage = f"HF_HOME on {home} takes {weights} of the machine's {memory}"
    is_too_large = size is not None and ram_gib is not None and size > ram_gib * _GIB // 2
    if host is not None and is_too_large:
        return error(deployment, f"{usage}, and /dev/shm has half of that.", path=_HOME, hint=_HOME_HINT)
    return warning(deployment, f"{usage}, and is lost at a reboot.", path=_HOME, hint=_HOME_HINT)


@check_for(
    "TPU2117",
    "The boot disk is too small",
    "It holds the system, the container image (about 20 GiB unpacked), the weights and both caches. If the disk "
    "fills up during the download, the boot stops after many minutes. Without a size in the profile, tpudeploy "
    "chooses a large enough one.",
    "tpu: {boot_disk_size: 200GiB}",
)
def boot_disk(deployment: Deployment) -> Iterator[Diagnostic]:
    model, path = model_of(deployment), "tpu.boot_disk_size"
    is_elsewhere = _is_hub_in_memory(deployment)
    weights = _weights_on_disk(deployment)
    disk, needs = deployment.boot_disk_gib * _GIB, weights + _BESIDE_BYTES
    subject = f"A boot disk of {deployment.boot_disk_gib} GiB"
    hint = f"boot_disk_size: {-(-needs // _GIB)}GiB is enough for one version of each."
    parts = "image, weights and caches"
    if model is None and not is_elsewhere:  # their size is not known, so the sum of the others is a lower bound
        hint = f"Add the size of the weights to {-(-needs // _GIB)} GiB, or leave boot_disk_size out."
        parts = "even without the weights, system, image and caches"
    if disk < weights:
        yield error(deployment, f"{subject} cannot hold the {gib(weights)} of weights.", path=path, hint=hint)
    elif disk < needs:
        yield warning(deployment, f"{subject} is short: {parts} take about {gib(needs)}.", path=path, hint=hint)


def boot_disk_gib(deployment: Deployment) -> int:
    """Return the size of a boot disk that holds the system, the image, the weights as far as known, and the caches."""
    return -(-(_weights_on_disk(deployment) + _BESIDE_BYTES) // _GIB)


def _weights_on_disk(deployment: Deployment) -> int:
    model = model_of(deployment)
    return 0 if model is None or _is_hub_in_memory(deployment) else checkpoint_bytes(model)


def _is_hub_in_memory(deployment: Deployment) -> bool:
    return deployment.mirror is None and is_memory(deployment.container, hub_home(deployment.container))
