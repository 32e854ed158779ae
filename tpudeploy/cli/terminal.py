"""stdout is data, stderr is talk; colour where a person looks, unless told otherwise.

With --json, stdout holds documents alone: what is text for people goes to stderr instead.
"""

from __future__ import annotations

import os
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from typing import TextIO

from tpudeploy.domain.errors import OutputFailed
from tpudeploy.domain.frozen import frozen
from tpudeploy.views.paint import Paint

_USUAL = os.terminal_size((80, 24))


@frozen
class Terminal:
    """`is_drawable`: a person looks at stderr, through something whose cursor can be moved."""

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    colour: bool
    is_drawable: bool
    as_json: bool = False

    @classmethod
    def of_process(cls, *, no_color: bool, as_json: bool = False) -> Terminal:
        allowed = not no_color and not os.environ.get("NO_COLOR")
        kind = os.environ.get("TERM", "")
        return cls(
            stdin=sys.stdin,
            stdout=sys.stdout,
            stderr=sys.stderr,
            colour=allowed and not as_json and sys.stdout.isatty() and kind != "dumb",
            is_drawable=sys.stderr.isatty() and kind not in {"", "dumb"},
            as_json=as_json,
        )

    @property
    def paint(self) -> Paint:
        return Paint(colour=self.colour)

    @property
    def width(self) -> int | None:
        """Columns of the terminal that shows the data; None where there is none, and nothing has to fit."""
        return shutil.get_terminal_size().columns if self.stdout.isatty() else None

    @property
    def is_interactive(self) -> bool:
        """Whether a person can be asked. Never with --json: the question would stand among documents."""
        return not self.as_json and self.stdin.isatty() and self.stdout.isatty()

    @property
    def is_in_foreground(self) -> bool:
        """False while a shell has taken its terminal back (`&`, `bg`)."""
        try:
            return os.tcgetpgrp(self.stderr.fileno()) == os.getpgrp()
        except OSError:
            return True  # a terminal that is nobody's

    @property
    def size(self) -> os.terminal_size:
        """Of stderr's window; what a terminal usually has where it does not know."""
        try:
            size = os.get_terminal_size(self.stderr.fileno())
        except OSError:
            return _USUAL
        return size if all(size) else _USUAL

    def data(self, text: str, end: str = "\n") -> None:
        """Write the result of a command, as text for people. Raise `errors.OutputFailed` where it cannot be written."""
        if self.as_json:
            self.talk(text)
        else:
            self.document(text, end)

    def document(self, text: str, end: str = "\n") -> None:
        """Write to stdout whatever the mode: to a terminal as far as it can show it, elsewhere in UTF-8.

        Raise `errors.OutputFailed` where it cannot be written.
        """
        encoding = self.stdout.encoding if self.stdout.isatty() else "utf-8"
        with _open_ended(self.stdout):
            self.stdout.flush()
            self.stdout.buffer.write(f"{text}{end}".encode(encoding, "backslashreplace"))
            self.stdout.flush()

    def talk(self, text: str) -> None:
        with _open_ended(self.stderr):
            print(text, file=self.stderr, flush=True)

    def draw(self, text: str) -> None:
        """To the terminal behind stderr, at once. A character that it does not know takes one cell all the same."""
        encoding = self.stderr.encoding
        with _open_ended(self.stderr):
            self.stderr.write(text.encode(encoding, "replace").decode(encoding))
            self.stderr.flush()

    def ask(self, question: str) -> str:
        """What the person types; "" at the end of input."""
        print(question, end="", file=self.stdout, flush=True)
        return self.stdin.readline().strip()


@contextmanager
def _open_ended(stream: TextIO) -> Iterator[None]:
    """A reader that has what it wanted (`| head`) ends what is said, never the run: a slice may be paid for."""
    try:
        yield
    except OSError as cause:
        # From here on into nothing, or Python would complain of the rest at its own exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stdout and not isinstance(cause, BrokenPipeError):
            raise OutputFailed(f"The output cannot be written: {cause.strerror or cause}.") from cause
