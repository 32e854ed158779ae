"""Where the paths of a container are stored on its machine."""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.domain.deployment import Container

SHARED_MEMORY = "/dev/shm"  # noqa: S108 - a path to warn of

_HUB_HOME = "/root/.cache/huggingface"
_MEMORY = (SHARED_MEMORY, "/run")
_EMPTIED = (*_MEMORY, "/tmp")  # noqa: S108 - a path to warn of: on disk, and emptied at every boot


def host_path(container: Container, inside: str) -> str | None:
    """Return the host's path for `inside`, by the deepest volume that contains it, or None if none does."""
    path = inside.rstrip("/")
    mounts = [(host, at.rstrip("/")) for host, at in container.volumes]
    matching = [(host, at) for host, at in mounts if path == at or path.startswith(f"{at}/")]
    if not matching:
        return None
    host, at = max(matching, key=lambda mount: len(mount[1]))
    return host.rstrip("/") + path[len(at) :]


def is_emptied(host: str) -> bool:
    """Return whether a reboot empties this path of the host."""
    return _is_under(host, _EMPTIED)


def is_memory(container: Container, inside: str) -> bool:
    """Return whether files there take memory: the machine's, or without a volume that of the container."""
    host = host_path(container, inside)
    return _is_under(inside, (SHARED_MEMORY,)) if host is None else _is_under(host, _MEMORY)


def hub_home(container: Container) -> str:
    """Return the folder of the hub client's downloads."""
    return container.environment.get("HF_HOME", _HUB_HOME)


def _is_under(path: str, places: Iterable[str]) -> bool:
    return any(path == place or path.startswith(f"{place}/") for place in places)
