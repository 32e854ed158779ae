"""The templates and profiles that ship with the package, read from a wheel, a zip file or a checkout.

Why: decision 17 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from contextlib import suppress
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

from tpudeploy.adapters.files import read_file
from tpudeploy.config.reader import MAX_BYTES

_OWN = "templates/boot"
_YAML = ".yaml"


@cache
def templates() -> Mapping[str, str]:
    """Return every text under `templates/` by its path there, e.g. `boot/image.sh`.

    The texts are cached, because a fleet renders thousands of scripts.
    """
    return {path: file.read_text(encoding="utf-8") for path, file in _walk(_folder("templates"))}


def own_templates(project: Path) -> tuple[str, ...]:
    """Return the paths of the project's own templates, relative to its folder `templates`."""
    return tuple(sorted(f"boot/{file.name}" for file in (project / _OWN).glob("*.sh")))


def profiles(project: Path | None = None) -> Mapping[str, str]:
    """Return every profile to start from, by its file name without the suffix: the shipped ones, and the project's own.

    The project's are in its folder `profiles`. One of the same name replaces the shipped one.
    """
    texts = {path: file.read_text(encoding="utf-8") for path, file in _walk(_folder("profiles"))}
    own_folder = None if project is None else project / "profiles"
    if own_folder is not None and own_folder.is_dir():
        for path, file in _walk(own_folder):
            # One that cannot be read, e.g. a FIFO, is none to start from.
            if path.endswith(_YAML) and isinstance(file, Path):
                with suppress(OSError, ValueError):
                    texts[path] = read_file(file, MAX_BYTES).decode("utf-8")
    return {path.removesuffix(_YAML): text for path, text in texts.items() if path.endswith(_YAML)}


def _folder(name: str) -> Traversable:
    """Return the folder: inside an installed package, or beside the package in a checkout."""
    installed = files("tpudeploy") / "_data" / name
    return installed if installed.is_dir() else Path(__file__).parents[2] / name


def _walk(folder: Traversable, prefix: str = "") -> Iterator[tuple[str, Traversable]]:
    for entry in sorted(folder.iterdir(), key=lambda entry: entry.name):
        if entry.is_dir():
            yield from _walk(entry, f"{prefix}{entry.name}/")
        else:
            yield f"{prefix}{entry.name}", entry
