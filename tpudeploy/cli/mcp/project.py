"""The folder that a server works in: profiles are named by a path inside it, and each call opens a workspace anew."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import replace

from tpudeploy.cli.context import AS_WRITTEN, Context
from tpudeploy.domain.errors import UsageError
from tpudeploy.domain.frozen import frozen
from tpudeploy.loading import Profile
from tpudeploy.ports import Clock
from tpudeploy.workspace import Workspace

_ENDINGS = {".yaml", ".yml"}


@frozen
class Opened:
    """What one call works with, while it lasts."""

    context: Context
    workspace: Workspace
    profiles: tuple[Profile, ...]

    @property
    def profile(self) -> Profile:
        """Of a call that is about one."""
        (profile,) = self.profiles
        return profile


@frozen
class Project:
    """`clock` makes one for each call, because stopping a run stops its clock for good."""

    context: Context
    clock: Callable[[], Clock]

    def untrusted(self) -> Project:
        """Return the same project with profiles that are not trusted: an agent writes them, and names values."""
        trust = replace(self.context.trust, is_trusted=False)
        return replace(self, context=replace(self.context, trust=trust))

    @contextmanager
    def opened(self, *paths: str) -> Iterator[Opened]:
        """Raise `errors.UsageError` for a path outside the folder, `errors.ConfigError` for invalid profiles."""
        known = self.written_out(paths)
        with self._context() as context:
            profiles = tuple(context.load(known, AS_WRITTEN))
            yield Opened(context=context, workspace=context.workspace(known), profiles=profiles)

    @contextmanager
    def workspace(self, paths: Sequence[str], *, backend: str, clock: Clock) -> Iterator[Workspace]:
        """That of these profiles, whatever stands in them by now. To stop `clock` ends what runs in it.

        `backend` is where the states lie unless the server was told otherwise.
        """
        known = self.written_out(paths)
        with self._context(clock) as context:
            yield context.workspace(known, backend=backend)

    @contextmanager
    def _context(self, clock: Clock | None = None) -> Iterator[Context]:
        with ExitStack() as at_exit:
            yield replace(self.context, clock=clock or self.clock(), at_exit=at_exit)

    def written_out(self, paths: Sequence[str]) -> list[str]:
        """These paths, each folder among them as its profiles. Raise `errors.UsageError` for one that is none of ours.

        Whoever may name any file could have its lines read out to it, as those of a profile that is not valid.
        """
        for path in paths:
            if not self._is_inside(path):
                raise UsageError(
                    f"`{path}` is no profile in this project.",
                    hint=f"Name a .yaml file, or a folder of them, by its path inside {self.context.folder.resolve()}.",
                )
        return [path for path in self.context.written_out(paths) if self._is_inside(path)]

    def _is_inside(self, path: str) -> bool:
        """Links are followed: what they lead to counts."""
        root = self.context.folder.resolve()
        try:
            found = (root / path).resolve()
        except (OSError, ValueError, RuntimeError):  # a loop of links, or a path that no system takes
            return False
        if not found.is_relative_to(root) or any(part.startswith(".") for part in found.relative_to(root).parts):
            return False
        return found.is_dir() or found.suffix in _ENDINGS
