"""Check the number of replicas against the bounds of `scale` and the on-demand floor."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.nodes import MapNode, Path
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic

_REPLICAS: Path = ("replicas",)
_MIN: Path = ("scale", "min")
_MAX: Path = ("scale", "max")
_FLOOR: Path = ("placement", "on_demand_floor")


def bounds(root: MapNode) -> Iterator[Diagnostic]:
    """Check that `scale` has room between its bounds, and that the floor has as many replicas."""
    replicas, floor = look.value(root, _REPLICAS, int), look.value(root, _FLOOR, int)
    least, most = look.value(root, _MIN, int) or 1, look.value(root, _MAX, int)
    if most is not None and least > most:
        message = f"scale.min: {least} is more than scale.max: {most}"
        yield problem(codes.REPLICA_BOUNDS, message, look.at(root, _MIN), path=_MIN, hint=f"at most {most}")
    elif most is not None and replicas is not None and not least <= replicas <= most:
        message = f"replicas: {replicas} is outside of the bounds of scale, {least} to {most}"
        hint = "replicas is the number to begin with; leave it out to begin with the least"
        yield problem(codes.REPLICA_BOUNDS, message, look.at(root, _REPLICAS), path=_REPLICAS, hint=hint)
    limit, name = (replicas or 1, "replicas") if most is None else (most, "scale.max")
    if floor is not None and floor > limit:
        message = f"placement.on_demand_floor: {floor} is more than {name}: {limit}"
        yield problem(codes.REPLICA_BOUNDS, message, look.at(root, _FLOOR), path=_FLOOR, hint=f"at most {limit}")
