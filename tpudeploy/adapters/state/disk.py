"""Files that are written whole or not at all, hidden from git, or added to at their end."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tpudeploy.domain import errors


def replace(path: Path, text: str) -> None:
    """Atomic: a reader sees the old text or the new, and so does whoever looks after a power cut.

    Raise `errors.StateError`.
    """
    with writing(path):
        path.parent.mkdir(parents=True, exist_ok=True)
        _write_beside(path, text)


def append(path: Path, line: bytes) -> None:
    """In one write at the end, wherever that is by then: lines of two runs never mix. Raise OSError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o644)
    try:
        size = os.fstat(handle).st_size
        torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        whole = b"\n" + line if torn else line
        if os.write(handle, whole) < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
    finally:
        os.close(handle)


def hide_from_git(folder: Path, what: str = "*") -> None:
    """A state is one machine's memory, no source: unless somebody decided otherwise, git leaves it alone."""
    rules = folder / ".gitignore"
    if not rules.exists():
        rules.write_text(f"{what}\n", encoding="utf-8")


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `errors.StateError` for what the disk refuses."""
    try:
        yield
    except OSError as cause:
        raise errors.StateError(
            f"{path} cannot be written: {cause.strerror or cause}.",
            hint="What it held before is unharmed, and nothing was asked for that it does not name.",
        ) from cause


def _write_beside(path: Path, text: str) -> None:
    """One name beside it, for who writes holds the lock: what a killed run leaves there, the next one overwrites."""
    beside = path.with_name(f".{path.name}.new")
    with beside.open("w", encoding="utf-8") as file:
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
