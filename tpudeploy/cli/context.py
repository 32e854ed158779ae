"""What every command gets: its terminal, its clock, its workspace."""

from __future__ import annotations

import argparse
from contextlib import ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING

from tpudeploy.cli.terminal import Terminal
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.patience import Patience
from tpudeploy.ports import Clock

if TYPE_CHECKING:
    from tpudeploy.config.profile import Profile
    from tpudeploy.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class Context:
    terminal: Terminal
    clock: Clock
    patience: Patience
    folder: Path
    at_exit: ExitStack

    def workspace(self) -> Workspace:
        """A workspace that is closed when the command ends."""
        from tpudeploy.workspace import Workspace

        opened = Workspace.open(self.folder, clock=self.clock, patience=self.patience)
        return self.at_exit.enter_context(opened)

    def load(self, paths: list[str], options: argparse.Namespace) -> list[Profile]:
        """Every profile, its warnings said. Raise `errors.ProfileInvalid` with the problems of all of them."""
        from tpudeploy.domain.errors import ProfileInvalid
        from tpudeploy.views.excerpt import diagnostics
        from tpudeploy.workspace import load

        good: list[Profile] = []
        bad: list[Diagnostic] = []
        for path in paths:
            try:
                good.append(load(self.folder / path, overlays=options.overlays, set=options.sets))
            except ProfileInvalid as invalid:
                bad.extend(invalid.diagnostics)
        if bad:
            raise ProfileInvalid(f"{len(bad)} problem{'s' if len(bad) > 1 else ''} found.", diagnostics=bad)
        warnings = [w for profile in good for w in profile.warnings]
        if warnings:
            self.terminal.talk(diagnostics(warnings, self.terminal.paint) + "\n")
        return good
