"""Files that are written whole or not at all, hidden from git, or added to at their end.

What lies in a `.tpudeploy` is readable by its owner alone: states and runs hold every plain value of a profile, and
what servers answered. A backend folder of one's own keeps the modes that its owner gave it: a team may share it.
"""

from __future__ import annotations

import errno
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from tpudeploy.adapters.project import STATES
from tpudeploy.domain import errors

_OWNERS_FOLDER, _OWNERS_FILE = 0o700, 0o600
_OTHERS = 0o077


def replace(path: Path, text: str, *, is_private: bool = False) -> None:
    """Atomic: a reader sees the old text or the new, and so does whoever looks after a power cut.

    `is_private`: readable by its owner alone, wherever it lies. Raise `errors.StateError`.
    """
    with writing(path):
        make_folder(path.parent)
        _write_beside(path, text, _OWNERS_FILE if is_private else file_mode(path))


def make_folder(folder: Path) -> None:
    """Make a folder and all above it. Raise OSError.

    A `.tpudeploy` that others may look into, as earlier versions made it, is closed to them with all that it holds.
    """
    whole = folder.absolute()
    ours = next((f for f in (whole, *whole.parents) if f.name == STATES), None)
    if ours is None:
        folder.mkdir(parents=True, exist_ok=True)
        return
    ours.parent.mkdir(parents=True, exist_ok=True)
    for each in reversed([f for f in (whole, *whole.parents) if f.is_relative_to(ours)]):
        each.mkdir(mode=_OWNERS_FOLDER, exist_ok=True)
    _close_to_others(ours)


def file_mode(path: Path) -> int:
    """Return the mode that a file is made with, before the umask."""
    return _OWNERS_FILE if STATES in path.absolute().parts else 0o666


def append(path: Path, line: bytes) -> None:
    """In one write at the end, wherever that is by then: lines of two runs never mix. Raise OSError."""
    handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, file_mode(path))
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
        if file_mode(rules) == _OWNERS_FILE:
            rules.chmod(_OWNERS_FILE)


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


def _close_to_others(ours: Path) -> None:
    """Once: from then on everything is made as it should be. A link, or somebody else's folder, is left as it is."""
    known = ours.lstat()
    if not stat.S_ISDIR(known.st_mode) or known.st_uid != os.geteuid() or not known.st_mode & _OTHERS:
        return
    for folder, _, names in os.walk(ours, topdown=False):
        for name in names:
            file = Path(folder, name)
            if stat.S_ISREG(file.lstat().st_mode):
                file.chmod(_OWNERS_FILE)
        Path(folder).chmod(_OWNERS_FOLDER)


def _write_beside(path: Path, text: str, mode: int) -> None:
    """One name beside it, for who writes holds the lock: what a killed run leaves there, the next one overwrites."""
    beside = path.with_name(f".{path.name}.new")
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "w", encoding="utf-8") as file:
        if mode == _OWNERS_FILE:  # one that a killed run of an earlier version left may be wider
            os.fchmod(handle, mode)
        file.write(text)
        file.flush()
        os.fsync(file.fileno())
    beside.replace(path)
    folder = os.open(path.parent, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
