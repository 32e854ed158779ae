"""Check for flags that make the server unreachable or its endpoint impossible to publish."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.nodes import MapNode, plain
from tpudeploy.config.rules import look
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic


class _Unreachable(NamedTuple):
    """Why a server with the flag is unreachable, what to do instead, and the values that are harmless."""

    because: str
    instead: str
    harmless: tuple[Json, ...] = (None, False, "")


_TLS = _Unreachable("the health probe and clients of the endpoint speak HTTP", "end TLS in front of the endpoint")
_ADDRESS = "leave it out: the firewall and the network decide who reaches the port"
_ONE_HOST = "leave it out: a slice of one host has one server"
UNREACHABLE: Mapping[str, _Unreachable] = {
    "ssl-keyfile": _TLS,
    "ssl-certfile": _TLS,
    "ssl-ca-certs": _TLS,
    "host": _Unreachable(
        "the server would listen on that address alone, and the endpoint is the machine's",
        _ADDRESS,
        (None, "", "0.0.0.0", "::"),  # noqa: S104 - what a profile may write: it is vLLM's default
    ),
    "uds": _Unreachable("the server would listen on a socket file, and on no port", _ADDRESS),
    "root-path": _Unreachable(
        "the health probe and clients ask for /health and /v1 without a prefix",
        "add the prefix in front of the endpoint",
        (None, "", "/"),
    ),
    "grpc": _Unreachable("the health probe and clients speak HTTP, not gRPC", "leave it out"),
    "headless": _Unreachable("the process would have no API server", _ONE_HOST),
    "nnodes": _Unreachable("the server would wait for other hosts", _ONE_HOST, (None, 1)),
    "data-parallel-external-lb": _Unreachable("each rank would wait for a load balancer of its own", _ONE_HOST),
    "data-parallel-hybrid-lb": _Unreachable("the ranks would wait for other hosts", _ONE_HOST),
    "data-parallel-multi-port-external-lb": _Unreachable("each rank would listen on a port of its own", _ONE_HOST),
    "data-parallel-start-rank": _Unreachable("the ranks before it would be missing", _ONE_HOST, (None, 0)),
    "data-parallel-rank": _Unreachable("the other ranks would be missing", _ONE_HOST),
}


def reachable(root: MapNode) -> Iterator[Diagnostic]:
    """Report flags without which the server would answer plain HTTP on all addresses of its machine."""
    for name, row in UNREACHABLE.items():
        argument = look.argument(root, name)
        if argument is None:
            continue
        path, entry = argument
        value = plain(entry.value)
        # The type counts too, because 0 == False.
        if (type(value), value) not in [(type(harmless), harmless) for harmless in row.harmless]:
            message = f"--{name} cannot be served: {row.because}"
            yield problem(codes.FLAG_NOT_SERVED, message, entry.key, path=path, hint=row.instead)
