"""Check `serving.port` and `router.port`: a server shares the machine's network, where other programs listen too."""

from __future__ import annotations

from collections.abc import Iterator, Mapping

from tpudeploy.config import codes
from tpudeploy.config.nodes import Path
from tpudeploy.config.rules.violation import Violation
from tpudeploy.config.schema import ProfileSpec

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


def reserved(profile: ProfileSpec) -> Iterator[Violation]:
    """Report a port that another program of the machine has, so that the server could not listen."""
    ports: Mapping[Path, int | None] = {
        ("serving", "port"): profile.serving.port,
        ("router", "port"): None if profile.router is None else profile.router.port,
    }
    for path, port in ports.items():
        if port is None:
            continue
        hint = "write a port of 1024 or more, such as 8000"
        if port in _TAKEN:
            message = f"Port {port} of the machine belongs to {_TAKEN[port]}"
            yield Violation(codes.RESERVED_PORT, path, message, hint)
        elif port in _USED:
            message = f"Port {port} is that of {_USED[port]}"
            hint = "write another one, such as 8000"
            yield Violation(codes.RESERVED_PORT, path, message, hint, is_warning=True)
        elif port < _FIRST_FREE and port not in _WEB:
            message = f"Port {port} is one of those below 1024, which are for services of the system"
            yield Violation(codes.RESERVED_PORT, path, message, hint, is_warning=True)
