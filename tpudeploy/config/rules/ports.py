"""Check `serving.port` and `router.port`: a server shares the machine's network, where other programs listen too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem, warning
from tpudeploy.config.nodes import MapNode, Path
from tpudeploy.config.rules import look
from tpudeploy.domain.diagnostics import Diagnostic

_PORTS: tuple[Path, ...] = (("serving", "port"), ("router", "port"))
# The container runs with --net=host. 22 and 53 are taken on each machine (Ubuntu's sshd and systemd-resolved).
_TAKEN: Mapping[int, str] = {22: "ssh", 53: "its name resolver"}
# By libtpu's variables (TPU_PROCESS_PORT, TPU_RUNTIME_METRICS_PORTS) and Ray's page of ports; unverified on a chip.
_USED: Mapping[int, str] = {
    6379: "Ray on slices of several hosts",
    8265: "Ray's dashboard",
    8431: "the metrics of the TPU runtime",
    **dict.fromkeys(range(8471, 8479), "the TPU runtime"),
}
_WEB = (80, 443)
_FIRST_FREE = 1024


def reserved(root: MapNode) -> Iterator[Diagnostic]:
    """Report a port that another program of the machine has, so that the server could not listen."""
    for path in _PORTS:
        port = look.value(root, path, int)
        if port is None:
            continue
        at, hint = look.at(root, path), "write a port of 1024 or more, such as 8000"
        if port in _TAKEN:
            message = f"Port {port} of the machine belongs to {_TAKEN[port]}"
            yield problem(codes.RESERVED_PORT, message, at, path=path, hint=hint)
        elif port in _USED:
            message = f"Port {port} is that of {_USED[port]}"
            yield warning(codes.RESERVED_PORT, message, at, path=path, hint="write another one, such as 8000")
        elif 0 < port < _FIRST_FREE and port not in _WEB:
            message = f"Port {port} is one of those below 1024, which are for services of the system"
            yield warning(codes.RESERVED_PORT, message, at, path=path, hint=hint)
