"""What flags of the engine mean together, and for us: combinations that vLLM refuses, and servers nobody could ask."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
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
    """The server answers plain HTTP on all addresses of its machine: nothing else can be verified or published."""
    for name, row in UNREACHABLE.items():
        written = look.argument(root, name)
        if written is None:
            continue
        path, entry = written
        if plain(entry.value) not in row.harmless:
            message = f"--{name} cannot be served: {row.because}"
            yield problem(codes.FLAG_NOT_SERVED, message, entry.key, path=path, hint=row.instead)


class _Needs(NamedTuple):
    """A flag that vLLM refuses without another one: whether it is set, the other, and what makes it right."""

    is_set: Callable[[Json], bool]
    other: str
    instead: str


def _is_on(value: Json) -> bool:
    return value is True


# Each from the check that vLLM 0.32.0 makes: launchers/cli_args.py:502, config/observability.py, config/vllm.py.
_NEEDS: Mapping[str, _Needs] = {
    "enable-auto-tool-choice": _Needs(
        _is_on, "tool-call-parser", "add the parser of the model's family, e.g. tool_call_parser: gemma4"
    ),
    "enable-log-outputs": _Needs(_is_on, "enable-log-requests", "enable_log_requests: true"),
    "collect-detailed-traces": _Needs(
        bool, "otlp-traces-endpoint", "otlp_traces_endpoint: the address of your collector"
    ),
    "per-request-spec-decode-metrics": _Needs(
        lambda value: value not in (None, "none"), "speculative-config", "leave it out, or write speculative_config"
    ),
}


def needs(root: MapNode) -> Iterator[Diagnostic]:
    """A flag beside which vLLM needs another one."""
    for name, row in _NEEDS.items():
        written = look.argument(root, name)
        if written is not None and row.is_set(plain(written[1].value)) and not look.argument_value(root, row.other):
            path, entry = written
            message = f"--{name} needs --{row.other}: the server would not start"
            yield problem(codes.FLAGS_TOGETHER, message, entry.key, path=path, hint=row.instead)


def metrics_of_requests(root: MapNode) -> Iterator[Diagnostic]:
    """Statistics of a request are made by what --disable-log-stats turns off."""
    written = look.argument(root, "enable-per-request-metrics")
    stats = look.argument_value(root, "disable-log-stats")
    if written is not None and plain(written[1].value) is True and stats is True:
        path, entry = written
        message = "--enable-per-request-metrics does not go with --disable-log-stats: the server would not start"
        yield problem(codes.FLAGS_TOGETHER, message, entry.key, path=path, hint="leave one of them out")


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
