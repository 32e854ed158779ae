"""Saved plans on disk: written whole or not at all, readable by their owner alone, never over somebody's profile."""

from __future__ import annotations

import os
from collections.abc import Callable
from pathlib import Path

from tpudeploy.adapters.state import disk
from tpudeploy.domain.errors import PlanUnreadable, StateError, UsageError

_MOST_BYTES = 256 * 1024 * 1024
_BEGINNING = 400


def write(path: Path, text: str, *, is_ours: Callable[[str], bool]) -> None:
    """Raise `errors.UsageError` where it cannot be written, or where a file that is not `is_ours` would be lost."""
    if path.is_dir():
        raise UsageError(f"{path} is a folder.", hint="Name a file for the plan.")
    if path.exists() and path.stat().st_size and not is_ours(beginning(path)):
        raise UsageError(f"{path} is no saved plan, and is not overwritten.", hint="Name another file for the plan.")
    try:
        disk.replace(path, text, is_private=True)
    except StateError as cause:
        raise UsageError(cause.message, hint="Name another file for the plan.") from cause


def read(path: Path) -> str:
    """Raise `errors.PlanUnreadable`."""
    try:
        if path.stat().st_size > _MOST_BYTES:
            raise PlanUnreadable(f"{path} is too large to be a saved plan.")
        return path.read_text(encoding="utf-8")
    except (OSError, ValueError) as cause:
        why = getattr(cause, "strerror", None) or "it is no text"
        raise PlanUnreadable(
            f"{path} cannot be read: {why}.", hint="`tpudeploy plan -out FILE` saves a plan."
        ) from cause


def beginning(path: Path) -> str:
    """Of a regular file; "" for what cannot be read. Without O_NONBLOCK, a FIFO would wait for a writer."""
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
