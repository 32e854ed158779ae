"""Weights kept in the machine's memory."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.node.mounts import SHARED_MEMORY, host_path, hub_home, is_memory
from tpudeploy.sizing.finding import error, gib, model_of, warning
from tpudeploy.sizing.starts import checkpoint_bytes

CODE = "TPU2116"
EXPLANATION = Explanation(
    "HF_HOME is in memory",
    "The folder /dev/shm is memory: the checkpoint occupies it for as long as the machine runs, is downloaded again "
    "after every reboot, and must fit in the half of memory that Linux gives /dev/shm. A container's own /dev/shm, "
    "without a volume, has 64 MiB unless shm_size says more. The default volume keeps the weights on disk: leave "
    "out HF_HOME and serving.volumes.",
    "serving: {env: {HF_HOME: null}}",
)

_GIB = 1024**3
_PATH = "serving.env.HF_HOME"
_HINT = "Leave it out: the default volume keeps the weights on disk."


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    model, container = model_of(deployment), deployment.container
    home = hub_home(container)
    host = host_path(container, home)
    if deployment.mirror is not None:  # of a mirror, the weights lie in a folder of the disk
        return
    if is_memory(container, home):
        yield _in_memory(deployment, host, None if model is None else checkpoint_bytes(model))
    elif home.rstrip("/") == SHARED_MEMORY:
        message = f"HF_HOME {home} is no memory here: {host} on the machine's disk is mounted over it."
        yield warning(deployment, CODE, message, path=_PATH, hint=_HINT)


def _in_memory(of: Deployment, host: str | None, takes: int | None) -> Diagnostic:
    """Return the problem. `host` is None for the container's own memory, `takes` for weights of an unknown size."""
    home, ram = host or hub_home(of.container), of.accelerator.host_ram_gib * _GIB
    if host is None and of.container.shm_size is None:
        weights = "the weights take more" if takes is None else f"the weights take {gib(takes)}"
        message = f"HF_HOME {home} is in no volume: docker gives it 64 MiB, and {weights}."
        return error(of, CODE, message, path=_PATH, hint=_HINT)
    weights = "as much as the weights" if takes is None else gib(takes)
    says = f"HF_HOME on {home} takes {weights} of the machine's {gib(ram)} of memory"
    if host is not None and takes is not None and takes > ram // 2:
        return error(of, CODE, f"{says}, and /dev/shm holds half of that.", path=_PATH, hint=_HINT)
    return warning(of, CODE, f"{says}, and is gone at a reboot.", path=_PATH, hint=_HINT)
