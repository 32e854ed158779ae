"""The templates and profiles that ship with the package, read from a wheel, a zip file or a checkout.

Why: decision 17 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from functools import cache
from importlib.resources import files
from importlib.resources.abc import Traversable
from pathlib import Path


@cache
def templates() -> Mapping[str, str]:
    """Return every text under `templates/` by its path there, e.g. `boot/image.sh`.

    The texts are cached, because a fleet renders thousands of scripts.
    """
    return {path: file.read_text(encoding="utf-8") for path, file in _walk(_folder("templates"))}


def profiles() -> Mapping[str, str]:
    """Return every shipped profile by its file name without the suffix."""
    suffix = ".yaml"
    return {
        path.removesuffix(suffix): file.read_text(encoding="utf-8")
        for path, file in _walk(_folder("profiles"))
        if path.endswith(suffix)
    }


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
