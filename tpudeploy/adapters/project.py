"""The project folder of a command, which holds the states of its profiles, wherever the command is run.

Why: decision 15 in docs/decisions.md.
"""

from __future__ import annotations

import os
from collections.abc import Iterable
from pathlib import Path

from tpudeploy.config.settings import FILE as SETTINGS
from tpudeploy.domain.errors import UsageError

STATES = ".tpudeploy"
BUDGETS = "budgets.yaml"  # which a person writes, beside the states


def folder_of(here: Path, profiles: Iterable[Path]) -> Path:
    """Return the project of these profiles, or that of `here` without profiles. Raise `errors.UsageError` for two.

    It is the nearest folder at or above the profile that has states or settings. So a profile that is named from
    another folder finds its existing slices and does not request them twice. A new project is created in `here` if
    the profile is below it, else beside the profile.
    """
    beside = dict.fromkeys(map(absolute, dict.fromkeys(profile.parent for profile in profiles)))
    projects = dict.fromkeys(_project(here, folder) for folder in beside)
    if len(projects) > 1:
        names = " and ".join(map(str, projects))
        raise UsageError(f"These profiles belong to different projects: {names}.", hint="Run the command for each.")
    return next(iter(projects), None) or _nearest_project(here) or here


def boundary_of(here: Path, profile: Path) -> Path:
    """Return the folder that confines an untrusted profile: its project's, but at most its repository.

    States or settings above the repository, for example in a home folder, must not widen the access.
    """
    project = folder_of(here, [profile])
    folder = absolute(profile).parent
    repository = next((f for f in (folder, *folder.parents) if (f / ".git").exists()), None)
    return repository if repository is not None and repository.is_relative_to(absolute(project)) else project


def folders_with_settings(project: Path) -> tuple[Path, ...]:
    """Return the folders above a project that have settings."""
    return tuple(folder for folder in absolute(project).parents if (folder / SETTINGS).is_file())


def has_budget(states: Path) -> bool:
    return (states / BUDGETS).exists()


def _project(here: Path, beside: Path) -> Path:
    """Return the project of the profiles in the folder `beside`."""
    project = _nearest_project(beside)
    if project is not None:
        return project
    return here if beside.is_relative_to(absolute(here)) else beside


def _nearest_project(folder: Path) -> Path | None:
    """Return the nearest folder at or above this one that has states or settings.

    The cache of `zones` is in the same folder as the states, and does not make a folder a project.
    """
    own = absolute(folder)
    return next((f for f in (own, *own.parents) if (f / STATES / "state").is_dir() or (f / SETTINGS).is_file()), None)


def absolute(path: Path) -> Path:
    """Return the absolute path without `..`. Links are not resolved: a profile belongs to the folder that is named.

    Raise `errors.UsageError` where the working directory was deleted: no relative path can be resolved from it.
    """
    try:
        return Path(os.path.normpath(path.absolute()))
    except FileNotFoundError as cause:
        raise UsageError(
            "The working directory does not exist any more.", hint="Change to another folder, or name one: --chdir DIR"
        ) from cause
