"""The templates and profiles that ship with the package, read from a wheel, a zip file or a checkout.

Why: decision 17 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path

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
    folders = [_folder("profiles")] + ([] if project is None else [project / "profiles"])
    texts: dict[str, str] = {}
    for folder in folders:
        for path, file in _walk(folder) if folder.is_dir() else ():
            if path.endswith(_YAML):
                texts[path.removesuffix(_YAML)] = file.read_text(encoding="utf-8")
    return texts


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
