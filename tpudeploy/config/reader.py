"""Define Reader, through which parse() reads files: it must not open them itself."""

from __future__ import annotations

from typing import Protocol

MAX_BYTES = 1024 * 1024


class Unreadable(Exception):
    """A file cannot be read. `reason` completes the sentence "`FILE` …"; `missing`: the file does not exist.

    `guess` asks about a file of nearly that name.
    `is_refused`: an untrusted profile may not open it, regardless of its content.
    """

    def __init__(
        self, reason: str, *, hint: str = "", guess: str = "", missing: bool = False, is_refused: bool = False
    ) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.guess = guess
        self.missing = missing
        self.is_refused = is_refused


class Reader(Protocol):
    def read(self, path: str) -> bytes:
        """Return the file, but at most MAX_BYTES + 1 bytes. Raise Unreadable."""
        ...

    def resolve(self, base: str, relative: str) -> str:
        """Return the path `relative` to the folder of the file `base`, in a form that is equal for equal files."""
        ...


class Remembered:
    """Reads one text that is not in a file. Paths in it are relative to the folder of the file `beside`."""

    def __init__(self, text: str, *, beside: str, name: str = "(as it stands)") -> None:
        folder, slash, _ = beside.rpartition("/")
        self.name = f"{folder}{slash}{name}"
        self._text = text

    def read(self, path: str) -> bytes:
        if path != self.name:
            raise Unreadable("is not remembered", missing=True)
        return self._text.encode()

    def resolve(self, base: str, relative: str) -> str:
        del base
        return relative
