"""Check the number of replicas against the bounds of `scale` and the on-demand floor, and the router before them."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.catalog.routers import MACHINES, ROUTERS
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, quoted
from tpudeploy.config.nodes import Path
from tpudeploy.config.rules.violation import Violation, is_set
from tpudeploy.config.schema import ProfileSpec
from tpudeploy.domain.router import RouterHost, RouterKind

_REPLICAS: Path = ("replicas",)
_FLOOR: Path = ("placement", "on_demand_floor")
_MACHINE: Path = ("router", "machine")
_POLICY: Path = ("router", "policy")
_ADDRESS: Path = ("router", "address")


def bounds(profile: ProfileSpec) -> Iterator[Violation]:
    """Check that `scale` has room between its bounds, and that the floor has as many replicas."""
    scale, replicas, floor = profile.scale, profile.replicas, profile.placement.on_demand_floor
    if scale is not None and scale.min > scale.max:
        message = f"scale.min: {scale.min} is more than scale.max: {scale.max}"
        yield Violation(codes.REPLICA_BOUNDS, ("scale", "min"), message, f"at most {scale.max}")
    elif scale is not None and is_set(profile, _REPLICAS) and not scale.min <= replicas <= scale.max:
        message = f"replicas: {replicas} is outside of the bounds of scale, {scale.min} to {scale.max}"
        hint = "replicas is the number to begin with; leave it out to begin with the least"
        yield Violation(codes.REPLICA_BOUNDS, _REPLICAS, message, hint)
    limit, name = (replicas, "replicas") if scale is None else (scale.max, "scale.max")
    if floor is not None and floor > limit:
        message = f"placement.on_demand_floor: {floor} is more than {name}: {limit}"
        yield Violation(codes.REPLICA_BOUNDS, _FLOOR, message, f"at most {limit}")


def router_keys_of_host(profile: ProfileSpec) -> Iterator[Violation]:
    router = profile.router
    if router is None:
        return
    is_on_vm = router.host == RouterHost.VM.value
    if router.machine is not None and not is_on_vm:
        message = "router.machine is the machine type of a VM, and this router has none"
        yield Violation(codes.ROUTER_KEY, _MACHINE, message, "write host: vm")
    elif router.machine is not None and router.machine not in MACHINES:
        message = f"{quoted(router.machine)} is not a machine type that a router can run on"
        hint = did_you_mean(router.machine, MACHINES) or f"choose one of {', '.join(MACHINES)}"
        yield Violation(codes.NOT_A_CHOICE, _MACHINE, message, hint)
    if is_on_vm and is_set(profile, _ADDRESS):
        message = "Google assigns the address of the router's VM"
        hint = "remove router.address; `tpudeploy output` prints the address"
        yield Violation(codes.ROUTER_KEY, _ADDRESS, message, hint)


def known_router_policy(profile: ProfileSpec) -> Iterator[Violation]:
    router = profile.router
    # The format reports a kind that does not exist.
    if router is None or router.policy is None or router.kind not in set(RouterKind):
        return
    policies = ROUTERS[RouterKind(router.kind)].policies
    if router.policy not in policies:
        message = f"{router.kind} has no policy {quoted(router.policy)}"
        hint = did_you_mean(router.policy, policies) or f"choose one of {', '.join(policies)}"
        yield Violation(codes.NOT_A_CHOICE, _POLICY, message, hint)
