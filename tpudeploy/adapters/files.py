"""Read files for profiles within their limits, and logs from disk or stdin.

Why: decision 54 in docs/decisions.md.
"""

from __future__ import annotations

import codecs
import errno
import gzip
import io
import os
import re
import stat
import sys
import zlib
from collections import deque
from collections.abc import Callable, Iterable
from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.adapters.project import absolute
from tpudeploy.adapters.state.disk import read_handle
from tpudeploy.catalog import closest
from tpudeploy.config.reader import MAX_BYTES, Unreadable
from tpudeploy.config.withhold import without_text
from tpudeploy.domain.errors import ConfigError, UsageError
from tpudeploy.text.words import some

if TYPE_CHECKING:
    from _typeshed import SupportsRead

_READ = os.O_RDONLY | os.O_CLOEXEC | os.O_NONBLOCK  # without O_NONBLOCK, opening a FIFO would wait for a writer
_YAML = (".yaml", ".yml")
_ENDINGS = (*_YAML, ".json", ".sh")
# The message must be right for `ci` and `mcp`, whose authors are never trusted, and for all other commands.
_OUTSIDE_HINT = (
    "keep a copy inside the project; `ci` and `mcp` open no other file, and other commands do for an author that you "
    "trust: without -untrusted, and without `untrusted` in tpudeploy.toml"
)


def read_file(path: str | Path, most: int) -> bytes:
    """Return the content of a regular file of at most `most` bytes that the operator names; links are followed.

    Raise OSError for anything else, e.g. a FIFO, which would never end, and ValueError for what is no path.
    """
    handle = _open_regular(path)
    try:
        return read_handle(handle, most, Path(path).name)
    finally:
        os.close(handle)


def read_beginning(path: str | Path, most: int) -> bytes:
    """Return the first `most` bytes of a regular file. Raise as `read_file` does."""
    handle = _open_regular(path)
    try:
        return os.read(handle, most)
    finally:
        os.close(handle)


def read_end(path: str | Path, most: int) -> bytes:
    """Return the last `most` bytes of a regular file. Raise as `read_file` does."""
    handle = _open_regular(path)
    try:
        os.lseek(handle, max(0, os.fstat(handle).st_size - most), os.SEEK_SET)
        with os.fdopen(handle, "rb", closefd=False) as file:
            return file.read(most)
    finally:
        os.close(handle)


def _open_regular(path: str | Path) -> int:
    handle = os.open(path, _READ)
    if not stat.S_ISREG(os.fstat(handle).st_mode):
        is_folder = stat.S_ISDIR(os.fstat(handle).st_mode)
        os.close(handle)
        number = errno.EISDIR if is_folder else errno.EINVAL
        raise OSError(number, "it is a folder" if is_folder else "it is not a regular file")
    return handle


class FileReader:
    """Reads regular files only, and no more of one than the maximum size of a profile.

    With a `project`, it opens only files at or below that folder after links are resolved: .yaml, .yml, .json and
    .sh files that are not hidden (.git and .env hold credentials). Of the `operator_paths`, one that is outside of the
    project as written is opened too; one that only leads outside by a link is not.

    A file is read once: what is made of it later is of the same content, also after an edit.
    """

    def __init__(self, project: Path | None = None, *, operator_paths: Iterable[str] = ()) -> None:
        self._project = project
        self._operator_paths = frozenset(operator_paths)
        self._outside_paths = frozenset() if project is None else _outside_paths(project, self._operator_paths)
        self._contents: dict[str, bytes] = {}

    def read(self, path: str) -> bytes:
        content = self._contents.get(path)
        if content is None:
            content = self._contents[path] = self._open(path)
        return content

    def edited_files(self) -> tuple[str, ...]:
        """Return the files that have another content now than when they were read, or cannot be read."""

        def is_edited(path: str) -> bool:
            try:
                return self._open(path) != self._contents[path]
            except Unreadable:
                return True

        return tuple(path for path in self._contents if is_edited(path))

    def _open(self, path: str) -> bytes:
        if self._project is None or path in self._outside_paths:
            return self._read(path, lambda: os.open(path, _READ))
        project = self._project
        try:
            return self._read(path, lambda: open_inside(project, path, _ENDINGS))
        except Unreadable as error:
            if path in self._operator_paths:
                raise
            # The hint names the files beside the path, and the author of a profile must not learn those.
            raise Unreadable(error.reason, missing=error.missing) from error
        except Outside as error:
            raise Unreadable(f"{error}, and this profile is untrusted", hint=_OUTSIDE_HINT, is_refused=True) from error

    def _read(self, path: str, open_file: Callable[[], int]) -> bytes:
        try:
            descriptor = open_file()
        except (OSError, ValueError) as error:
            raise _unreadable(path, error) from error
        try:
            status = os.fstat(descriptor)
            if not stat.S_ISREG(status.st_mode):
                raise Unreadable("is not a regular file", hint="a profile is a text file")
            content = os.read(descriptor, min(status.st_size, MAX_BYTES) + 1)
            if len(content) != status.st_size:  # it is too large, has just changed, or comes in parts from a network
                with os.fdopen(descriptor, "rb", closefd=False) as file:
                    content += file.read(MAX_BYTES + 1 - len(content))
        except OSError as error:
            raise _unreadable(path, error) from error
        else:
            return content
        finally:
            os.close(descriptor)

    def resolve(self, base: str, relative: str) -> str:
        return os.path.normpath(Path(base).parent / relative)


class Outside(Exception):
    """A path must not be opened: it is outside of the project, hidden, or not a file of an allowed type."""


def is_inside(project: Path, path: str) -> bool:
    """Return whether a path is at or below a folder after links are resolved."""
    try:
        return Path(os.path.realpath(path)).is_relative_to(os.path.realpath(project))
    except (OSError, ValueError):
        return False


def without_quotes(error: ConfigError, path: Path, project: Path) -> ConfigError:
    """Return an error about a file without the text of one that is outside the project.

    Where a link leads there, only the places are left; a file that a person named keeps its messages without its lines.
    """
    if is_inside(project, str(path)):
        return error
    places = [
        replace(each, location=each.location and replace(each.location, file=str(path), text=""))
        for each in error.diagnostics
    ]
    is_named = path.resolve() == absolute(path)
    return ConfigError(error.message, diagnostics=places if is_named else without_text(places, {str(path)}))


def open_inside(project: Path, path: str, endings: tuple[str, ...]) -> int:
    """Open a file of the project for reading, and return the descriptor. Raise Outside, OSError or ValueError.

    Links are resolved first; then the result is opened folder by folder without following links. A link that is
    created in between is an error, and cannot lead outside.
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
    directory = os.open(root, _READ | os.O_DIRECTORY)
    try:
        for folder in folders:
            subdirectory = os.open(folder, _READ | os.O_DIRECTORY | os.O_NOFOLLOW, dir_fd=directory)
            os.close(directory)
            directory = subdirectory
        return os.open(name, _READ | os.O_NOFOLLOW, dir_fd=directory)
    finally:
        os.close(directory)


def _outside_paths(project: Path, paths: Iterable[str]) -> frozenset[str]:
    """Return the paths that are outside of the project as written, without resolving links."""
    root = absolute(project)
    return frozenset(path for path in paths if not absolute(Path(path)).is_relative_to(root))


def _unreadable(path: str, error: OSError | ValueError) -> Unreadable:
    match error:
        case FileNotFoundError() | NotADirectoryError():
            return _missing(path)
        case PermissionError():
            return Unreadable("cannot be read: permission denied", hint="check its permissions")
        case OSError():
            return Unreadable(f"cannot be read: {error.strerror}")
        case _:
            return Unreadable("is not a valid file name")


def _no_path(text: str) -> str:
    """Return advice for a word that cannot be a file: stdin, an address, a model; or ""."""
    if Path(text).name == "-":
        return "a profile is a file, because its lines are named: write it to one first"
    if re.search(r"(^|/)(https?|gs|hf):/", text):
        return "a profile is a file, not an address: download it, or name the file"
    if re.fullmatch(r"[\w.-]+/[\w.-]+", text) and not text.endswith((".yaml", ".yml")):
        return "" if Path(text).parent.is_dir() else "a profile is a file; `tpudeploy init` writes one for a model"
    if re.fullmatch(r"(v\d\w*|tpu7x)-\d+", text):
        return f"a slice type goes with `-type`: `tpudeploy zones -type {text}`"
    return ""


def _missing(text: str) -> Unreadable:
    """Return the error of a file that does not exist, with the YAML files of its folder, and one of nearly its name."""
    path, guess = Path(text), ""
    hint = _no_path(text)
    if not hint and path.is_symlink():
        hint = f"it is a link to `{path.readlink()}`, which does not exist"
    elif not hint and not path.parent.is_dir():
        hint = f"there is no folder `{path.parent}`"
    elif not hint:
        files = sorted(p for p in path.parent.iterdir() if p.suffix in _YAML and p.is_file() and p.name[0] != ".")
        hint = f"there are: {some(map(str, files), 8)}" if files else "`tpudeploy init` writes a profile"
        stems = {file.stem.casefold(): file for file in files}  # all have the same endings, which make none alike
        near = closest(path.stem.casefold(), stems)
        guess = f'did you mean "{stems[near]}"?' if near else ""
    return Unreadable("does not exist", hint=hint, guess=guess, missing=True)


# A boot of 199 graphs writes 170 KB. Of a server's log over days, only the end is read.
_MOST_BYTES = 64 * 2**20
_PART = 2**20
_GZIP = b"\x1f\x8b"
_MOST_DECOMPRESSED = 16 * _MOST_BYTES  # the end of a compressed log is reached only through its beginning
_UTF_16 = {codecs.BOM_UTF16_LE: "utf-16-le", codecs.BOM_UTF16_BE: "utf-16-be"}


def read_log(path: str) -> str:
    """Return the end of a log in UTF-8 or UTF-16, which may be compressed by gzip; `-` means stdin.

    Raise `errors.UsageError` where it cannot be read.
    """
    try:
        if path == "-":
            return _decoded(_end_of(sys.stdin.buffer))
        with os.fdopen(_open_regular(path), "rb") as file:
            start = file.read(len(_GZIP))
            skipped = 0 if start == _GZIP else max(0, os.fstat(file.fileno()).st_size - _MOST_BYTES)
            file.seek(skipped - skipped % 2)  # UTF-16 has two bytes or four for each letter
            return _decoded(_end_of(file), start)
    except (OSError, EOFError, zlib.error) as cause:
        raise UsageError(f"`{path}` cannot be read: {getattr(cause, 'strerror', None) or cause}.") from cause


def _end_of(stream: SupportsRead[bytes], most: int | None = None) -> bytes:
    """Return the end of a stream, of which at most `most` bytes are read."""
    parts = deque[bytes](maxlen=_MOST_BYTES // _PART + 1)
    total = 0
    while (most is None or total < most) and (part := stream.read(_PART)):
        parts.append(part)
        total += len(part)
    return b"".join(parts)


def _decoded(content: bytes, start: bytes = b"") -> str:
    """Return the text of a log's bytes. `start`: the first bytes of its file, where the content is only its end."""
    if content.startswith(_GZIP):
        with gzip.GzipFile(fileobj=io.BytesIO(content)) as file:
            content = _end_of(file, most=_MOST_DECOMPRESSED)
    encoding = _UTF_16.get(content[:2]) or _UTF_16.get(start) or "utf-8"
    return content.decode(encoding, "replace")
