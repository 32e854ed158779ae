"""Loopback addresses: 127.77.N.M for nodes, each N held by one emulator of this computer; and where a node listens.

Where the system has only 127.0.0.1 (macOS), every node gets that, and its servers get ports of their own.
"""

from __future__ import annotations

import os
import socket

LOCALHOST = "127.0.0.1"
_LOCK_PORT = 47177
_NETS = 256


class AddressPool:
    """Never hands an address out twice.

    N is held by binding a socket in it that never listens: the system releases it however this process ends.
    """

    def __init__(self) -> None:
        self._locks: list[socket.socket] = []
        self._free: list[str] = []
        self.has_own = True

    def take(self) -> str:
        if not self._free and self.has_own:
            self._take_net()
        return self._free.pop() if self.has_own else LOCALHOST

    def close(self) -> None:
        for lock in self._locks:
            lock.close()

    def _take_net(self) -> None:
        for step in range(_NETS):
            net = (os.getpid() + step) % _NETS
            lock = socket.socket()
            try:
                lock.bind((f"127.77.{net}.1", _LOCK_PORT))
            except OSError:
                lock.close()
                continue
            self._locks.append(lock)
            self._free = [f"127.77.{net}.{host}" for host in range(254, 1, -1)]
            return
        self.has_own = False


class NodeAddresses:
    """`address` is what the cloud reports. Only the node's own curl reaches `inner_address`."""

    def __init__(self, address: str, *, reachable: bool) -> None:
        self._reachable = reachable
        self._shared = address == LOCALHOST or not _can_bind(address)
        self._ports: dict[tuple[bool, int], int] = {}
        self.address = LOCALHOST if self._shared else address
        self.inner_address = LOCALHOST if self._shared else _neighbour(address)

    def port_for(self, port: int, *, inner: bool = False) -> int:
        if not self._shared:
            return port
        return self._ports.setdefault((inner, port), _free_port())

    def listening(self, host: str | None, port: int) -> tuple[str, int]:
        """Return where a server of this node with `--host` and `--port` really listens."""
        inner = not self._reachable or host in {LOCALHOST, "localhost", "::1"}
        address = self.inner_address if inner else self.address
        return address, self.port_for(port, inner=inner)


def _neighbour(address: str) -> str:
    first, second, rest = address.split(".", 2)
    return f"{first}.{int(second) ^ 128}.{rest}"


def _can_bind(address: str) -> bool:
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
