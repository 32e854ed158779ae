"""Files that are written atomically, hidden from git, or appended to.

Only the owner can read files in a `.tpudeploy` folder, because states and runs hold every plain value of a profile
and the answers of servers. A backend folder that the user names keeps its modes, because a team may share it.
"""

from __future__ import annotations

import errno
import fcntl
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import takewhile
from pathlib import Path

from tpudeploy.adapters.project import STATES
from tpudeploy.domain import errors

_OWNERS_FOLDER, _OWNERS_FILE = 0o700, 0o600
_ANYONES_FOLDER = 0o777  # before the umask
_OTHERS_BITS = 0o077


def replace(path: Path, text: str, *, is_private: bool = False) -> None:
    """Replace a file atomically: a reader sees the old text or the new one, even after a power failure.

    `is_private` makes it readable by its owner only, in any folder. Raise `errors.StateError`.
    """
    with writing(path):
        make_folder(path.parent)
        _write_beside(path, text.encode(), _OWNERS_FILE if is_private else file_mode(path))


def make_folder(folder: Path) -> None:
    """Create a folder and all its parents. Raise OSError.

    Access by others is removed from a `.tpudeploy` folder and its contents, which earlier versions left readable.
    """
    ours = _tpudeploy_folder(folder)
    # It mostly exists: this is asked at every save, and paths of the parents take longer than the save's other work.
    if not folder.is_dir():
        whole = folder.absolute()
        missing_folders = list(takewhile(lambda each: not each.is_dir(), (whole, *whole.parents)))
        for each in reversed(missing_folders):
            is_ours = ours is not None and each.is_relative_to(ours)
            each.mkdir(mode=_OWNERS_FOLDER if is_ours else _ANYONES_FOLDER, exist_ok=True)
    if ours is not None:
        _close_to_others(ours)


def file_mode(path: Path) -> int:
    """Return the mode that a file is created with, before the umask."""
    return 0o666 if _tpudeploy_folder(path) is None else _OWNERS_FILE


def _tpudeploy_folder(path: Path) -> str | None:
    """Return the `.tpudeploy` folder that holds `path`, or that it is; None elsewhere.

    It is found in the text: this runs several times a step, and the parents of a path take ten times as long.
    """
    before, name, _ = f"{path.absolute()}/".rpartition(f"/{STATES}/")
    return f"{before}/{STATES}" if name else None


def append(path: Path, line: bytes, *, keep: int) -> None:
    """Append a line. A file that has grown to twice `keep` bytes is replaced by its last lines of `keep` bytes.

    The lines of several runs never mix: each is one write. A run that appends waits for one that replaces the file, so
    that no line is lost; only that of an earlier version, which does not wait, may be. Killed at any moment, it leaves
    the whole file or its last lines. Raise OSError.
    """
    handle = _open_locked(path)
    try:
        size = os.fstat(handle).st_size
        is_torn = size > 0 and os.pread(handle, 1, size - 1) != b"\n"
        whole = b"\n" + line if is_torn else line
        if os.write(handle, whole) < len(whole):
            raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
        if size + len(whole) >= 2 * keep:
            _write_beside(path, last_lines(path, keep), file_mode(path))
    finally:
        os.close(handle)  # releases the kernel's lock


def last_lines(path: Path, most: int) -> bytes:
    """Return the last lines of a file, of at most `most` bytes together. Raise OSError."""
    with path.open("rb") as file:
        skipped = max(0, os.fstat(file.fileno()).st_size - most)
        # From the byte before, so that a line that begins exactly there is whole.
        file.seek(max(0, skipped - 1))
        if skipped:
            file.readline()
        return file.read()


def _open_locked(path: Path) -> int:
    """Return a handle to append to a file, locked until it is closed. Raise OSError."""
    while True:
        handle = os.open(path, os.O_RDWR | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, file_mode(path))
        fcntl.flock(handle, fcntl.LOCK_EX)
        # Another run may have replaced the file while this one waited.
        with suppress(FileNotFoundError):
            if os.path.samestat(os.fstat(handle), path.stat()):
                return handle
        os.close(handle)


def hide_from_git(folder: Path, what: str = "*") -> None:
    """Make git ignore a folder, unless it has a .gitignore: a state belongs to one machine and is not source."""
    rules = folder / ".gitignore"
    if not rules.exists():
        rules.write_text(f"{what}\n", encoding="utf-8")
        if file_mode(rules) == _OWNERS_FILE:
            rules.chmod(_OWNERS_FILE)


@contextmanager
def writing(path: Path) -> Iterator[None]:
    """Raise `errors.StateError` in place of OSError."""
    try:
        yield
    except OSError as cause:
        raise errors.StateError(
            f"{path} cannot be written: {cause.strerror or cause}.",
            hint="Its previous content is intact, and nothing was requested that it does not record.",
        ) from cause


def _close_to_others(ours: str) -> None:
    """Remove access by others, once; later files are created with the right modes.

    A link or a folder of another user is left as it is.
    """
    status = os.lstat(ours)
    if not stat.S_ISDIR(status.st_mode) or status.st_uid != os.geteuid() or not status.st_mode & _OTHERS_BITS:
        return
    for folder, _, names in os.walk(ours, topdown=False):
        for name in names:
            file = Path(folder, name)
            if stat.S_ISREG(file.lstat().st_mode):
                file.chmod(_OWNERS_FILE)
        Path(folder).chmod(_OWNERS_FOLDER)


def _write_beside(path: Path, content: bytes, mode: int) -> None:
    """Write a new file beside the old one and rename it.

    The new file has a fixed name, because the writer holds the lock. The next run overwrites the file of a killed run.
    """
    folder_name, name = os.path.split(path)
    beside = f"{folder_name or os.curdir}/.{name}.new"
    handle = os.open(beside, os.O_WRONLY | os.O_CREAT | os.O_TRUNC | os.O_CLOEXEC, mode)
    with os.fdopen(handle, "wb") as file:
        if mode == _OWNERS_FILE:  # a file that a killed run of an earlier version left behind may have a wider mode
            os.fchmod(handle, mode)
        file.write(content)
        file.flush()
        os.fsync(file.fileno())
    os.replace(beside, path)  # noqa: PTH105 - each Path costs as much as the call, and a run does this at every step
    folder = os.open(folder_name or os.curdir, os.O_RDONLY)
    try:
        os.fsync(folder)
    finally:
        os.close(folder)
