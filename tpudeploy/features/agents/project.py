"""Open workspaces in a server's folder: each call names profiles inside it and opens its own workspace."""

from __future__ import annotations

import argparse
import re
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass, replace
from pathlib import Path

from tpudeploy.adapters.files import read_file
from tpudeploy.adapters.project import absolute
from tpudeploy.cli.context import Context, OpenedProjects
from tpudeploy.config.reader import MAX_BYTES
from tpudeploy.domain.errors import UsageError
from tpudeploy.features.agents.spending import ServerSpending
from tpudeploy.loading import Profile, is_name
from tpudeploy.ports import Clock, StateBackend
from tpudeploy.workspace import Workspace

_ENDINGS = {".yaml", ".yml"}
_LONGEST_NAME = 255  # bytes of a file's name, which a deployment's is shorter than
_MOST_NAMES = 20  # profiles that an error lists
_VERSION, _MODEL = re.compile(rb"^version:", re.MULTILINE), re.compile(rb"^(?:model|extends):", re.MULTILINE)


def with_values(sets: Sequence[str]) -> argparse.Namespace:
    """Return the options of a profile with these values and without overlays."""
    return argparse.Namespace(overlays=[], sets=list(sets))


@dataclass(frozen=True, slots=True, kw_only=True)
class StatesPlace:
    """A project folder, and where its states are."""

    folder: Path
    states: str


def _place_of(workspace: Workspace) -> StatesPlace:
    return StatesPlace(folder=absolute(workspace.adapters.folder), states=workspace.adapters.place)


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
    """A server's folder. `clock` creates a clock for each call, because stopping a run stops its clock for good.

    `place` is where its states have to be, and `guard` counts what is written there; None for a server that only reads.
    """

    context: Context
    clock: Callable[[], Clock]
    place: StatesPlace | None = None
    guard: Callable[[StateBackend, bool], StateBackend] | None = None

    def untrusted(self) -> Project:
        """Return the same project with profiles that are not trusted: an agent writes them, and names values."""
        trust = replace(self.context.trust, is_trusted=False)
        return replace(self, context=replace(self.context, trust=trust, opened=OpenedProjects()))

    def fixed(self, spending: ServerSpending) -> Project:
        """Return the same project, which keeps the states and budgets of now. `spending` counts what is requested."""
        with self._context() as context:
            workspace = context.workspace()
            states = workspace.adapters.states
            # What is in a bucket is not for whoever writes the files here to change.
            budgets = None if states.is_shared else states.budgets()
            place = _place_of(workspace)

        def guard(states: StateBackend, is_limited: bool) -> StateBackend:
            return spending.guard(states, budgets, is_limited=is_limited)

        return replace(self, place=place, guard=guard)

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
            workspace = self._checked(context.workspace(profile_paths))
            yield Opened(context=context, workspace=workspace, profiles=profiles, names=names)

    @contextmanager
    def workspace(
        self, words: Sequence[str], *, backend: str, clock: Clock, is_limited: bool = True
    ) -> Iterator[Workspace]:
        """Open the workspace of these profiles, with their current contents. Stopping `clock` ends a run in it.

        `backend` is where the states are, unless the server was started with another one. A run that is not
        `is_limited` is one that a person approved whatever it costs.
        """
        profile_paths = self.expand_folders([word for word in words if not self._is_deployment(word)])
        with self._context(clock) as context:
            workspace = self._checked(context.workspace(profile_paths, backend=backend))
            if self.guard is not None:
                workspace.adapters.states = self.guard(workspace.adapters.states, is_limited)
            yield workspace

    def _checked(self, workspace: Workspace) -> Workspace:
        """Return the workspace of a call. Raise `errors.UsageError` if its states are not those of the server."""
        place = _place_of(workspace)
        if self.place is not None and place != self.place:
            raise UsageError(
                f"This server works with the states in {self.place.states}, and these profiles have theirs in "
                f"{place.states}. Nothing was done.",
                hint=f"Settings or states in {place.folder} say so. Remove them, or let a person start a server there.",
            )
        return workspace

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
