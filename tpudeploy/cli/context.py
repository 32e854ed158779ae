"""What every command gets: its terminal, its clock, its workspace."""

from __future__ import annotations

import argparse
import os
from collections.abc import Sequence
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
    from tpudeploy.domain.diagnostics import Diagnostic
    from tpudeploy.domain.patience import Patience
    from tpudeploy.loading import Profile
    from tpudeploy.ports import Clock
    from tpudeploy.workspace import Workspace

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

    def load(self, paths: list[str], options: argparse.Namespace) -> list[Profile]:
        """Every profile, its warnings said. Raise `errors.ProfileInvalid` with the problems of all of them."""
        from tpudeploy.domain.errors import ProfileInvalid
        from tpudeploy.views.excerpt import diagnostics

        good: list[Profile] = []
        bad: list[Diagnostic] = []
        for path in paths:
            try:
                good.append(self.read(path, options))
            except ProfileInvalid as invalid:
                bad.extend(invalid.diagnostics)
        if bad:
            raise ProfileInvalid(f"{len(bad)} problem{'s' if len(bad) > 1 else ''} found.", diagnostics=bad)
        if not any(profile.warnings for profile in good):
            return good
        workspace = self.workspace(paths)
        warnings = [w for profile in good for w in workspace.warnings(profile)]
        if warnings:
            self.terminal.talk(diagnostics(warnings, self.terminal.paint) + "\n")
        return good


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
