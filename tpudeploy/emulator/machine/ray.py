"""A stand-in for `ray start --block`: a head that knows its nodes, or a node that joins a head.

A client of a head writes one line: `join ADDRESS ID` to be a node for as long as the connection lasts, `nodes`
for a line of each, `watch` to be disconnected as soon as a node has left. The protocol is the emulator's own; what
clients of Ray see of it is a port that does not speak HTTP. How long a node takes to give up was seen with Ray 2.60: a
node whose head is killed ends itself within a minute and joins no other head, and one without a head tries for minutes.
"""

from __future__ import annotations

import contextlib
import itertools
import signal
import socket
import sys
import threading
from collections.abc import Mapping
from typing import Any

from tpudeploy.emulator.machine.session import forget_interrupts
from tpudeploy.emulator.machine.vllm.lifeline import Lifeline, read_task, say

JOIN_EVERY, JOIN_FOR = 5.0, 180.0
NOTICES_AFTER = 60.0
_BYTES = 65_536
_TIMEOUT = 60.0  # real seconds


def run() -> None:
    forget_interrupts()
    signal.signal(signal.SIGTERM, lambda *_: sys.exit(0))
    task = read_task()
    lifeline = Lifeline(task)
    sys.exit(_Head(task, lifeline).serve() if task["is_head"] else _join(task, lifeline))


def nodes_at(place: tuple[str, int]) -> list[str]:
    """Return `ADDRESS ID` of each node of the Ray at `place`. Raise OSError where none answers."""
    with socket.create_connection(place, timeout=_TIMEOUT) as wire:
        wire.sendall(b"nodes\n")
        return _read_to_end(wire).decode().splitlines()


def wait_for_departure(place: tuple[str, int]) -> None:
    """Return once a node has left the Ray at `place`, or Ray itself has ended."""
    with contextlib.suppress(OSError), socket.create_connection(place) as wire:
        wire.sendall(b"watch\n")
        _read_to_end(wire)


def _read_to_end(wire: socket.socket) -> bytes:
    parts = iter(lambda: wire.recv(_BYTES), b"")
    return b"".join(parts)


def _join(task: Mapping[str, Any], lifeline: Lifeline) -> int:
    """Be a node until the head is gone. Return the exit code."""
    began = lifeline.now()
    say(f"Local node IP: {task['address']}")
    for attempt in itertools.count(1):
        with contextlib.suppress(OSError), socket.create_connection(tuple(task["head"]), timeout=_TIMEOUT) as wire:
            wire.sendall(f"join {task['address']} {task['container']}\n".encode())
            wire.settimeout(None)
            if wire.recv(_BYTES):
                say("Ray runtime started.")
                lifeline.serving()
                _read_to_end(wire)
                lifeline.sleep_until(lifeline.now() + NOTICES_AFTER)
                say("Some Ray subprocesses exited unexpectedly:\n  raylet [exit code=1]")
                return 1
        if began + attempt * JOIN_EVERY > began + JOIN_FOR:
            break
        lifeline.sleep_until(began + attempt * JOIN_EVERY)
    say("Failed to get cluster ID from GCS server: TimedOut: Timed out while waiting for GCS to become available.")
    return 1


class _Head:
    def __init__(self, task: Mapping[str, Any], lifeline: Lifeline) -> None:
        self._task = task
        self._lifeline = lifeline
        self._nodes = {task["container"]: task["address"]}
        self._watchers: list[socket.socket] = []
        self._lock = threading.Lock()

    def serve(self) -> int:
        """Serve until the process is ended. Return the exit code of a head that cannot listen."""
        try:
            listener = socket.create_server(tuple(self._task["place"]))
        except OSError as error:
            say(f"[Errno {error.errno}] {error.strerror}")
            return 1
        say(f"Local node IP: {self._task['address']}\nRay runtime started.")
        self._lifeline.serving()
        while True:
            wire, _ = listener.accept()
            threading.Thread(target=self._attend, args=(wire,), daemon=True).start()

    def _attend(self, wire: socket.socket) -> None:
        with contextlib.suppress(OSError, ValueError), wire:
            match wire.recv(_BYTES).decode("utf-8", "replace").split():
                case ["join", address, identity]:
                    self._keep_node(wire, address, identity)
                case ["nodes"]:
                    with self._lock:
                        rows = [f"{address} {identity}\n" for identity, address in self._nodes.items()]
                    wire.sendall("".join(sorted(rows)).encode())
                case ["watch"]:
                    with self._lock:
                        self._watchers.append(wire)
                    _read_to_end(wire)
                case _:
                    wire.sendall(b"\x00\x00\x12\x04")  # the beginning of HTTP/2's settings, as a real head answers

    def _keep_node(self, wire: socket.socket, address: str, identity: str) -> None:
        with self._lock:
            self._nodes[identity] = address
        wire.sendall(b"joined\n")
        try:
            _read_to_end(wire)
        finally:
            with self._lock:
                del self._nodes[identity]
                watchers, self._watchers = self._watchers, []
            for watcher in watchers:
                with contextlib.suppress(OSError):
                    watcher.shutdown(socket.SHUT_RDWR)
