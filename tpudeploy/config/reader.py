"""Reader: how parse() gets at files, which it must not open itself."""

from __future__ import annotations

from typing import Protocol

MAX_BYTES = 1024 * 1024


class Unreadable(Exception):
    """A file cannot be read. `reason` completes the sentence "`FILE` …"; `missing` where there is no such file.

    `is_refused` where an untrusted profile may not open it, whatever it holds.
    """

    def __init__(self, reason: str, *, hint: str = "", missing: bool = False, is_refused: bool = False) -> None:
        super().__init__(reason)
        self.reason = reason
        self.hint = hint
        self.missing = missing
        self.is_refused = is_refused


class Reader(Protocol):
    def read(self, path: str) -> bytes:
        """The whole file, at most MAX_BYTES of it and one more. Raise Unreadable."""
        ...

    def resolve(self, base: str, relative: str) -> str:
        """`relative` as seen from the folder of the file `base`, in a form that is equal for equal files."""
        ...


class Remembered:
    """The reader of one text that lies in no file. What it names is looked for beside the file `beside`."""

    def __init__(self, text: str, *, beside: str) -> None:
        folder, slash, _ = beside.rpartition("/")
        self.name = f"{folder}{slash}(as it stands)"
        self._text = text

    def read(self, path: str) -> bytes:
        if path != self.name:
            raise Unreadable("is not remembered", missing=True)
        return self._text.encode()

    def resolve(self, base: str, relative: str) -> str:
        del base
        return relative
