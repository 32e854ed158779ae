"""The stand-in's two ties to its emulator: a pipe whose end is its own end, and calls to the node's server."""

from __future__ import annotations

import json
import os
import sys
import threading
import urllib.request
from collections.abc import Mapping
from typing import Any

TASK = Mapping[str, Any]


def say(line: str) -> None:
    """Print a line of the container's log."""
    sys.stdout.write(f"{line}\n")
    sys.stdout.flush()


def read_task() -> TASK:
    """Read the one line that our owner writes. The pipe stays open behind it."""
    task: TASK = json.loads(sys.stdin.buffer.readline())
    threading.Thread(target=_die_with_owner, daemon=True, name="lifeline").start()
    return task


def _die_with_owner() -> None:
    while os.read(0, 1):
        pass
    os._exit(137)


class Lifeline:
    """Time is the node's; every answer carries it."""

    def __init__(self, task: TASK) -> None:
        self._container: str = task["container"]
        self._url = f"http://127.0.0.1:{task['control']['port']}/emulator/container"
        self._key: str = task["control"]["key"]
        self._open = urllib.request.build_opener(urllib.request.ProxyHandler({})).open

    def now(self) -> float:
        """Return the time. This reports no state, because a server that is ready asks, too."""
        return self._report()

    def sleep_until(self, moment: float | None) -> float:
        """Sleep until a moment, None for ever, and return the time."""
        return self._report(says="asleep", until=moment)

    def serving(self) -> None:
        self._report(says="serving")

    def _report(self, **message: Any) -> float:
        request = urllib.request.Request(  # noqa: S310 - our own node, by http
            self._url,
            data=json.dumps({"container": self._container, **message}).encode(),
            headers={"X-Emulator-Key": self._key},
        )
        with self._open(request) as answer:
            moment: float = json.load(answer)["now"]
        return moment
