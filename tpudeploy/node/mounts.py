"""Where on the machine a path of the container is kept."""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.domain.deployment import Container

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a path to warn of

_HUB_HOME = "/root/.cache/huggingface"
_MEMORY = (SHARED_MEMORY, "/run")
_EMPTIED = (*_MEMORY, "/tmp")  # noqa: S108 - a path to warn of: on disk, and emptied at every boot


def host_path(container: Container, inside: str) -> str | None:
    """The host's path for `inside`, from the deepest volume that holds it; None where no volume does."""
    path = inside.rstrip("/")
    mounts = [(host, at.rstrip("/")) for host, at in container.volumes]
    holding = [(host, at) for host, at in mounts if path == at or path.startswith(f"{at}/")]
    if not holding:
        return None
    host, at = max(holding, key=lambda mount: len(mount[1]))
    return host.rstrip("/") + path[len(at) :]


def is_emptied(host: str) -> bool:
    """Whether what is there is gone after a reboot."""
    return _is_under(host, _EMPTIED)


def is_memory(container: Container, inside: str) -> bool:
    """Whether what the container writes there takes memory: the machine's, or in no volume the container's own."""
    host = host_path(container, inside)
    return _is_under(inside, (SHARED_MEMORY,)) if host is None else _is_under(host, _MEMORY)


def hub_home(container: Container) -> str:
    """Where the hub's client keeps its downloads."""
    return container.environment.get("HF_HOME", _HUB_HOME)


def _is_under(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
