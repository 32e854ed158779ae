"""Files: the reader that parse() asks for the sources of a profile."""

from __future__ import annotations

import os
import stat
from pathlib import Path

from tpudeploy.config.reader import MAX_BYTES, Unreadable


class FileReader:
    """Reads regular files only, and never more of one than a profile may be long."""

    def read(self, path: str) -> bytes:
        # Without O_NONBLOCK, opening a FIFO would wait for somebody to write into it.
        try:
            descriptor = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        try:
            if not stat.S_ISREG(os.fstat(descriptor).st_mode):
                raise Unreadable("is no regular file", hint="a profile is a text file")
            with os.fdopen(descriptor, "rb", closefd=False) as file:
                return file.read(MAX_BYTES + 1)
        except OSError as error:
            raise _unreadable(path, error) from error
        finally:
            os.close(descriptor)

    def resolve(self, base: str, relative: str) -> str:
        return os.path.normpath(Path(base).parent / relative)


def _unreadable(path: str, error: OSError | ValueError) -> Unreadable:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return Unreadable("does not exist", hint=_neighbour(Path(path)), missing=True)
        case PermissionError():
            return Unreadable("may not be read", hint="check its permissions")
        case OSError():
            return Unreadable(f"cannot be read: {error.strerror}")
        case _:
            return Unreadable("is no file's name")


def _neighbour(path: Path) -> str:
    if path.is_symlink():
        return f"it is a link to `{path.readlink()}`, which is not there"
    from difflib import get_close_matches  # only where a name is wrong

    try:
        near = get_close_matches(path.name, [p.name for p in path.parent.iterdir() if p.is_file()], n=1)
    except OSError:
        return f"there is no folder `{path.parent}`"
    return f'did you mean "{path.parent / near[0]}"?' if near else ""
