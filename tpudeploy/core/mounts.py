"""Where on the machine a path of the container is kept."""

from __future__ import annotations

from tpudeploy.domain.deployment import Container

_HUB_HOME = "/root/.cache/huggingface"
_MEMORY = ("/dev/shm", "/run", "/tmp")  # noqa: S108 - host paths to warn of: memory, or emptied at every boot


def host_path(container: Container, inside: str) -> str | None:
    """The host's path for `inside`, from the deepest volume that holds it; None where no volume does."""
    path = inside.rstrip("/")
    mounts = [(host, at.rstrip("/")) for host, at in container.volumes]
    holding = [(host, at) for host, at in mounts if path == at or path.startswith(f"{at}/")]
    if not holding:
        return None
    host, at = max(holding, key=lambda mount: len(mount[1]))
    return host.rstrip("/") + path[len(at) :]


def is_memory(host: str) -> bool:
    """Whether what is there is gone after a reboot."""
    return any(host == place or host.startswith(f"{place}/") for place in _MEMORY)


def hub_home(container: Container) -> str:
    """Where the hub's client keeps its downloads."""
    return container.environment.get("HF_HOME", _HUB_HOME)
