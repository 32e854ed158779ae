"""A person at a real terminal, before a real process: what they read, and what they type."""

from __future__ import annotations

import codecs
import fcntl
import os
import pty
import select
import subprocess
import sys
import termios
import time
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Self

from real_time import DEADLINE

END_OF_INPUT = "\x04"
INTERRUPT = "\x03"


class Person:
    """Types into a terminal whose process runs `tpudeploy`, and reads what it shows."""

    def __init__(self, terminal: int, process: subprocess.Popen[bytes]) -> None:
        self._terminal = terminal
        self._process = process
        self.read = ""
        self._decoder = codecs.getincrementaldecoder("utf-8")()  # a read may end within a character

    def waits_for(self, words: str) -> Self:
        ends = time.monotonic() + DEADLINE
        while words not in self.read:
            assert time.monotonic() < ends, f"{words!r} never came; read so far:\n{self.read}"
            assert self._reads_on(ends - time.monotonic()), f"ended without {words!r}:\n{self.read}"
        return self

    def types(self, text: str) -> Self:
        os.write(self._terminal, text.encode())
        return self

    def stays_to_the_end(self) -> int:
        """The exit code."""
        while self._reads_on(DEADLINE):
            pass
        return self._process.wait(DEADLINE)

    def _reads_on(self, patience: float) -> bool:
        ready, _, _ = select.select([self._terminal], [], [], max(0.0, patience))
        if not ready:
            return False
        try:
            piece = os.read(self._terminal, 65536)
        except OSError:  # how Linux says that the other end is closed
            return False
        self.read += self._decoder.decode(piece).replace("\r\n", "\n")
        return bool(piece)


@contextmanager
def person(*arguments: str, folder: Path, environment: Mapping[str, str]) -> Iterator[Person]:
    """`tpudeploy ARGUMENTS` in `folder`, at a terminal."""
    ours, theirs = pty.openpty()
    _keep_what_was_shown(theirs)
    command = [sys.executable, "-m", "tpudeploy", *arguments]
    with subprocess.Popen(
        command,
        cwd=folder,
        env={**os.environ, "TERM": "xterm", **environment},
        stdin=theirs,
        stdout=theirs,
        stderr=theirs,
        start_new_session=True,
        preexec_fn=_take_terminal,  # noqa: PLW1509 - the child alone is to own the terminal, so that Ctrl-C reaches it
    ) as process:
        os.close(theirs)
        try:
            yield Person(ours, process)
        finally:
            os.close(ours)
            process.kill()


def _keep_what_was_shown(terminal: int) -> None:
    """Ctrl-C throws away what was written and not read yet, which a person would have seen."""
    modes = termios.tcgetattr(terminal)
    modes[3] |= termios.NOFLSH
    termios.tcsetattr(terminal, termios.TCSANOW, modes)


def _take_terminal() -> None:
    fcntl.ioctl(0, termios.TIOCSCTTY, 0)
