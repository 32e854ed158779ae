"""What every command gets: its terminal, its clock, its workspace."""

from __future__ import annotations

import argparse
import os
from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import field
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.cli.reply import Reply
from tpudeploy.cli.terminal import Terminal
from tpudeploy.config.trust import TRUSTED, Trust
from tpudeploy.domain.frozen import frozen

if TYPE_CHECKING:
    from tpudeploy.config.settings import Settings
    from tpudeploy.domain.errors import ProfileInvalid
    from tpudeploy.domain.patience import Patience
    from tpudeploy.loading import Profile
    from tpudeploy.ports import Clock
    from tpudeploy.workspace import Workspace


@frozen
class LoadedProfiles:
    """The profiles of a command. `invalid` says of each file that holds none why, by its path as it was named."""

    valid: tuple[Profile, ...]
    invalid: Mapping[str, ProfileInvalid]


AS_WRITTEN = argparse.Namespace(overlays=[], sets=[])  # what is given where nothing is laid over a profile


@frozen
class Context:
    terminal: Terminal
    clock: Clock
    patience: Patience | None
    folder: Path
    backend: str | None
    parallelism: int
    at_exit: ExitStack
    reply: Reply = field(default_factory=Reply, repr=False)
    trust: Trust = TRUSTED
    _untrusted: dict[Path, bool] = field(default_factory=dict, compare=False, repr=False)  # by the folder of profiles

    def unstopped(self) -> Context:
        """The same with time that nobody has stopped: for what is to be done after an interrupt."""
        from dataclasses import replace

        from tpudeploy.adapters.system_clock import SystemClock

        return replace(self, clock=SystemClock()) if isinstance(self.clock, SystemClock) else self

    def workspace(
        self, profiles: Sequence[str] = (), *, backend: str = "", lock_timeout: float | None = None
    ) -> Workspace:
        """The project that these profiles belong to; closed when the command ends. `lock_timeout` is in seconds.

        `backend` is where the states lie unless an option says otherwise.
        """
        from dataclasses import replace

        from tpudeploy.adapters.project import folder_of
        from tpudeploy.workspace import Workspace

        folder = folder_of(self.folder, [self.folder / p for p in profiles])
        known = self._settings(folder, backend)
        patience = self.patience if self.patience is not None else known.patience
        opened = Workspace.open(
            folder,
            backend=known.backend,
            project=known.project,
            parallelism=self.parallelism,
            clock=self.clock,
            patience=patience if lock_timeout is None else replace(patience, lock=lock_timeout),
        )
        return self.at_exit.enter_context(opened)

    def written_out(self, paths: Sequence[str]) -> list[str]:
        """These paths, each folder among them as the profiles in it. Raise `errors.UsageError` where it has none."""
        if not any((self.folder / path).is_dir() for path in paths):
            return list(paths)
        from tpudeploy.cli.folders import written_out

        return written_out(self.folder, paths, self.terminal, is_trusted=self.trust.is_trusted)

    def is_profile(self, written: str) -> bool:
        """Whether a word names a profile, and not a deployment: a deployment's name has neither a dot nor a slash."""
        return "." in written or "/" in written or (self.folder / written).is_file()

    def read(self, path: str, options: argparse.Namespace) -> Profile:
        """One profile, overlays and settings laid over it. Raise `errors.ConfigError` with every problem."""
        # No plugin has business in our parser, and the search for one reads the metadata of every installed package.
        os.environ.setdefault("PYDANTIC_DISABLE_PLUGINS", "__all__")
        from tpudeploy.loading import Profile

        overlays = [self.folder / overlay for overlay in options.overlays]
        return Profile.load(
            self.folder / path,
            overlays=overlays,
            set=options.sets,
            untrusted=self.is_untrusted(path),
            allow_env=self.trust.allowed,
            folder=self.folder,
        )

    def is_untrusted(self, path: str) -> bool:
        """Return whether the author of a profile is: by the command, by `-untrusted`, or by the project's settings.

        Settings can only take trust away: whoever writes a profile may write them too.
        """
        from tpudeploy.adapters.project import folder_of

        if not self.trust.is_trusted:
            return True
        folder = (self.folder / path).parent
        if folder not in self._untrusted:  # a fleet's profiles lie side by side
            self._untrusted[folder] = self._settings(folder_of(self.folder, [self.folder / path])).untrusted
        return self._untrusted[folder]

    def _settings(self, folder: Path, backend: str = "") -> Settings:
        return _settings(folder, self.backend or backend or None, is_trusted=self.trust.is_trusted)

    def load(self, paths: Sequence[str], options: argparse.Namespace) -> list[Profile]:
        """Return every profile and print its warnings. Raise `errors.ProfileInvalid` with the problems of all."""
        loaded = self.load_each(paths, options)
        if loaded.invalid:
            raise all_problems(loaded.invalid)
        return list(loaded.valid)

    def load_each(self, paths: Sequence[str], options: argparse.Namespace) -> LoadedProfiles:
        """Return the profiles that are valid, their warnings printed, and what is wrong with each of the others.

        For commands in which one deployment that fails stops no other. Raise `errors.ProfileInvalid` where none is
        valid, `errors.ProfileNotFound` for a path that does not exist.
        """
        from tpudeploy.domain.errors import ProfileInvalid
        from tpudeploy.views.excerpt import diagnostics

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
                self.terminal.talk(diagnostics(warnings, self.terminal.paint) + "\n")
        return LoadedProfiles(valid=tuple(valid), invalid=invalid)

    def report_invalid(self, loaded: LoadedProfiles) -> None:
        """Print what is wrong with the invalid files, for a command whose own output does not."""
        if loaded.invalid:
            from tpudeploy.views.excerpt import diagnostics

            problems = all_problems(loaded.invalid).diagnostics
            self.terminal.talk(diagnostics(problems, self.terminal.paint) + "\n")


def all_problems(invalid: Mapping[str, ProfileInvalid]) -> ProfileInvalid:
    """Return one error with the problems of all these files."""
    from tpudeploy.domain.errors import ProfileInvalid

    problems = [problem for error in invalid.values() for problem in error.diagnostics]
    return ProfileInvalid(f"{len(problems)} problem{'s' if len(problems) > 1 else ''} found.", diagnostics=problems)


def _settings(folder: Path, backend: str | None, *, is_trusted: bool) -> Settings:
    """Raise `errors.ConfigError` for a tpudeploy.toml or a TPUDEPLOY_… variable that cannot be understood."""
    from tpudeploy.adapters.files import is_inside
    from tpudeploy.config.settings import FILE, settings
    from tpudeploy.domain.errors import ConfigError

    if not is_trusted and not is_inside(folder, str(folder / FILE)):
        raise ConfigError(
            f"`{FILE}` is a link that leads out of the project.", hint="Put the file itself in its place."
        )
    try:
        file = (folder / FILE).read_bytes()
    except FileNotFoundError:
        file = b""
    return settings({"backend": backend}, os.environ, file)
