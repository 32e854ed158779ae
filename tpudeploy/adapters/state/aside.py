"""States that could not be written to their backend, kept on this machine until someone pushes them."""

from __future__ import annotations

import shlex
from pathlib import Path

from tpudeploy.adapters.state import disk
from tpudeploy.domain import errors


class Aside:
    """Keeps states as `folder`/NAME.json, one per deployment; a later state replaces an earlier one.

    `backend` is the backend that they belong to.
    """

    def __init__(self, folder: disk.Folder, *, backend: str) -> None:
        self._folder = folder
        self._backend = backend
        self._hints: dict[str, str] = {}

    def keep(self, name: str, text: str) -> None:
        try:
            self._folder.replace(f"{name}.json", text)
            with self._folder.writing():
                self._folder.hide_from_git()
        except errors.StateError as failure:
            self._hints[name] = f"The state could not be saved on this machine either: {failure.message}"
        else:
            path = shlex.quote(str(self._path(name)))
            push = f"tpudeploy state push {path} --backend {shlex.quote(self._backend)}"
            self._hints[name] = f"The state was saved to {path}. To write it to the backend, run: {push}"

    def drop(self, name: str) -> None:
        """Delete the copy, because a later write succeeded and includes it."""
        if self._hints.pop(name, ""):
            self._folder.remove(f"{name}.json")

    def add_to_hint(self, hint: str, name: str) -> str:
        """Return the hint of a failure with the location of the copy, because only the last failure is displayed."""
        location = self._hints.get(name, "")
        return hint if location in hint else "\n".join(filter(None, (hint, location)))

    def _path(self, name: str) -> Path:
        return self._folder.path / f"{name}.json"
