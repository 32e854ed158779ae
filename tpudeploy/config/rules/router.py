"""Check `router`: what this version can run, and a policy that the router has."""

from __future__ import annotations

from collections.abc import Iterator

from tpudeploy.catalog.routers import ROUTERS
from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, problem, quoted
from tpudeploy.config.nodes import MapNode, Path
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.router import RouterKind

_KIND: Path = ("router", "kind")
_HOST: Path = ("router", "host")
_MACHINE: Path = ("router", "machine")
_POLICY: Path = ("router", "policy")


def supported_host(root: MapNode) -> Iterator[Diagnostic]:
    hint = "write host: local, or host: own and run `tpudeploy router` on a machine of yours"
    if look.value(root, _HOST, str) == "vm":
        message = "A router on a VM of its own is not supported yet"
        yield problem(codes.NOT_SUPPORTED, message, look.at(root, _HOST), path=_HOST, hint=hint)
    elif look.value(root, _MACHINE, str) is not None:
        message = "router.machine is for host: vm, which is not supported yet"
        yield problem(codes.NOT_SUPPORTED, message, look.at(root, _MACHINE), path=_MACHINE, hint=hint)


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
