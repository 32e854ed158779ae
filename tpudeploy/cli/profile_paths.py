"""Expand folders on the command line to the profiles in them, and report the files that were ignored."""

from __future__ import annotations

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from tpudeploy.adapters.files import FileReader
from tpudeploy.adapters.project import boundary_of
from tpudeploy.cli.terminal import Terminal
from tpudeploy.config.parse import why_not_a_profile
from tpudeploy.config.reader import Unreadable
from tpudeploy.domain.errors import UsageError

_ENDINGS = (".yaml", ".yml")


def expand_folders(here: Path, paths: Sequence[str], terminal: Terminal, *, is_trusted: bool = True) -> list[str]:
    """Return every path, with each folder replaced by the profiles directly in it, sorted and without duplicates.

    Raise `errors.UsageError` for a folder without a profile.
    """
    files = [path for path in paths if not (here / path).is_dir()]
    included = {_same(here, path) for path in files}
    expanded: list[str] = []
    for path in paths:
        if path in files:
            expanded.append(path)
            continue
        reader = FileReader() if is_trusted else FileReader(boundary_of(here, here / path / "profile.yaml"))
        for profile in _profiles(here, path, terminal, reader):
            same = _same(here, profile)
            if same not in included:
                included.add(same)
                expanded.append(profile)
    return expanded


def _profiles(here: Path, folder: str, terminal: Terminal, reader: FileReader) -> list[str]:
    reasons = dict(_classified(here, folder, reader))
    profiles = [path for path, reason in reasons.items() if not reason]
    ignored = [f"{path}: {reason}" for path, reason in reasons.items() if reason]
    if not profiles:
        hint = "\n".join(["A profile has a `version` and a `name`, and ends in .yaml or .yml.", *ignored])
        raise UsageError(f"There is no profile in `{folder}`.", hint=hint)
    if ignored:
        what = "file that is not a profile" if len(ignored) == 1 else "files that are not profiles"
        terminal.talk(terminal.paint.dim("\n  ".join([f"{folder}: ignoring {len(ignored)} {what}.", *ignored]) + "\n"))
    return profiles


def _classified(here: Path, folder: str, reader: FileReader) -> Iterator[tuple[str, str]]:
    """Yield each candidate file with the reason why it is not a profile, or "" if it is one."""
    try:
        with os.scandir(here / folder) as entries:
            files = sorted(e.name for e in entries if e.name.endswith(_ENDINGS) and not _is_ignored(e))
    except OSError as cause:
        raise UsageError(f"`{folder}` cannot be read: {cause.strerror or cause}.") from cause
    # The folders as text, because joining paths for each file of a fleet takes longer than looking at it.
    prefix, full_prefix = str(Path(folder) / "_")[:-1], str(here / folder / "_")[:-1]
    for name in files:
        path, file = prefix + name, full_prefix + name
        try:
            yield path, why_not_a_profile(path, reader.read(file))
        except Unreadable:
            yield path, ""  # reading it as a profile reports the error


def _is_ignored(entry: os.DirEntry[str]) -> bool:
    try:
        return entry.name.startswith(".") or entry.is_dir()
    except OSError:  # a link to itself: reading it reports the error
        return False


def _same(here: Path, path: str) -> str:
    return os.path.normpath(here / path)
