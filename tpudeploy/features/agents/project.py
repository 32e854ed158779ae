"""Open workspaces in a server's folder: each call names profiles inside it and opens its own workspace."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace

from tpudeploy.adapters.files import read_file
from tpudeploy.cli.context import Context, OpenedProjects
from tpudeploy.config.reader import MAX_BYTES
from tpudeploy.domain.errors import UsageError
from tpudeploy.loading import Profile, is_name
from tpudeploy.ports import Clock
from tpudeploy.workspace import Workspace

_ENDINGS = {".yaml", ".yml"}
_LONGEST_NAME = 255  # bytes of a file's name, which a deployment's is shorter than
_MOST_NAMES = 20  # profiles that an error lists
_VERSION, _MODEL = re.compile(rb"^version:", re.MULTILINE), re.compile(rb"^(?:model|extends):", re.MULTILINE)


def with_values(sets: Sequence[str]) -> argparse.Namespace:
    """Return the options of a profile with these values and without overlays."""
    return argparse.Namespace(overlays=[], sets=list(sets))


@dataclass(frozen=True, slots=True, kw_only=True)
class Opened:
    """The context, workspace and profiles of one call. `names` are deployments that it names without a profile."""

    context: Context
    workspace: Workspace
    profiles: tuple[Profile, ...]
    names: tuple[str, ...] = ()

    @property
    def profile(self) -> Profile:
        """Return the profile of a call that names exactly one."""
        (profile,) = self.profiles
        return profile


@dataclass(frozen=True, slots=True, kw_only=True)
class Project:
    """A server's folder. `clock` creates a clock for each call, because stopping a run stops its clock for good."""

    context: Context
    clock: Callable[[], Clock]

    def untrusted(self) -> Project:
        """Return the same project with profiles that are not trusted: an agent writes them, and names values."""
        trust = replace(self.context.trust, is_trusted=False)
        return replace(self, context=replace(self.context, trust=trust, opened=OpenedProjects()))

    @contextmanager
    def opened(self, *words: str, takes_names: bool = False, sets: Sequence[str] = ()) -> Iterator[Opened]:
        """Open a workspace. With `takes_names`, a word may be the name of a deployment whose profile is gone.

        `sets` are values on top of the profiles, `path=value`.

        Raise `errors.UsageError` for an outside path, `errors.ConfigError` for bad profiles.
        """
        names = tuple(word for word in words if takes_names and self._is_deployment(word))
        profile_paths = self.expand_folders([word for word in words if word not in names])
        with self._context() as context:
            profiles = tuple(context.load(profile_paths, with_values(sets)))
            workspace = context.workspace(profile_paths)
            yield Opened(context=context, workspace=workspace, profiles=profiles, names=names)

    @contextmanager
    def workspace(self, words: Sequence[str], *, backend: str, clock: Clock) -> Iterator[Workspace]:
        """Open the workspace of these profiles, with their current contents. Stopping `clock` ends a run in it.

        `backend` is where the states are, unless the server was started with another one.
        """
        profile_paths = self.expand_folders([word for word in words if not self._is_deployment(word)])
        with self._context(clock) as context:
            yield context.workspace(profile_paths, backend=backend)

    @contextmanager
    def _context(self, clock: Clock | None = None) -> Iterator[Context]:
        with ExitStack() as at_exit:
            yield self.context.with_clock(clock or self.clock(), at_exit)

    def expand_folders(self, paths: Sequence[str]) -> list[str]:
        """Return these paths, each folder replaced by its profiles. Raise `errors.UsageError` for an outside path.

        Otherwise an agent could name any file and read its lines in the diagnostics of an invalid profile.
        """
        for path in paths:
            if not self._is_inside(path):
                raise UsageError(
                    f"`{path}` is not a profile in this project.",
                    hint=f"Name a .yaml file, or a folder of them, by its path inside {self.context.folder.resolve()}.",
                )
        return [path for path in self.context.expand_folders(paths) if self._is_inside(path)]

    def file(self, path: str) -> str:
        """Return the path of a YAML file inside the project. Raise `errors.UsageError` for another one."""
        if not self._is_inside(path) or (self.context.folder / path).is_dir():
            raise UsageError(
                f"`{path}` is not a YAML file in this project.",
                hint=f"Name a .yaml file by its path inside {self.context.folder.resolve()}.",
            )
        return path

    def profiles(self) -> list[str]:
        """Return the names of the files in the project's folder that are written as profiles, sorted."""
        names = sorted(path.name for path in self.context.folder.glob("*.y*ml") if self._is_inside(path.name))
        return [name for name in names if self._is_written_as_profile(name)]

    def only_profile(self) -> str:
        """Return the path of the project's only profile. Raise `errors.UsageError` without one, or with several."""
        names = self.profiles()
        if len(names) == 1:
            return names[0]
        if not names:
            raise UsageError("This project has no profile.", hint="Name one by its path, or make one: `draft_profile`.")
        listed_names = ", ".join(names[:_MOST_NAMES]) + (", …" if len(names) > _MOST_NAMES else "")
        raise UsageError(f"This project has {len(names)} profiles.", hint=f"Name one as `profile`: {listed_names}.")

    def _is_written_as_profile(self, name: str) -> bool:
        """Return whether a file in the project's folder has the first key of a profile."""
        try:
            content = read_file(self.context.folder / name, MAX_BYTES)
        except (OSError, ValueError):
            return False
        return _VERSION.search(content) is not None and _MODEL.search(content) is not None

    def _is_deployment(self, word: str) -> bool:
        """Return whether a word is the name of a deployment, and no file or folder has it."""
        return is_name(word) and len(word) <= _LONGEST_NAME and not (self.context.folder / word).exists()

    def _is_inside(self, path: str) -> bool:
        """Return whether a path is inside the project after links are resolved."""
        root = self.context.folder.resolve()
        try:
            target = (root / path).resolve()
            is_folder = target.is_dir()
        except (OSError, ValueError, RuntimeError):  # a loop of links, or a path that no system takes
            return False
        if not target.is_relative_to(root) or any(part.startswith(".") for part in target.relative_to(root).parts):
            return False
        return is_folder or target.suffix in _ENDINGS
