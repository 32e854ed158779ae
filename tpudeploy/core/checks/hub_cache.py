"""Weights kept in the machine's memory."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import error, gib, sized, warning
from tpudeploy.core.mounts import host_path, hub_home, is_memory
from tpudeploy.core.sizing.starts import checkpoint_bytes
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic

CODE = "TPU2116"
MEANING = """HF_HOME in memory

/dev/shm is memory: the checkpoint takes its size of it for as long as the machine runs, is downloaded again after
every reboot, and must fit in the half of memory that Linux gives /dev/shm. A container's own /dev/shm, without a
volume, is 64 MiB unless shm_size says more. The default volume keeps it on disk:

  leave HF_HOME and serving.volumes out"""

_GIB = 1024**3
_PATH = "serving.env.HF_HOME"


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    container, budget = deployment.container, sized(deployment)
    home = hub_home(container)
    if budget is None or not is_memory(container, home):
        return
    host = host_path(container, home)
    takes, ram = checkpoint_bytes(budget.model), deployment.accelerator.host_ram_gib * _GIB
    says = f"HF_HOME on {host or home} takes {gib(takes)} of the machine's {gib(ram)} of memory"
    hint = "Leave it out: the default volume keeps the weights on disk."
    if host is None and container.shm_size is None:
        message = f"HF_HOME {home} is in no volume: docker gives it 64 MiB, and the weights take {gib(takes)}."
        yield error(deployment, CODE, message, path=_PATH, hint=hint)
    elif takes > ram // 2:
        yield error(deployment, CODE, f"{says}, and /dev/shm holds half of that.", path=_PATH, hint=hint)
    else:
        yield warning(deployment, CODE, f"{says}, and is gone at a reboot.", path=_PATH, hint=hint)
