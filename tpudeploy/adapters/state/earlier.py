"""Earlier states, kept in a folder: second names of files that are about to be replaced, so that each costs nothing."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tpudeploy.adapters.state import disk, stored
from tpudeploy.domain import errors
from tpudeploy.domain.state import State

KEPT = 10  # of a deployment: a hunt writes as many in a few minutes, a person's commands one each


def keep(folder: Path, path: Path, state: State) -> None:
    """Let the file at `path`, which holds `state`, be found in `folder` after it is replaced.

    Raise `errors.StateError`.
    """
    there = folder / f"{state.lineage[:8]}-{state.serial}.json"
    with disk.writing(there):
        disk.make_folder(folder)
        with suppress(FileExistsError):  # kept by a run that was killed before it replaced the file
            _name_too(path, there)
        for old in _oldest_first(folder)[:-KEPT]:
            old.unlink(missing_ok=True)


def read(folder: Path, name: str) -> Iterator[State]:
    """Newest first. Raise `errors.StateUnreadable` where the folder cannot be read."""
    contents: list[bytes] = []
    try:
        for path in reversed(_oldest_first(folder)):
            with suppress(FileNotFoundError):  # a run that writes has let go of it meanwhile
                contents.append(path.read_bytes())
    except OSError as cause:
        raise errors.StateUnreadable(f"{folder} cannot be read: {cause.strerror or cause}.") from cause
    return stored.understood(contents, name)


def _name_too(path: Path, there: Path) -> None:
    """A file is written beside and renamed over, never changed: two names of one are two versions from then on."""
    try:
        there.hardlink_to(path)
    except FileExistsError:
        raise
    except OSError:  # a disk that knows no second names
        shutil.copy2(path, there)


def _oldest_first(folder: Path) -> list[Path]:
    found: list[tuple[int, int, Path]] = []
    for path in folder.glob("*-*.json"):
        with suppress(FileNotFoundError):
            found.append((path.stat().st_mtime_ns, _serial(path), path))
    return [path for _, _, path in sorted(found)]


def _serial(path: Path) -> int:
    written = path.stem.rpartition("-")[2]
    return int(written) if written.isdecimal() else 0
