"""A folder among the profiles of a command: the profiles in it, and a word about what else lies there."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tpudeploy.adapters.files import FileReader
from tpudeploy.adapters.project import boundary_of
from tpudeploy.cli.terminal import Terminal
from tpudeploy.config.reader import Unreadable
from tpudeploy.config.sorting import why_no_profile
from tpudeploy.domain.errors import UsageError

_ENDINGS = (".yaml", ".yml")


def written_out(here: Path, paths: Sequence[str], terminal: Terminal, *, is_trusted: bool = True) -> list[str]:
    """Every path, folders as the profiles directly in them, by name; a file that is named beside its folder is once.

    Raise `errors.UsageError` for a folder without a profile.
    """
    named = [path for path in paths if not (here / path).is_dir()]
    seen = {_same(here, path) for path in named}
    found: list[str] = []
    for path in paths:
        if path in named:
            found.append(path)
            continue
        reader = FileReader() if is_trusted else FileReader(boundary_of(here, here / path / "profile.yaml"))
        for each in _profiles(here, path, terminal, reader):
            if _same(here, each) not in seen:
                seen.add(_same(here, each))
                found.append(each)
    return found


def _profiles(here: Path, folder: str, terminal: Terminal, reader: FileReader) -> list[str]:
    why = dict(_sorted_out(here, folder, reader))
    profiles = [path for path, reason in why.items() if not reason]
    left = [f"{path}: {reason}" for path, reason in why.items() if reason]
    if not profiles:
        hint = "\n".join(["A profile has a `version` and a `name`, and ends in .yaml or .yml.", *left])
        raise UsageError(f"There is no profile in `{folder}`.", hint=hint)
    if left:
        many = "file that is no profile" if len(left) == 1 else "files that are no profiles"
        terminal.talk(terminal.paint.dim("\n  ".join([f"{folder}: passing over {len(left)} {many}.", *left]) + "\n"))
    return profiles


def _sorted_out(here: Path, folder: str, reader: FileReader) -> Iterator[tuple[str, str]]:
    """Each file that may be a profile, and why it is none."""
    try:
        names = sorted(path.name for path in (here / folder).iterdir() if path.name.endswith(_ENDINGS))
    except OSError as cause:
        raise UsageError(f"`{folder}` cannot be read: {cause.strerror or cause}.") from cause
    for name in names:
        path = str(Path(folder) / name)
        if name.startswith(".") or (here / path).is_dir():
            continue
        try:
            yield path, why_no_profile(path, reader.read(str(here / path)))
        except Unreadable:
            yield path, ""  # whoever reads it says why it cannot be


def _same(here: Path, path: str) -> str:
    return os.path.normpath(here / path)
