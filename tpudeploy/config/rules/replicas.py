"""Check the number of replicas against the bounds of `scale` and the on-demand floor, and the router before them."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.catalog.routers import MACHINES, ROUTERS
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.nodes import MapNode, Path
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.router import RouterHost, RouterKind

_REPLICAS: Path = ("replicas",)
_MIN: Path = ("scale", "min")
_MAX: Path = ("scale", "max")
_FLOOR: Path = ("placement", "on_demand_floor")


def bounds(root: MapNode) -> Iterator[Diagnostic]:
    """Check that `scale` has room between its bounds, and that the floor has as many replicas."""
    replicas, floor = _count(root, _REPLICAS), _count(root, _FLOOR)
    least, most = _count(root, _MIN) or 1, _count(root, _MAX)
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


def _count(root: MapNode, path: Path) -> int | None:
    """Return the number at `path`. One below 1 counts as absent, because it is reported elsewhere."""
    number = look.value(root, path, int)
    return None if number is None or number < 1 else number


_KIND: Path = ("router", "kind")
_HOST: Path = ("router", "host")
_MACHINE: Path = ("router", "machine")
_POLICY: Path = ("router", "policy")
_ADDRESS: Path = ("router", "address")


def router_keys_of_host(root: MapNode) -> Iterator[Diagnostic]:
    is_on_vm = look.value(root, _HOST, str) == RouterHost.VM
    machine = look.value(root, _MACHINE, str)
    if machine is not None and not is_on_vm:
        message = "router.machine is the machine type of a VM, and this router has none"
        yield problem(codes.ROUTER_KEY, message, look.at(root, _MACHINE), path=_MACHINE, hint="write host: vm")
    elif machine is not None and machine not in MACHINES:
        message = f"{quoted(machine)} is not a machine type that a router can run on"
        hint = did_you_mean(machine, MACHINES) or f"choose one of {', '.join(MACHINES)}"
        yield problem(codes.NOT_A_CHOICE, message, look.at(root, _MACHINE), path=_MACHINE, hint=hint)
    if is_on_vm and look.value(root, _ADDRESS, str) is not None:
        message = "Google assigns the address of the router's VM"
        hint = "remove router.address; `tpudeploy output` prints the address"
        yield problem(codes.ROUTER_KEY, message, look.at(root, _ADDRESS), path=_ADDRESS, hint=hint)


def known_router_policy(root: MapNode) -> Iterator[Diagnostic]:
    kind, policy = look.value(root, _KIND, str), look.value(root, _POLICY, str)
    # Another rule reports a kind that does not exist.
    if policy is None or kind not in set(RouterKind):
        return
    policies = ROUTERS[RouterKind(kind)].policies
    if policy not in policies:
        message = f"{kind} has no policy {quoted(policy)}"
        hint = did_you_mean(policy, policies) or f"choose one of {', '.join(policies)}"
        yield problem(codes.NOT_A_CHOICE, message, look.at(root, _POLICY), path=_POLICY, hint=hint)
