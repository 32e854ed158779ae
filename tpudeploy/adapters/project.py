"""Which folder a command is about: where the states of its profiles lie, from wherever it is run."""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tpudeploy.config.settings import FILE as SETTINGS
from tpudeploy.domain.errors import UsageError

STATES = ".tpudeploy"


def folder_of(here: Path, profiles: Iterable[Path]) -> Path:
    """The project of these profiles; of `here` where there are none. Raise `errors.UsageError` for two projects.

    It is the nearest folder at or above the profile that has states or settings, so that a profile named from another
    folder finds what it asked for, and does not ask twice. A new project is begun in `here` where the profile lies
    below it, else beside the profile.
    """
    beside = dict.fromkeys(_written_out(profile).parent for profile in profiles)
    found = dict.fromkeys(_project(here, folder) for folder in beside)
    if len(found) > 1:
        named = " and ".join(map(str, found))
        raise UsageError(f"These profiles belong to different projects: {named}.", hint="Run the command for each.")
    return next(iter(found), None) or _marked(here) or here


def boundary_of(here: Path, profile: Path) -> Path:
    """The folder that an untrusted profile may not look out of: its project's, and never more than its repository.

    States or settings that lie above the repository, in a home folder say, do not open what is beside it.
    """
    project = folder_of(here, [profile])
    folder = _written_out(profile).parent
    repository = next((f for f in (folder, *folder.parents) if (f / ".git").exists()), None)
    return repository if repository is not None and repository.is_relative_to(_written_out(project)) else project


def _project(here: Path, beside: Path) -> Path:
    """Of the profiles in this folder."""
    marked = _marked(beside)
    if marked is not None:
        return marked
    return here if beside.is_relative_to(_written_out(here)) else beside


def _marked(folder: Path) -> Path | None:
    """What `zones` keeps for a day stands in the same folder, and makes no project of wherever somebody asked it."""
    own = _written_out(folder)
    return next((f for f in (own, *own.parents) if (f / STATES / "state").is_dir() or (f / SETTINGS).is_file()), None)


def _written_out(path: Path) -> Path:
    """Absolute, without `..`; links stay: a profile lies where it is named."""
    return Path(os.path.normpath(path.absolute()))
