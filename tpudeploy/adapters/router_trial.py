"""A router's next program, beside the one that clients have, until a request comes back through it.

Why: decision 63 in docs/decisions.md.
"""

from __future__ import annotations

import http.client
import json
import socket
import time
from collections.abc import Container, Mapping, Sequence
from dataclasses import replace
from http import HTTPStatus
from pathlib import Path
from threading import Thread
from urllib.parse import urlsplit

from tpudeploy.adapters.http_budget import Budget, HttpConnection
from tpudeploy.adapters.router_files import RouterFiles
from tpudeploy.adapters.router_program import Program
from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.router import RoutedReplica, Router
from tpudeploy.node.router_configuration import configuration

_FOLDER = "trial"
_PAUSE, _LONGEST_PAUSE = 1.0, 30.0  # seconds before a program that ended is started again
_REPLY_BYTES = 4 << 20
_REPLY_SECONDS = 60.0  # the first completion after a start may compile
# A request for each task of a server. Without a key, one that needs a key replies 401, which a router passes on, too.
_REQUESTS: Mapping[str, Mapping[str, object]] = {
    "/v1/completions": {"prompt": "Hello", "max_tokens": 1},
    "/v1/embeddings": {"input": "Hello"},
    "/classify": {"input": "Hello"},
    "/rerank": {"query": "Hello", "documents": ["Hello"]},
}
_REPLIES: Container[int | None] = {HTTPStatus.OK, HTTPStatus.UNAUTHORIZED}


class RouterTrial:
    """The program of `router` until it takes over. It has a folder below that of the router, and a port of its own."""

    def __init__(self, router: Router, folder: Path, name: str) -> None:
        self.router = router
        self._name = name
        self._folder = folder / _FOLDER
        self._files = RouterFiles(self._folder)
        self._at = router
        self._program: Program | None = None
        self._request: _TrialRequest | None = None
        self._pause, self._start_at, self._ask_at = 0.0, 0.0, 0.0

    def turn(self, replicas: tuple[RoutedReplica, ...]) -> str | None:
        """Run the program with these replicas and send it a request.

        Return "" once a reply came back through it, why that is not so, or None while a reply is awaited.
        """
        now = time.monotonic()
        end = "" if self._program is None else self._program.poll()
        if end:
            self._program, self._request = None, None
            return self._wait(f"its program ended {end}")
        if self._program is None:
            return None if now < self._start_at else self._start(replicas)
        new = configuration(self._at, replicas, self._name)
        self._program.must_reload |= self._files.write(new) and bool(new.reloaded)
        if self._request is None:
            if now >= self._ask_at:
                self._request = _TrialRequest(self._at.url, replicas, self.router.model)
            return None
        problem = self._request.problem
        if problem:
            self._request, self._ask_at = None, now + _PAUSE
        return problem

    @staticmethod
    def end_leftover(folder: Path) -> None:
        """End the program of a trial whose process was killed."""
        program = Program.find(folder / _FOLDER)
        if program is not None:
            program.kill()

    def end(self) -> None:
        """End the program, which no client uses."""
        if self._program is not None:
            self._program.kill()
            self._program = None

    def _start(self, replicas: tuple[RoutedReplica, ...]) -> str | None:
        try:
            self._at = replace(self.router, port=_free_port(self.router.address))
            disk.Folder(self._folder).make()
            new = configuration(self._at, replicas, self._name)
            self._files.write(new)
            self._program = Program.start(self._at, new, self._folder)
        except OSError as cause:
            return self._wait(f"nothing can listen at {self.router.address}: {cause.strerror or cause}")
        except ConfigError as cause:
            return self._wait(cause.message.removesuffix("."))
        return None

    def _wait(self, problem: str) -> str:
        self._pause = min(max(_PAUSE, 2 * self._pause), _LONGEST_PAUSE)
        self._start_at = time.monotonic() + self._pause
        return problem


class _TrialRequest(Thread):
    """A request through a router, in a thread of its own. `problem` is None until it ends, then "" or the cause."""

    def __init__(self, url: str, replicas: Sequence[RoutedReplica], model: str) -> None:
        super().__init__(daemon=True)
        self._url, self._replicas, self._model = url, replicas, model
        self.problem: str | None = None
        self.start()

    def run(self) -> None:
        problem = "no replica replies"
        for path, body in _REQUESTS.items():
            # A path that no replica serves says nothing about the router.
            if not any(self._status(replica.url, path, body) in _REPLIES for replica in self._replicas):
                continue
            status = self._status(self._url, path, body)
            problem = "" if status in _REPLIES else f"a request through it ends with {_words(status)}"
            break
        self.problem = problem

    def _status(self, url: str, path: str, body: Mapping[str, object]) -> int | None:
        """Return the status of a reply that has ended, or None without one."""
        parts = urlsplit(url)
        connection = HttpConnection(parts.hostname or "", parts.port, timeout=_REPLY_SECONDS)
        connection.budget = Budget(seconds=_REPLY_SECONDS, size=_REPLY_BYTES)
        try:
            text = json.dumps({"model": self._model, **body})
            connection.request("POST", path, text, {"Content-Type": "application/json", "Connection": "close"})
            with connection.getresponse() as response:
                return response.status
        except (OSError, http.client.HTTPException):
            return None
        finally:
            connection.close()


def _words(status: int | None) -> str:
    return "no reply" if status is None else f"HTTP {status}"


def _free_port(address: str) -> int:
    with socket.socket() as probe:
        probe.bind((address, 0))
        port: int = probe.getsockname()[1]
        return port
