"""Saved plans on disk: written atomically, readable by their owner only, never written over another file."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path

from tpudeploy.adapters.files import read_beginning, read_file
from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import PlanUnreadable, StateError, UsageError

_MOST_BYTES = 256 * 1024 * 1024
_BEGINNING = 400


def write(path: Path, text: str, *, is_ours: Callable[[str], bool], here: Path | None = None) -> None:
    """Write a plan for an operator who works in `here` (default: the working directory).

    Raise `errors.UsageError` where it cannot be written, or would overwrite a file for which `is_ours` is False.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", hint="Specify a file for the plan.")
    if path.exists() and path.stat().st_size and not is_ours(beginning(path)):
        raise UsageError(
            f"{path} is not a saved plan, so it was not overwritten.", hint="Specify another file for the plan."
        )
    try:
        disk.replace(path, text, here=here, is_private=True)
    except StateError as cause:
        raise UsageError(cause.message, hint="Specify another file for the plan.") from cause


def read(path: Path) -> str:
    """Return the text of a saved plan. Raise `errors.PlanUnreadable`."""
    try:
        return read_file(path, _MOST_BYTES).decode("utf-8")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is not text"
        raise PlanUnreadable(
            f"{path} cannot be read: {why}.", hint="`tpudeploy plan -out FILE` saves a plan."
        ) from cause


def beginning(path: Path) -> str:
    """Return the first bytes of a file as text, or "" where it cannot be read."""
    try:
        return read_beginning(path, _BEGINNING).decode("utf-8", "replace")
    except (OSError, ValueError):
        return ""
