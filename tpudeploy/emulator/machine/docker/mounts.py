"""Where a container's path lies on the node: the deepest volume that holds it."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path, PurePosixPath

from tpudeploy.emulator.machine.root import Root


def on_node(inside: str, volumes: Sequence[str], root: Root) -> Path | None:
    """None where no volume holds it, or one that is not the node's."""
    path = PurePosixPath(inside)
    mounts = [(host, PurePosixPath(at.partition(":")[0])) for host, _, at in (v.partition(":") for v in volumes)]
    holding = [(host, at) for host, at in mounts if path.is_relative_to(at)]
    if not holding:
        return None
    host, at = max(holding, key=lambda mount: len(mount[1].parts))
    found = Path(host) / path.relative_to(at)
    return found if root.holds(found) else None
