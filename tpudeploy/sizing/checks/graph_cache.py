"""A compile cache that is gone when the container, or the machine, is."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Explanation
from tpudeploy.node.compile_cache import inside
from tpudeploy.node.mounts import host_path, is_emptied
from tpudeploy.sizing.finding import error, warning

CODE = "TPU2115"
EXPLANATION = Explanation(
    "The compile cache does not outlive the server",
    "A warm start reuses the graphs of an earlier one. In the container they are lost with it, at every change of "
    "the profile; in memory (/dev/shm) they are lost when the machine reboots. The default volume keeps both "
    "caches on disk: leave out serving.volumes and serving.xla_cache_path, or put the cache in a volume of your "
    "own. With serving.xla_cache_bucket the startup script copies the cache between the bucket and a folder of the "
    "machine, which therefore has to be in a volume.",
    "serving: {volumes: {/var/lib/tpudeploy: /data}, xla_cache_path: /data/xla}",
)

_PATH = "serving.xla_cache_path"


def find(deployment: Deployment) -> Iterator[Diagnostic]:
    cache = inside(deployment.container)
    host = host_path(deployment.container, cache)
    if "serving.xla_cache_bucket" in deployment.attributes:
        if host is None:
            message = f"The compile cache {cache} is in no volume: nothing can be moved between it and its bucket."
            hint = "Put it in a volume, or leave out serving.volumes."
            yield error(deployment, CODE, message, path="serving.xla_cache_bucket", hint=hint)
        return
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
    return host_path(deployment.container, inside(deployment.container)) is not None
