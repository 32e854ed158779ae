"""The one place that writes files: in folders that no link leads out of, atomically, exclusively, and hidden from git.

A project may be another person's repository, and git checks out links as its author made them. A folder is therefore
opened from its root downwards by directory handles, without following a link, and every file in it is opened relative
to its handle. Why: decision 79 in docs/decisions.md.

Only the owner can read files in a `.tpudeploy` folder, because states and runs hold every plain value of a profile
and the answers of servers. A backend folder that the user names keeps its modes, because a team may share it.
"""

from __future__ import annotations

import errno
import fcntl
import json
import os
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Self

from tpudeploy.adapters.project import STATES, absolute
from tpudeploy.config.settings import FILE as SETTINGS
from tpudeploy.domain import errors

MAX_BYTES = 512 * 2**20  # of a file of ours: a state of a thousand deployments' history is a fifth of it
_LONGEST_LINE = 64 * 2**10  # of a killed writer, that is removed

_OWNERS_FOLDER, _OWNERS_FILE = 0o700, 0o600
_ANYONES_FOLDER, _ANYONES_FILE = 0o777, 0o666  # before the umask
_OTHERS_BITS = stat.S_IRWXG | stat.S_IRWXO
_FOLDER = os.O_RDONLY | os.O_DIRECTORY | os.O_CLOEXEC
# Without O_NONBLOCK, opening a FIFO would wait for its other end.
_READ = os.O_RDONLY | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_IN_PLACE = os.O_RDWR | os.O_CREAT | os.O_NOFOLLOW | os.O_NONBLOCK | os.O_CLOEXEC
_NEW = os.O_WRONLY | os.O_CREAT | os.O_EXCL | os.O_NOFOLLOW | os.O_CLOEXEC


class NotOurs(OSError):
    """A file or folder that is in the place of ours: a link, a device, a second name, or another user's."""

    HINT = (
        "tpudeploy writes only into files and folders that it made. Remove this one, or keep the states elsewhere: "
        "--backend DIR"
    )

    def __init__(self, name: str, what: str) -> None:
        super().__init__(errno.EPERM, f"`{name}` {what}")


class Folder:
    """A folder that is read and written through. It is created when it is first written to.

    `root` is trusted as it is named, by the operator. Nothing below it may be a link. By default, it is the project of
    a `.tpudeploy` folder, and any other folder itself. No handle is kept open between two calls.
    """

    __slots__ = ("_parts", "_private_from", "_root", "path")

    def __init__(self, path: Path, *, root: Path | None = None) -> None:
        whole = str(absolute(path))
        before, is_private, _ = f"{whole}/".partition(f"/{STATES}/")
        project = (before or "/") if is_private else whole
        top = project if root is None else str(absolute(root))
        if not f"{project}/".startswith(f"{top.rstrip('/')}/"):  # it is elsewhere, or in a `.tpudeploy` folder itself
            top = project
        self.path = path
        self._root = top
        self._parts = Path(whole).relative_to(top).parts
        # The number of the first part that only its owner can read.
        self._private_from = len(Path(project).parts) - len(Path(top).parts) if is_private else len(self._parts)

    @classmethod
    def for_file(cls, file: Path, *, here: Path | None = None) -> Self:
        """Return the folder of a file that the operator names, who works in `here`.

        Its root is the outermost folder whose content may be another person's: the repository or project that the file
        is in, or `here`. A file that is in none of them is where the operator says.
        """
        folder = absolute(file.parent)
        start = absolute(here or Path())
        above = [folder, *folder.parents]
        roots = [each for each in above if each == start or any((each / name).exists() for name in _PROJECT)]
        return cls(file.parent, root=roots[-1] if roots else None)

    def sub(self, *names: str) -> Folder:
        """Return a folder below this one, with the same root."""
        return Folder(self.path.joinpath(*names), root=Path(self._root))

    def replace(self, name: str, text: str, *, is_private: bool = False) -> None:
        """Replace a file atomically: a reader sees the old text or the new one, even after a power failure.

        `is_private` makes it readable by its owner only, in any folder. Raise `errors.StateError`.
        """
        try:
            handle = self._open_for(name, create=True)
            try:
                self._check_target(handle, name)
                self._write_beside(handle, name, text.encode(), _OWNERS_FILE if is_private else self._mode)
            finally:
                os.close(handle)
        except OSError as cause:
            raise _not_written(self.path / name, cause) from cause

    def check(self, name: str) -> None:
        """Raise `errors.StateError` if a later write to this file would be refused."""
        with self.writing(name), suppress(FileNotFoundError):
            handle = self._open_for(name)
            try:
                self._check_target(handle, name)
            finally:
                os.close(handle)

    def create(self, name: str, content: str | bytes, *, is_private: bool = False) -> bool:
        """Write a new file and return True, or return False if there is one of any kind. Raise OSError.

        A file that cannot be written completely is removed.
        """
        folder = self._open_for(name)
        try:
            handle = os.open(name, _NEW, _OWNERS_FILE if is_private else self._mode, dir_fd=folder)
            try:
                _write_whole(handle, content.encode() if isinstance(content, str) else content)
            except OSError:
                os.unlink(name, dir_fd=folder)
                raise
            finally:
                os.close(handle)
        except FileExistsError:
            return False
        finally:
            os.close(folder)
        return True

    def append(self, name: str, line: bytes, *, keep: int) -> None:
        """Append a line. A file that has grown to twice `keep` bytes is replaced by its last lines of `keep` bytes.

        The lines of several runs never mix: each is one write. A run that appends waits for one that replaces the file,
        so that no line is lost; only that of an earlier version, which does not wait, may be. Killed at any moment, it
        leaves the whole file or its last lines. Raise OSError.
        """
        folder = self._open_for(name, create=True)
        try:
            handle = self._open_locked(folder, name)
            try:
                size = os.fstat(handle).st_size
                rest = _incomplete_line(handle, size)
                if 0 < len(rest) < _LONGEST_LINE and not _is_json(rest):
                    # The line of a killed writer. Completed by another line, it would look damaged.
                    size -= len(rest)
                    os.ftruncate(handle, size)
                    rest = b""
                whole = b"\n" + line if rest else line
                if os.write(handle, whole) < len(whole):
                    raise OSError(errno.ENOSPC, os.strerror(errno.ENOSPC))
                if size + len(whole) >= 2 * keep:
                    self._write_beside(folder, name, _last_lines(handle, keep), self._mode)
            finally:
                os.close(handle)  # releases the kernel's lock
        finally:
            os.close(folder)

    def open_in_place(self, name: str, *, flags: int = 0) -> int:
        """Return a handle of a file that is written in place, e.g. a lock. It is created if absent. Raise OSError."""
        folder = self._open_for(name, create=True)
        try:
            return self._open_in_place(folder, name, flags)
        finally:
            os.close(folder)

    def open_to_read(self, name: str) -> int:
        """Return a handle of a file. Raise OSError."""
        folder = self._open_for(name)
        try:
            try:
                handle = os.open(name, _READ, dir_fd=folder)
            except OSError as cause:
                if cause.errno == errno.ELOOP:
                    raise NotOurs(name, "is a link") from cause
                raise
        finally:
            os.close(folder)
        if not stat.S_ISREG(os.fstat(handle).st_mode):
            os.close(handle)
            raise NotOurs(name, "is not a regular file")
        return handle

    def read(self, name: str) -> bytes:
        """Return the content of a file. Raise OSError."""
        handle = self.open_to_read(name)
        try:
            return read_handle(handle, MAX_BYTES, name)
        finally:
            os.close(handle)

    def last_lines(self, name: str, most: int) -> bytes:
        """Return the last lines of a file, of at most `most` bytes together. Raise OSError."""
        handle = self.open_to_read(name)
        try:
            return _last_lines(handle, most)
        finally:
            os.close(handle)

    def remove(self, name: str) -> None:
        """Delete a file, if there is one. Raise OSError."""
        with suppress(FileNotFoundError):
            folder = self._open_for(name)
            try:
                os.unlink(name, dir_fd=folder)
            finally:
                os.close(folder)

    def keep_link(self, name: str, source: Folder, source_name: str) -> int:
        """Keep a file of another folder under a second name, and return how many files are here. Raise OSError.

        The files are replaced and never modified, so a second name costs no space. Where the file system has none, the
        file is copied.
        """
        folder, other = self._open_for(name, create=True), -1
        try:
            other = source.open()
            try:
                os.link(source_name, name, src_dir_fd=other, dst_dir_fd=folder, follow_symlinks=False)
            except FileExistsError:  # a run that was killed before it replaced the file had kept it already
                pass
            except OSError:
                self._write_beside(folder, name, source.read(source_name), self._mode)
            return len(os.listdir(folder))  # noqa: PTH208 - a Path takes no handle
        finally:
            os.close(folder)
            if other >= 0:
                os.close(other)

    def files(self, ending: str) -> dict[str, os.stat_result]:
        """Return what is here with names that end so; nothing where the folder is absent. Raise OSError.

        What is not a regular file is among them: reading it is an error.
        """
        files: dict[str, os.stat_result] = {}
        try:
            folder = self.open()
        except FileNotFoundError:
            return files
        try:
            with os.scandir(folder) as entries:
                for entry in entries:
                    if entry.name.endswith(ending) and not entry.name.startswith("."):
                        with suppress(FileNotFoundError):  # another run has deleted it in the meantime
                            files[entry.name] = entry.stat(follow_symlinks=False)
        finally:
            os.close(folder)
        return files

    def make(self) -> None:
        """Create the folder. Raise `errors.StateError`."""
        try:
            os.close(self.open(create=True))
        except OSError as cause:
            raise _not_written(self.path, cause) from cause

    def hide_from_git(self, what: str = "*") -> None:
        """Make git ignore the folder, unless it has a .gitignore: a state belongs to one machine and is not source.

        Raise OSError.
        """
        folder = self.open(create=True)
        try:
            with suppress(FileExistsError):
                handle = os.open(".gitignore", _NEW, self._mode, dir_fd=folder)
                try:
                    _write_whole(handle, f"{what}\n".encode())
                finally:
                    os.close(handle)
        finally:
            os.close(folder)

    @contextmanager
    def writing(self, name: str = "") -> Iterator[None]:
        """Raise `errors.StateError` in place of OSError."""
        try:
            yield
        except OSError as cause:
            raise _not_written(self.path / name, cause) from cause

    @property
    def _mode(self) -> int:
        """Return the mode that a file is created with, before the umask."""
        return _OWNERS_FILE if self._is_private else _ANYONES_FILE

    @property
    def _is_private(self) -> bool:
        return self._private_from < len(self._parts)

    def open(self, *, create: bool = False) -> int:
        """Return a handle of the folder. Raise OSError; FileNotFoundError if it is absent.

        Access by others is removed from a `.tpudeploy` folder and its contents, which earlier versions left readable.
        """
        try:
            handle = os.open(self._root, _FOLDER)
        except FileNotFoundError:
            if not create:
                raise
            Path(self._root).mkdir(mode=_ANYONES_FOLDER, parents=True, exist_ok=True)
            handle = os.open(self._root, _FOLDER)
        try:
            status = os.fstat(handle)
            for number, part in enumerate(self._parts):
                mode = _OWNERS_FOLDER if number >= self._private_from else _ANYONES_FOLDER
                child = _open_part(handle, part, mode if create else None)
                os.close(handle)
                handle = child
                own_status = os.fstat(handle)
                _check_owner(part, own_status, status)
                status = own_status
                if create and number == self._private_from and status.st_mode & _OTHERS_BITS:
                    _close_to_others(handle)
        except BaseException:
            os.close(handle)
            raise
        return handle

    def _open_for(self, name: str, *, create: bool = False) -> int:
        """Return a handle of the folder, for a file in it. Raise NotOurs if its name leads elsewhere, and OSError."""
        if "/" in name or "\0" in name or name in {"", ".", ".."}:
            raise NotOurs(name, "is not the name of a file")
        return self.open(create=create)

    def _open_in_place(self, folder: int, name: str, flags: int) -> int:
        try:
            handle = os.open(name, _IN_PLACE | flags, self._mode, dir_fd=folder)
        except OSError as cause:
            if cause.errno == errno.ELOOP:
                raise NotOurs(name, "is a link") from cause
            raise
        try:
            _check_in_place(name, os.fstat(handle), os.fstat(folder))
        except NotOurs:
            os.close(handle)
            raise
        return handle

    def _open_locked(self, folder: int, name: str) -> int:
        """Return a handle to append to a file, locked until it is closed. Raise OSError."""
        while True:
            handle = self._open_in_place(folder, name, os.O_APPEND)
            fcntl.flock(handle, fcntl.LOCK_EX)
            # Another run may have replaced the file while this one waited.
            with suppress(FileNotFoundError):
                status = os.fstat(handle)
                if os.path.samestat(status, os.stat(name, dir_fd=folder, follow_symlinks=False)):
                    return handle
            os.close(handle)

    def _check_target(self, folder: int, name: str) -> None:
        """Raise NotOurs if what a file is about to replace is not ours."""
        try:
            status = os.stat(name, dir_fd=folder, follow_symlinks=False)
        except FileNotFoundError:
            return
        if stat.S_ISLNK(status.st_mode):
            raise NotOurs(name, "is a link")
        if not stat.S_ISREG(status.st_mode):
            raise NotOurs(name, "is not a regular file")
        if status.st_uid != os.geteuid():
            _check_owner(name, status, os.fstat(folder))

    def _write_beside(self, folder: int, name: str, content: bytes, mode: int) -> None:
        """Write a new file beside the old one and rename it.

        The new file has a fixed name, because the writer holds the lock. What a killed run left there, or another user
        put there, is removed and never opened.
        """
        beside = f".{name}.new"
        try:
            handle = os.open(beside, _NEW, mode, dir_fd=folder)
        except FileExistsError:
            os.unlink(beside, dir_fd=folder)
            handle = os.open(beside, _NEW, mode, dir_fd=folder)
        try:
            _write_whole(handle, content)
            os.fsync(handle)
        finally:
            os.close(handle)
        os.rename(beside, name, src_dir_fd=folder, dst_dir_fd=folder)
        os.fsync(folder)


_PROJECT = (".git", f"{STATES}/state", SETTINGS)  # what makes a folder the root of a repository or project


def replace(path: Path, text: str, *, here: Path | None = None, is_private: bool = False) -> None:
    """Replace a file that the operator names, as `Folder.replace` does. Raise `errors.StateError`."""
    Folder.for_file(path, here=here).replace(path.name, text, is_private=is_private)


def read_handle(handle: int, most: int, name: str) -> bytes:
    """Return the content of an open file of at most `most` bytes. Raise OSError."""
    size = os.fstat(handle).st_size
    if size > most:
        raise OSError(errno.EFBIG, f"`{name}` has {size / 2**20:,.0f} MiB, and at most {most / 2**20:,.0f} are read")
    content = os.read(handle, size + 1)
    if len(content) == size:
        return content
    parts = [content]  # it has just changed, or comes in parts from a network
    while part := os.read(handle, 2**20):
        parts.append(part)
        if sum(map(len, parts)) > most:
            raise OSError(errno.EFBIG, f"`{name}` grows while it is read")
    return b"".join(parts)


def _not_written(path: Path, cause: OSError) -> errors.StateError:
    hint = "Its previous content is intact, and nothing was requested that it does not record."
    return errors.StateError(
        f"{path} cannot be written: {cause.strerror or cause}.",
        hint=NotOurs.HINT if isinstance(cause, NotOurs) else hint,
    )


def _open_part(folder: int, part: str, mode: int | None) -> int:
    """Return a handle of a folder in a folder; one that is absent is created, if there is a mode. Raise OSError."""
    try:
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except FileNotFoundError:
        if mode is None:
            raise
        with suppress(FileExistsError):  # another run has just created it
            os.mkdir(part, mode, dir_fd=folder)
        return os.open(part, _FOLDER | os.O_NOFOLLOW, dir_fd=folder)
    except OSError as cause:
        if stat.S_ISLNK(os.stat(part, dir_fd=folder, follow_symlinks=False).st_mode):
            raise NotOurs(part, "is a link") from cause
        raise


def _check_in_place(name: str, status: os.stat_result, folder: os.stat_result) -> None:
    """Raise NotOurs for a file that must not be written in place, because it may be another one too."""
    if not stat.S_ISREG(status.st_mode):
        raise NotOurs(name, "is not a regular file")
    if status.st_nlink > 1:
        raise NotOurs(name, "has a second name elsewhere (a hard link)")
    _check_owner(name, status, folder)


def _check_owner(name: str, status: os.stat_result, folder: os.stat_result) -> None:
    """Raise NotOurs for what another user put into a folder.

    It is ours if we own it, if its folder's owner or root does, or if its folder is one that a team shares: writable
    by its group and not by everyone.
    """
    is_shared = folder.st_mode & stat.S_IWGRP and not folder.st_mode & stat.S_IWOTH
    if status.st_uid not in {os.geteuid(), folder.st_uid, 0} and not is_shared:
        raise NotOurs(name, f"belongs to another user (uid {status.st_uid})")


def _write_whole(handle: int, content: bytes) -> None:
    count = os.write(handle, content)
    while count < len(content):
        count += os.write(handle, content[count:])


def _incomplete_line(handle: int, size: int) -> bytes:
    """Return what follows the last end of a line."""
    since = max(0, size - _LONGEST_LINE)
    return os.pread(handle, size - since, since).rpartition(b"\n")[2]


def _is_json(text: bytes) -> bool:
    try:
        json.loads(text)
    except (ValueError, RecursionError):
        return False
    return True


def _last_lines(handle: int, most: int) -> bytes:
    skipped = max(0, os.fstat(handle).st_size - most)
    with os.fdopen(handle, "rb", closefd=False) as file:
        # From the byte before, so that a line that begins exactly there is whole.
        file.seek(max(0, skipped - 1))
        if skipped:
            file.readline()
        return file.read()


def _close_to_others(top: int) -> None:
    """Remove access by others, once; later files are created with the right modes. Links are left as they are.

    A folder of another user is left as it is. Raise OSError.
    """
    if os.fstat(top).st_uid != os.geteuid():
        return
    for _, _, names, folder in os.fwalk(".", topdown=False, dir_fd=top):
        for name in names:
            with suppress(FileNotFoundError, NotOurs), _opened(folder, name) as handle:
                os.fchmod(handle, _OWNERS_FILE)
        os.fchmod(folder, _OWNERS_FOLDER)


@contextmanager
def _opened(folder: int, name: str) -> Iterator[int]:
    """Yield a handle of a regular file in a folder. Raise NotOurs for anything else."""
    if not stat.S_ISREG(os.stat(name, dir_fd=folder, follow_symlinks=False).st_mode):
        raise NotOurs(name, "is not a regular file")
    handle = os.open(name, _READ, dir_fd=folder)
    try:
        yield handle
    finally:
        os.close(handle)
