"""A compile cache that is gone when the container, or the machine, is."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.core.finding import warning
from tpudeploy.core.mounts import host_path, is_emptied
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic

CODE = "TPU2115"
MEANING = """The compile cache does not outlive the server

A warm start needs the graphs of an earlier one. Inside the container they die with it, at every change of the profile;
in memory (/dev/shm) they die with the machine's next boot. The default volume keeps both caches on its disk:

  leave out serving.volumes and serving.xla_cache_path"""

_DEFAULT = "/root/.cache/vllm/xla_cache"
_PATH = "serving.xla_cache_path"


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    cache, host = _cache(deployment), host_path(deployment.container, _cache(deployment))
    if host is None:
        message = f"The compile cache {cache} is in no volume: it dies with the container."
    elif is_emptied(host):
        message = f"The compile cache {cache} is in {host} on the machine: it dies when that reboots."
    else:
        return
    path = _PATH if _PATH in deployment.origins else "serving.volumes"
    yield warning(deployment, CODE, message, path=path, hint="Put it in a volume on the machine's disk.")


def outlives_the_container(deployment: Deployment) -> bool:
    """Whether it is on the machine, be it in memory: a change in place reboots nothing."""
    return host_path(deployment.container, _cache(deployment)) is not None


def _cache(deployment: Deployment) -> str:
    return deployment.container.environment.get("VLLM_XLA_CACHE_PATH", _DEFAULT)
