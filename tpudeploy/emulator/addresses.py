"""Loopback addresses for nodes: 127.77.N.M, each N held by one emulator of this computer."""

from __future__ import annotations

import os
import socket

_LOCK_PORT = 47177
_NETS = 256


class Addresses:
    """Never hands an address out twice. Where the system has only 127.0.0.1 (macOS) every node gets that.

    N is held by binding a socket in it that nobody ever listens on: the system releases it however we end.
    """

    def __init__(self) -> None:
        self._locks: list[socket.socket] = []
        self._net = os.getpid() % _NETS
        self._free: list[str] = []
        self.has_own = True

    def take(self) -> str:
        if not self._free and self.has_own:
            self._take_net()
        return self._free.pop() if self.has_own else "127.0.0.1"

    def close(self) -> None:
        for lock in self._locks:
            lock.close()

    def _take_net(self) -> None:
        for step in range(_NETS):
            net = (self._net + step) % _NETS
            if self._lock(net):
                self._free = [f"127.77.{net}.{host}" for host in range(254, 1, -1)]
                return
        self.has_own = False

    def _lock(self, net: int) -> bool:
        lock = socket.socket()
        try:
            lock.bind((f"127.77.{net}.1", _LOCK_PORT))
        except OSError:
            lock.close()
            return False
        self._locks.append(lock)
        return True
