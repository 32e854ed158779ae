"""Earlier states, kept in a folder as hard links to the files that are about to be replaced, which cost no space."""

from __future__ import annotations

import shutil
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path

from tpudeploy.adapters.state import disk, stored
from tpudeploy.domain import errors
from tpudeploy.domain.state import State

MAX_STATES = 10  # per deployment: a hunt writes 10 in a few minutes, a user's command writes one


def keep(folder: Path, path: Path, state: State) -> None:
    """Keep the file at `path`, which holds `state`, in `folder`. Raise `errors.StateError`."""
    copy = folder / f"{state.lineage[:8]}-{state.serial}.json"
    with disk.writing(copy):
        disk.make_folder(folder)
        with suppress(FileExistsError):  # a run that was killed before it replaced the file had kept it already
            _link_or_copy(path, copy)
        for old in _oldest_first(folder)[:-MAX_STATES]:
            old.unlink(missing_ok=True)


def read(folder: Path, name: str) -> Iterator[State]:
    """Yield the earlier states, newest first. Raise `errors.StateUnreadable` where the folder cannot be read."""
    contents: list[bytes] = []
    try:
        for path in reversed(_oldest_first(folder)):
            with suppress(FileNotFoundError):  # another run has deleted it in the meantime
                contents.append(path.read_bytes())
    except OSError as cause:
        raise errors.StateUnreadable(f"{folder} cannot be read: {cause.strerror or cause}.") from cause
    return stored.readable_states(contents, name)


def _link_or_copy(path: Path, copy: Path) -> None:
    """Link or copy a state file. A link is safe, because state files are replaced and never modified."""
    try:
        copy.hardlink_to(path)
    except FileExistsError:
        raise
    except OSError:  # the file system has no hard links
        shutil.copy2(path, copy)


def _oldest_first(folder: Path) -> list[Path]:
    files: list[tuple[int, int, Path]] = []
    for path in folder.glob("*-*.json"):
        with suppress(FileNotFoundError):
            files.append((path.stat().st_mtime_ns, _serial(path), path))
    return [path for _, _, path in sorted(files)]


def _serial(path: Path) -> int:
    serial = path.stem.rpartition("-")[2]
    return int(serial) if serial.isdecimal() else 0
