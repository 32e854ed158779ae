"""Where a node's servers listen: its own loopback address, or own ports where the system has only 127.0.0.1."""

from __future__ import annotations

import socket

LOCALHOST = "127.0.0.1"


class Addresses:
    """`address` is what the cloud reports. `inner_address` is reached by nobody but the node's own curl."""

    def __init__(self, wanted: str, *, reachable: bool) -> None:
        self._reachable = reachable
        self._shared = wanted == LOCALHOST or not _ours(wanted)
        self._ports: dict[tuple[bool, int], int] = {}
        self.address = LOCALHOST if self._shared else wanted
        self.inner_address = LOCALHOST if self._shared else _neighbour(wanted)

    def port_for(self, port: int, *, inner: bool = False) -> int:
        if not self._shared:
            return port
        return self._ports.setdefault((inner, port), _free_port())

    def listening(self, host: str | None, port: int) -> tuple[str, int]:
        """Where a server of this node that was told `--host` and `--port` really listens."""
        inner = not self._reachable or host in {LOCALHOST, "localhost", "::1"}
        address = self.inner_address if inner else self.address
        return address, self.port_for(port, inner=inner)


def _neighbour(address: str) -> str:
    first, second, rest = address.split(".", 2)
    return f"{first}.{int(second) ^ 128}.{rest}"


def _ours(address: str) -> bool:
    with socket.socket() as trial:
        try:
            trial.bind((address, 0))
        except OSError:
            return False
    return True


def _free_port() -> int:
    with socket.socket() as trial:
        trial.bind((LOCALHOST, 0))
        port: int = trial.getsockname()[1]
    return port
