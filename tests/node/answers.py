"""Stands behind `docker`, `curl`, `sleep` and the like: writes down how each was called and answers from a list of rules.

A rule is (command, text in the arguments, answers); each call takes the next answer, the last one stays. An answer is
(status, text): an exit code for a command, an HTTP status for curl. A third entry is a text in a call that must have
been made before this one is answered: what runs side by side is told from what waits in turn.
"""

from __future__ import annotations

import os
import threading
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from functools import partial
from http.server import BaseHTTPRequestHandler
from pathlib import Path
from socketserver import ThreadingTCPServer

from real_time import DEADLINE

from tpudeploy.emulator.machine import shims

Answer = tuple[int, str] | tuple[int, str, str]
Rule = tuple[str, str, Sequence[Answer]]


@dataclass(frozen=True)
class Call:
    argv: list[str]
    stdin: str
    env: Mapping[str, str]

    @property
    def line(self) -> str:
        return " ".join(self.argv)


class Answers:
    """`calls` are all as they came; `binaries` is where the commands stand, with what is installed."""

    def __init__(self, binaries: Path) -> None:
        self.calls: list[Call] = []
        self._binaries = binaries
        self._rules: Sequence[Rule] = ()
        self._taken = Counter[int]()
        self._heard = threading.Condition()

    @contextmanager
    def to(self, commands: Iterable[str], rules: Sequence[Rule]) -> Iterator[None]:
        self._rules = rules
        with _Server(("127.0.0.1", 0), _Handler) as server:
            server.hear = self._hear
            thread = threading.Thread(target=server.serve_forever, args=(0.01,))
            thread.start()
            self._install = partial(shims.install, self._binaries, port=server.server_address[1], key="")
            self._install(commands)
            try:
                yield
            finally:
                server.shutdown()
                thread.join()

    def _hear(self, command: shims.ShimCall) -> tuple[int, bytes]:
        call = Call([command.name, *command.words], command.stdin.decode(), command.environment)
        with self._heard:
            self.calls.append(call)
            self._heard.notify_all()
            status, text = self._answer(command.name, " ".join(command.words))
        if command.name == "apt-get" and "install" in command.words and status == 0:
            self._install(["docker"])
        return _curl(command, status, text) if command.name == "curl" else (status, text.encode())

    def _answer(self, name: str, line: str) -> tuple[int, str]:
        for index, (command, part, answers) in enumerate(self._rules):
            if command == name and part in line:
                status, text, *after = answers[min(self._taken[index], len(answers) - 1)]
                self._taken[index] += 1
                return (status, text) if all(map(self._was_called, after)) else (1, f"waited for {after}")
        return (404, "") if name == "curl" else (0, "")

    def _was_called(self, part: str) -> bool:
        return self._heard.wait_for(lambda: any(part in call.line for call in self.calls), DEADLINE)


class _Server(ThreadingTCPServer):
    daemon_threads = True  # a call that is waited for may outlive its boot
    hear: Callable[[shims.ShimCall], tuple[int, bytes]]


class _Handler(BaseHTTPRequestHandler):
    server: _Server

    def do_POST(self) -> None:
        code, output = self.server.hear(shims.parse_command(self.rfile.read(int(self.headers["Content-Length"]))))
        self.send_response(200)
        for key, value in {**shims.reply_headers(code, output), "Content-Length": str(len(output))}.items():
            self.send_header(key, value)
        self.end_headers()
        with suppress(ConnectionError):  # a call that is killed waits for no answer
            self.wfile.write(output)

    def log_message(self, format: str, *args: object) -> None:  # noqa: A002 - the base class names it so
        """Silent."""


def _curl(call: shims.ShimCall, status: int, text: str) -> tuple[int, bytes]:
    """A status of 0 is a connection that was refused, one below it an exit code of curl's own."""
    if status <= 0:
        return -status or 7, b""
    if "-f" in call.words and status >= 400:
        return 22, b""
    options = dict(zip(call.words, call.words[1:], strict=False))
    if options.get("-o", os.devnull) != os.devnull:
        Path(call.folder, options["-o"]).write_text(text)
    output = "" if "-o" in options else text
    return 0, (output + options.get("-w", "").replace("\\n", "\n").replace("%{http_code}", str(status))).encode()
