"""Saved plans on disk: written atomically, readable by their owner only, never written over another file."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import PlanUnreadable, StateError, UsageError

_MOST_BYTES = 256 * 1024 * 1024
_BEGINNING = 400


def write(path: Path, text: str, *, is_ours: Callable[[str], bool]) -> None:
    """Write a plan.

    Raise `errors.UsageError` where it cannot be written, or would overwrite a file for which `is_ours` is False.
    """
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", hint="Specify a file for the plan.")
    if path.exists() and path.stat().st_size and not is_ours(beginning(path)):
        raise UsageError(
            f"{path} is not a saved plan, so it was not overwritten.", hint="Specify another file for the plan."
        )
    try:
        disk.replace(path, text, is_private=True)
    except StateError as cause:
        raise UsageError(cause.message, hint="Specify another file for the plan.") from cause


def read(path: Path) -> str:
    """Return the text of a saved plan. Raise `errors.PlanUnreadable`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise PlanUnreadable(f"{path} is too large to be a saved plan.")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is not text"
        raise PlanUnreadable(
            f"{path} cannot be read: {why}.", hint="`tpudeploy plan -out FILE` saves a plan."
        ) from cause


def beginning(path: Path) -> str:
    """Return the first bytes of a file as text, or "" where it cannot be read."""
    # Without O_NONBLOCK, opening a FIFO would wait for a writer.
    try:
        handle = os.open(path, os.O_RDONLY | os.O_NONBLOCK)
    except (OSError, ValueError):
        return ""
    try:
        return os.read(handle, _BEGINNING).decode("utf-8", "replace")
    except OSError:
        return ""
    finally:
        os.close(handle)
