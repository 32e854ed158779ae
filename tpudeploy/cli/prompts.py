"""Read a prompt from a file or from stdin."""

from __future__ import annotations

from typing import Final

from tpudeploy.adapters.files import read_file
from tpudeploy.cli.context import Context
from tpudeploy.domain.errors import UsageError

MOST_PROMPT: Final = 4 << 20  # bytes; no model of the catalogue has a context of as many


def read_prompt(name: str, context: Context) -> str:
    """Return the text of a file, or of stdin for `-`. Raise `errors.UsageError` if it isn't a text of that size."""
    if name == "-":
        content = context.terminal.stdin.buffer.read(MOST_PROMPT + 1)
    else:
        try:
            content = read_file(context.folder / name, MOST_PROMPT)
        except (OSError, ValueError) as cause:
            reason = getattr(cause, "strerror", None) or cause
            raise UsageError(f"`{name}` cannot be read: {reason}.") from cause
    if len(content) > MOST_PROMPT:
        raise UsageError(f"The prompt is larger than {MOST_PROMPT >> 20} MiB.")
    try:
        text = content.decode("utf-8").rstrip("\n")
    except UnicodeDecodeError as cause:
        raise UsageError("The prompt is not UTF-8 text.") from cause
    if not text.strip():
        raise UsageError("The prompt is empty.")
    return text
