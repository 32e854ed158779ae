"""Check `router`: what its host can run, and a policy that the router has."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.catalog.machines import MACHINES
from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.nodes import MapNode, Path
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.router import RouterHost, RouterKind

_KIND: Path = ("router", "kind")
_HOST: Path = ("router", "host")
_MACHINE: Path = ("router", "machine")
_POLICY: Path = ("router", "policy")
_ADDRESS: Path = ("router", "address")


def keys_of_host(root: MapNode) -> Iterator[Diagnostic]:
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


def known_policy(root: MapNode) -> Iterator[Diagnostic]:
    kind, policy = look.value(root, _KIND, str), look.value(root, _POLICY, str)
    # Another rule reports a kind that does not exist.
    if policy is None or kind not in set(RouterKind):
        return
    policies = ROUTERS[RouterKind(kind)].policies
    if policy not in policies:
        message = f"{kind} has no policy {quoted(policy)}"
        hint = did_you_mean(policy, policies) or f"choose one of {', '.join(policies)}"
        yield problem(codes.NOT_A_CHOICE, message, look.at(root, _POLICY), path=_POLICY, hint=hint)
