"""States that could not be put where they belong, kept on this machine until somebody does."""

from __future__ import annotations

import shlex
from pathlib import Path

from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors


class Aside:
    """`folder`/NAME.json, one a deployment: a later one takes the place of an earlier one. `backend` is their place."""

    def __init__(self, folder: Path, *, backend: str) -> None:
        self._folder = folder
        self._backend = backend
        self._hints: dict[str, str] = {}

    def keep(self, name: str, text: str) -> None:
        try:
            disk.replace(self._path(name), text)
            with disk.writing(self._folder):
                disk.hide_from_git(self._folder)
        except errors.StateError as failure:
            self._hints[name] = f"The state could not be kept on this machine either: {failure.message}"
        else:
            path = shlex.quote(str(self._path(name)))
            push = f"tpudeploy state push {path} --backend {shlex.quote(self._backend)}"
            self._hints[name] = f"The state was kept in {path}. To put it in its place: {push}"

    def drop(self, name: str) -> None:
        """A later write went through, and knows all that this one did."""
        if self._hints.pop(name, ""):
            self._path(name).unlink(missing_ok=True)

    def added_to(self, hint: str, name: str) -> str:
        """What is told of a failure, and where the state is, if it was kept: the last failure is the one that shows."""
        kept = self._hints.get(name, "")
        return hint if kept in hint else "\n".join(filter(None, (hint, kept)))

    def _path(self, name: str) -> Path:
        return self._folder / f"{name}.json"
