"""Hold what every command needs: its terminal, its clock, its workspace."""

from __future__ import annotations

import argparse
import json
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, field, replace
from pathlib import Path

from tpudeploy.adapters.files import is_inside, read_file
from tpudeploy.adapters.project import BUDGETS, STATES, absolute, folder_of, folders_with_settings, has_budget
from tpudeploy.adapters.system_clock import SystemClock
from tpudeploy.cli.profile_paths import expand_folders
from tpudeploy.cli.terminal import Terminal
from tpudeploy.config.reader import MAX_BYTES
from tpudeploy.config.settings import FILE, Settings, settings, variable
from tpudeploy.config.trust import TRUSTED, Trust
from tpudeploy.domain.errors import ConfigError, ProfileInvalid
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.domain.patience import Patience
from tpudeploy.loading import Profile
from tpudeploy.ports import Clock
from tpudeploy.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class LoadedProfiles:
    """The profiles of a command. `invalid` holds the error of each invalid file, by its path as it was named."""

    valid: tuple[Profile, ...]
    invalid: Mapping[str, ProfileInvalid]


AS_WRITTEN = argparse.Namespace(overlays=[], sets=[])  # the options of a profile without overlays


class CommandOutput:
    """Holds the document of a command until it ends. An error that stops the command is printed instead."""

    def __init__(self) -> None:
        self.text = ""

    def set(self, document: Mapping[str, object], *, on_one_line: bool = False) -> None:
        """Keep `document`, whose values are JSON values. Raise ValueError if there is a document already."""
        self.set_text(json.dumps(document, indent=None if on_one_line else 2, ensure_ascii=False))

    def set_text(self, text: str) -> None:
        """Keep a document that is already text. Raise ValueError if there is a document already."""
        if self.text:
            raise ValueError("A command prints one document.")
        self.text = text.removesuffix("\n")


class OpenedProjects:
    """What a command has found, read and opened. It stays as it is until the command ends.

    These are projects by the folders of profiles, settings by project, and workspaces by project, backend and timeout.
    """

    def __init__(self) -> None:
        self.projects: dict[frozenset[Path], Path] = {}
        self.settings: dict[tuple[Path, str | None], Settings] = {}
        self.workspaces: dict[tuple[Path, str | None, float | None], Workspace] = {}


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    terminal: Terminal
    clock: Clock
    patience: Patience | None
    folder: Path
    backend: str | None
    parallelism: int
    at_exit: ExitStack
    reply: CommandOutput = field(default_factory=CommandOutput, repr=False)
    trust: Trust = TRUSTED
    opened: OpenedProjects = field(default_factory=OpenedProjects, compare=False, repr=False)

    def with_clock(self, clock: Clock, at_exit: ExitStack | None = None) -> Context:
        """Return a context with another clock, which has opened nothing yet. `at_exit` closes what it opens."""
        return replace(self, clock=clock, at_exit=at_exit or self.at_exit, opened=OpenedProjects())

    def unstopped(self) -> Context:
        """Return this context with a clock that is not stopped, for work after an interrupt."""
        return self.with_clock(SystemClock()) if isinstance(self.clock, SystemClock) else self

    def workspace(
        self, profiles: Sequence[str] = (), *, backend: str = "", lock_timeout: float | None = None
    ) -> Workspace:
        """Return the workspace of these profiles' project, closed when the command ends. `lock_timeout` is in seconds.

        `backend` is where the states are, unless an option sets it.
        """
        folder = self._project([self.folder / p for p in profiles])
        settings = self._settings_of(folder, backend)
        key = folder, settings.backend, lock_timeout
        if key in self.opened.workspaces:
            return self.opened.workspaces[key]
        patience = self.patience if self.patience is not None else settings.patience
        workspace = Workspace.open(
            folder,
            backend=settings.backend,
            project=settings.project,
            parallelism=self.parallelism,
            clock=self.clock,
            patience=patience if lock_timeout is None else replace(patience, lock=lock_timeout),
        )
        self.opened.workspaces[key] = self.at_exit.enter_context(workspace)
        return workspace

    def expand_folders(self, paths: Sequence[str]) -> list[str]:
        """Return these paths, each folder replaced by its profiles. Raise `errors.UsageError` for an empty folder."""
        if not any((self.folder / path).is_dir() for path in paths):
            return list(paths)

        return expand_folders(self.folder, paths, self.terminal, is_trusted=self.trust.is_trusted)

    def is_profile(self, word: str) -> bool:
        """Return whether a word names a profile, not a deployment, whose name has neither a dot nor a slash."""
        return "." in word or "/" in word or (self.folder / word).is_file()

    def read(self, path: str, options: argparse.Namespace) -> Profile:
        """Return one profile with its overlays and `--set` values. Raise `errors.ConfigError` with every problem."""
        file, overlays = self.folder / path, [self.folder / overlay for overlay in options.overlays]
        return Profile.load(
            file,
            overlays=overlays,
            set=options.sets,
            untrusted=self.is_untrusted(file),
            allow_env=self.trust.allowed,
            folder=self.folder,
        )

    def is_untrusted(self, file: Path) -> bool:
        """Return whether a profile's author is untrusted: by the command, `-untrusted`, or the project's settings.

        Settings can only remove trust, because the author of a profile may also write them.
        """
        return not self._is_trusted(folder_of(self.folder, [file]))

    def _is_trusted(self, project: Path) -> bool:
        """Return whether neither the command nor the settings of a project, or those above it, remove the trust."""
        folders = (project, *folders_with_settings(project))
        return self.trust.is_trusted and not any(self._settings_of(folder).untrusted for folder in folders)

    def _project(self, profiles: Sequence[Path]) -> Path:
        """Return the project of these profiles. Raise `errors.UsageError` for two.

        That of an untrusted one is within the budgets above it, unless the operator says where the states are.
        """
        folders = frozenset(profile.parent for profile in profiles)
        if folders not in self.opened.projects:
            project = folder_of(self.folder, profiles)
            is_free = bool(self.backend or os.environ.get(variable("backend"))) or self._is_trusted(project)
            self.opened.projects[folders] = project if is_free else _limited_project(project)
        return self.opened.projects[folders]

    def _settings_of(self, project: Path, backend: str = "") -> Settings:
        """Return the settings of a project. `backend` is where the states are, unless an option sets it."""
        key = (project, self.backend or backend or None)
        if key not in self.opened.settings:
            self.opened.settings[key] = _read_settings(*key, is_trusted=self.trust.is_trusted)
        return self.opened.settings[key]

    def load(self, paths: Sequence[str], options: argparse.Namespace) -> list[Profile]:
        """Return every profile and print its warnings. Raise `errors.ProfileInvalid` with the problems of all."""
        loaded = self.load_each(paths, options)
        if loaded.invalid:
            raise all_problems(loaded.invalid)
        return list(loaded.valid)

    def load_each(self, paths: Sequence[str], options: argparse.Namespace) -> LoadedProfiles:
        """Return the valid profiles, after printing their warnings, and the error of each other one.

        For commands in which a deployment that fails does not stop the others. Raise `errors.ProfileInvalid` if no
        profile is valid, and `errors.ProfileNotFound` for a path that does not exist.
        """
        valid: list[Profile] = []
        invalid: dict[str, ProfileInvalid] = {}
        for path in paths:
            try:
                valid.append(self.read(path, options))
            except ProfileInvalid as error:
                invalid[path] = error
        if invalid and not valid:
            raise all_problems(invalid)
        if any(profile.warnings for profile in valid):
            workspace = self.workspace(paths)
            warnings = [w for profile in valid for w in workspace.warnings(profile)]
            if warnings:
                self.terminal.explain(describe_diagnostics(warnings, self.terminal.paint.styled) + "\n")
        return LoadedProfiles(valid=tuple(valid), invalid=invalid)

    def report_invalid(self, invalid: Mapping[str, ProfileInvalid]) -> None:
        """Print what is wrong with the invalid files, for a command whose own output does not."""
        if invalid:
            problems = all_problems(invalid).diagnostics
            self.terminal.explain(describe_diagnostics(problems, self.terminal.paint.styled) + "\n")


def all_problems(invalid: Mapping[str, ProfileInvalid]) -> ProfileInvalid:
    """Return one error with the problems of all these files."""
    problems = [problem for error in invalid.values() for problem in error.diagnostics]
    return ProfileInvalid(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found.", diagnostics=problems)


def _read_settings(folder: Path, backend: str | None, *, is_trusted: bool) -> Settings:
    """Return the settings of a folder. Raise `errors.ConfigError` for a tpudeploy.toml or variable that is invalid."""
    if not is_trusted and not is_inside(folder, str(folder / FILE)):
        raise ConfigError(
            f"`{FILE}` is a link that leads out of the project.", hint="Replace the link with the file itself."
        )
    try:
        file = read_file(folder / FILE, MAX_BYTES)
    except FileNotFoundError:
        file = b""
    except OSError as cause:
        raise ConfigError(f"`{FILE}` cannot be read: {cause.strerror or cause}.") from cause
    try:
        own = settings({"backend": backend}, os.environ, file)
    except ConfigError:
        if is_inside(folder, str(folder / FILE)):
            raise
        raise ConfigError(f"`{FILE}` is a link that leads out of the project, to no valid settings.") from None
    is_from_file = own.origins.get("backend", "").startswith(f"{FILE}:")
    if is_from_file and own.backend is not None and not (is_trusted and not own.untrusted):
        _check_backend(folder, own.backend)
    return own


def _limited_project(project: Path) -> Path:
    """Return the project of an untrusted profile: the outermost folder at or above its own that may have a budget.

    The author of a profile may write states and settings beside it, and must not leave a budget by that.
    """
    own = absolute(project)
    above = [folder for folder in own.parents if _may_have_budget(folder)]
    return above[-1] if above else project


def _may_have_budget(folder: Path) -> bool:
    """Return whether a budget is beside the states of a folder. What a bucket has is not known here."""
    if has_budget(folder / STATES):
        return True
    if not (folder / FILE).is_file():
        return False
    backend = settings({}, {}, read_file(folder / FILE, MAX_BYTES)).backend
    return backend is not None and (backend.startswith("gs://") or has_budget(folder / backend))


def _check_backend(folder: Path, backend: str) -> None:
    """Raise `errors.ConfigError` if the settings of an untrusted project name a folder outside or leave a budget."""
    if has_budget(folder / STATES) and os.path.normpath(folder / backend) != os.path.normpath(folder / STATES):
        raise ConfigError(
            f"The backend in `{FILE}` would leave the budget in {STATES}/{BUDGETS}, and this project is untrusted.",
            hint="Name it yourself: --backend DIR, or TPUDEPLOY_BACKEND.",
        )
    if not backend.startswith("gs://") and not is_inside(folder, str(folder / backend)):
        raise ConfigError(
            f"The backend in `{FILE}` lies outside the project, which is untrusted.",
            hint="Name it yourself: --backend DIR, or TPUDEPLOY_BACKEND.",
        )
