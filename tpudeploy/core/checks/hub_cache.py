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
every reboot, and must fit in the half of memory that Linux gives /dev/shm. The default volume keeps it on disk:

  leave HF_HOME and serving.volumes out"""

_GIB = 1024**3
_PATH = "serving.env.HF_HOME"


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    host = host_path(deployment.container, hub_home(deployment.container))
    budget = sized(deployment)
    if host is None or not is_memory(host) or budget is None:
        return
    takes, ram = checkpoint_bytes(budget.model), deployment.accelerator.host_ram_gib * _GIB
    says = f"HF_HOME on {host} takes {gib(takes)} of the machine's {gib(ram)} of memory"
    hint = "Leave it out: the default volume keeps the weights on disk."
    if takes > ram // 2:
        yield error(deployment, CODE, f"{says}, and /dev/shm holds half of that.", path=_PATH, hint=hint)
    else:
        yield warning(deployment, CODE, f"{says}, and is gone at a reboot.", path=_PATH, hint=hint)
