"""Write results to stdout and messages to stderr, in colour at a terminal.

With --json, stdout holds only documents: text for people goes to stderr instead. A model, a server or a colleague may
have written any part of a text, so only colour and cursor movements of ours reach a terminal.
"""

from __future__ import annotations

import os
import re
import shutil
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import TextIO

from tpudeploy.domain.errors import Interrupted, OutputFailed
from tpudeploy.domain.excerpt import escaped, plain
from tpudeploy.text.paint import Paint
from tpudeploy.text.words import fitted

_IN_ASCII = str.maketrans({"█": "#", "░": "-", "…": "~"})  # what tables are drawn with
_SGR = re.compile(r"\x1b\[[0-9;]*m")  # the colour of a log, which says nothing that its text does not
_DEFAULT_SIZE = os.terminal_size((80, 24))


def _secret_mark() -> str:
    return f"{int.from_bytes(os.urandom(6))};"


@dataclass(frozen=True, slots=True, kw_only=True)
class Terminal:
    """The standard streams of a command. `is_drawable`: stderr is a terminal whose cursor can be moved.

    `mark` begins each escape of ours, until it is written. No text from outside can contain it.
    """

    stdin: TextIO
    stdout: TextIO
    stderr: TextIO
    colour: bool
    is_drawable: bool
    as_json: bool = False
    mark: str = field(default_factory=_secret_mark, compare=False, repr=False)

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
        return Paint(colour=self.colour, mark=self.mark)

    def escape(self, code: str) -> str:
        """Return an escape that moves the cursor or erases, for `draw`."""
        return f"\033[{self.mark}{code}"

    def _cleaned(self, text: str) -> str:
        """Return the text with our escapes, and with all other control characters replaced."""
        return "\033[".join(map(plain, text.split(self.escape(""))))

    @property
    def width(self) -> int | None:
        """Return the columns of stdout's terminal, or None if stdout is not a terminal."""
        if not self.stdout.isatty():
            return None

        return shutil.get_terminal_size().columns

    @property
    def message_width(self) -> int | None:
        """Return the columns of stderr's terminal, or None if stderr is not a terminal."""
        return self.size.columns if self.stderr.isatty() else None

    @property
    def is_interactive(self) -> bool:
        """Return whether a person can be asked. With --json never, because the question would be among documents."""
        return not self.as_json and self.stdin.isatty() and self.stdout.isatty()

    @property
    def is_in_foreground(self) -> bool:
        """Return False while the process runs in the background of a shell (`&`, `bg`)."""
        try:
            return os.tcgetpgrp(self.stderr.fileno()) == os.getpgrp()
        except OSError:
            return True  # a terminal without a process group

    @property
    def size(self) -> os.terminal_size:
        """Return the size of stderr's terminal, or 80 x 24 if it is unknown."""
        try:
            size = os.get_terminal_size(self.stderr.fileno())
        except OSError:
            return _DEFAULT_SIZE
        return size if all(size) else _DEFAULT_SIZE

    def data(self, text: str) -> None:
        """Write the result of a command as text for people, wrapped to the width of the terminal.

        Raise `errors.OutputFailed` if it cannot be written.
        """
        fitted = text if self.width is None else _fitted(text, self.width)
        if self.as_json:
            self.talk(fitted)
        else:
            self._write(self._cleaned(fitted), "\n")

    def verbatim(self, text: str, end: str = "\n") -> None:
        """Write a text of which each line is to be copied as it is: a script, a file, a log. Raise as `data` does.

        Only a terminal shows something else for characters that would hide or reorder what is beside them.
        """
        if self.as_json:
            self.talk(text)
        else:
            self._write(self._cleaned(text) if self.stdout.isatty() else text, end)

    def foreign(self, text: str) -> None:
        """Write a text of others, such as a log: unchanged to a file or a pipe, without commands to a terminal."""
        self.verbatim(_SGR.sub("", text) if self.stdout.isatty() else text)

    def document(self, text: str, end: str = "\n") -> None:
        """Write a document of --json to stdout, with escapes for invisible characters.

        Raise `errors.OutputFailed` if it cannot be written.
        """
        self._write(escaped(text), end)

    def _write(self, text: str, end: str) -> None:
        """Write to stdout in the encoding of a terminal, elsewhere in UTF-8."""
        encoding = self.stdout.encoding if self.stdout.isatty() else "utf-8"
        with _ignoring_closed_pipe(self.stdout):
            self.stdout.flush()
            self.stdout.buffer.write(f"{text}{end}".encode(encoding, "backslashreplace"))
            self.stdout.flush()

    def explain(self, text: str) -> None:
        """Write sentences to stderr, wrapped to the width of its terminal."""
        self.talk(text if self.message_width is None else _fitted(text, self.message_width))

    def talk(self, text: str) -> None:
        with _ignoring_closed_pipe(self.stderr):
            print(self._cleaned(text), file=self.stderr, flush=True)

    def draw(self, text: str) -> None:
        """Write to stderr's terminal at once, from the beginning of the line.

        A character that it cannot encode still takes one cell.
        """
        text = self._cleaned(text)
        encoding = self.stderr.encoding
        with _ignoring_closed_pipe(self.stderr):
            try:
                text.encode(encoding)
            except UnicodeEncodeError:
                text = text.translate(_IN_ASCII).encode(encoding, "replace").decode(encoding)
            self.stderr.write(f"\r{text}")
            self.stderr.flush()

    def ask(self, question: str) -> str:
        """Return the line that the person types, or "" at the end of input.

        Raise `errors.Interrupted` for Ctrl-C: what the question is about was not begun, so there is nothing to undo.
        """
        try:
            # A person may press Ctrl-C as soon as the question is there.
            print(self._cleaned(question), end="", file=self.stdout, flush=True)
            return self.stdin.readline().strip()
        except KeyboardInterrupt as cause:
            raise Interrupted("Interrupted before an answer: nothing was done.") from cause


def _fitted(text: str, width: int) -> str:
    return fitted(text, width)


@contextmanager
def _ignoring_closed_pipe(stream: TextIO) -> Iterator[None]:
    """Ignore a reader that closed its pipe (`| head`): it must not end the run, because slices may be billed."""
    try:
        yield
    except OSError as cause:
        # Redirect to /dev/null, or Python would report the unwritten rest at its exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), stream.fileno())
        if stream is sys.stdout and not isinstance(cause, BrokenPipeError):
            raise OutputFailed(f"The output cannot be written: {cause.strerror or cause}.") from cause
