"""What flags of the engine mean together, and for us: combinations that vLLM refuses, and servers nobody could ask."""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import NamedTuple

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.nodes import MapNode, Path, plain
from tpudeploy.config.rules import look
from tpudeploy.domain.deployment import Json
from tpudeploy.domain.diagnostics import Diagnostic

_DP: Path = ("serving", "data_parallel_size")


class _Unreachable(NamedTuple):
    """Why a server with the flag cannot be asked, what to do instead, and the values that change nothing."""

    because: str
    instead: str
    harmless: tuple[Json, ...] = (None, False, "")


_TLS = _Unreachable("the health probe and clients of the endpoint speak HTTP", "end TLS in front of the endpoint")
_ADDRESS = "leave it out: the firewall and the network decide who reaches the port"
_ONE_HOST = "leave it out: a slice of one host has one server"
_UNREACHABLE: Mapping[str, _Unreachable] = {
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
    """The server answers plain HTTP on all addresses of its machine: nothing else can be verified or published."""
    for name, row in _UNREACHABLE.items():
        written = look.argument(root, name)
        if written is None:
            continue
        path, entry = written
        if plain(entry.value) not in row.harmless:
            message = f"--{name} cannot be served: {row.because}"
            yield problem(codes.FLAG_NOT_SERVED, message, entry.key, path=path, hint=row.instead)


def tool_choice(root: MapNode) -> Iterator[Diagnostic]:
    """Refused by vLLM 0.32.0 launchers/cli_args.py: `--enable-auto-tool-choice requires --tool-call-parser`."""
    written = look.argument(root, "enable-auto-tool-choice")
    if written is None or plain(written[1].value) is not True or look.argument_value(root, "tool-call-parser"):
        return
    path, entry = written
    message = "--enable-auto-tool-choice needs --tool-call-parser: the server would not start"
    hint = "add the parser of the model's family, e.g. tool_call_parser: gemma4"
    yield problem(codes.FLAGS_TOGETHER, message, entry.key, path=path, hint=hint)


def data_parallel(root: MapNode) -> Iterator[Diagnostic]:
    """tpu_inference 0.32.0 layers/common/sharding.py:322: `LoRA is not supported with data parallelism`."""
    copies = look.value(root, _DP, int) or 1
    lora = look.argument(root, "enable-lora")
    if copies > 1 and lora is not None and plain(lora[1].value) is True:
        path, entry = lora
        message = f"--enable-lora is not supported with data_parallel_size {copies}: the server would not start"
        hint = "data_parallel_size: 1, and replicas for more copies"
        also = look.at(root, _DP)
        yield problem(codes.FLAGS_TOGETHER, message, entry.key, path=path, hint=hint, also=also)
