"""Files: the reader that parse() asks for the sources of a profile, and the project that it may be confined to."""

from __future__ import annotations

import os
import stat
from collections.abc import Callable, Iterable
from pathlib import Path

from tpudeploy.config.reader import MAX_BYTES, Unreadable

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # without O_NONBLOCK, opening a FIFO would wait for a writer
_ENDINGS = (".yaml", ".yml", ".json")
# It is read at every door, and at two of them nobody can trust an author.
_OUTSIDE = (
    "keep a copy inside the project; `ci` and `mcp` open no other file, and other commands do for an author that you "
    "trust: without -untrusted, and without `untrusted` in tpudeploy.toml"
)


class FileReader:
    """Reads regular files only, and never more of one than a profile may be long.

    With a `project`, it opens what lies at or below that folder, links followed to their end: .yaml, .yml and .json
    files, none of them hidden (.git and .env hold credentials). `named` are the operator's own words: a path among
    them that lies elsewhere as it is written is opened too, and one that only leads elsewhere is not.
    """

    def __init__(self, project: Path | None = None, *, named: Iterable[str] = ()) -> None:
        self._project = project
        self._named = frozenset(named)
        self._elsewhere = frozenset() if project is None else _elsewhere(project, self._named)

    def read(self, path: str) -> bytes:
        if self._project is None or path in self._elsewhere:
            return self._read(path, lambda: os.open(path, _READ))
        project = self._project
        try:
            return self._read(path, lambda: open_inside(project, path, _ENDINGS))
        except Unreadable as error:
            if path in self._named:
                raise
            # The hint names what lies beside it, which a profile is not told.
            raise Unreadable(error.reason, missing=error.missing) from error
        except Outside as error:
            raise Unreadable(f"{error}, and this profile is untrusted", hint=_OUTSIDE, is_refused=True) from error

    def _read(self, path: str, opened: Callable[[], int]) -> bytes:
        try:
            descriptor = opened()
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


class Outside(Exception):
    """A path may not be opened: it leaves the project, or names a hidden file or one of another kind."""


def is_inside(project: Path, path: str) -> bool:
    """Return whether a path lies at or below a folder, links followed to their end."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project))
    except (OSError, ValueError):
        return False


def open_inside(project: Path, path: str, endings: tuple[str, ...]) -> int:
    """Open a file of the project for reading; the descriptor. Raise Outside, OSError or ValueError.

    The links are followed first and the result is opened folder by folder without any: a link that somebody puts in
    its place meanwhile is an error, and not a way out.
    """
    root = os.path.realpath(project)
    real = os.path.realpath(path)
    if not Path(real).is_relative_to(root):
        raise Outside("lies outside the project")
    *folders, name = Path(real).relative_to(root).parts or (".",)
    if any(part.startswith(".") for part in (*folders, name)):
        raise Outside("is hidden")
    if not name.endswith(endings):
        raise Outside(f"does not end in {', '.join(endings)}")
    held = os.open(root, _READ | os.O_DIRECTORY)
    try:
        for folder in folders:
            below = os.open(folder, _READ | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=held)
            os.close(held)
            held = below
        return os.open(name, _READ | os.O_NOFOLLOW, dir_fd=held)
    finally:
        os.close(held)


def _elsewhere(project: Path, named: Iterable[str]) -> frozenset[str]:
    """Those that lie outside of the project as they are written, whatever links there are."""
    root = os.path.normpath(project.absolute())
    return frozenset(path for path in named if not Path(os.path.normpath(Path(path).absolute())).is_relative_to(root))


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
