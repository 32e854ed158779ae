"""The files that a router reads, in a folder: what they contain, and which of them differ from a configuration."""

from __future__ import annotations

from contextlib import suppress
from pathlib import Path

from tpudeploy.adapters.state import disk
from tpudeploy.node.router_configuration import Configuration


class RouterFiles:
    """The files below `folder`. One that this process has not written is that of a program which another one left."""

    def __init__(self, folder: Path) -> None:
        self._folder = disk.Folder(folder)
        self._texts: dict[str, str] = {}

    def fit(self, configuration: Configuration) -> bool:
        """Return whether all files but the list are those of a configuration: a program reads them at its start."""
        return all(
            self._text(path) == text for path, text in configuration.files.items() if path != configuration.list_path
        )

    def write(self, configuration: Configuration, *, but_fixed: bool = False) -> bool:
        """Write the files that differ, with `but_fixed` only the list. Return whether the list differed."""
        differing = [path for path, text in configuration.files.items() if self._text(path) != text]
        for path in sorted(differing):
            if path == configuration.list_path or not but_fixed:
                folder, name = self._place(path)
                folder.replace(name, configuration.files[path], is_private=True)
                self._texts[path] = configuration.files[path]
        return configuration.list_path in differing

    def _text(self, path: str) -> str | None:
        if path not in self._texts:
            with suppress(OSError, ValueError):
                folder, name = self._place(path)
                self._texts[path] = folder.read(name).decode("utf-8")
        return self._texts.get(path)

    def _place(self, path: str) -> tuple[disk.Folder, str]:
        """Return the folder and the name of a file."""
        *above, name = path.split("/")
        return self._folder.sub(*above), name
