"""Reading of a log from disk or stdin as text, whatever bytes it holds, up to a maximum size."""

from __future__ import annotations

import sys
from pathlib import Path

from tpudeploy.domain.errors import UsageError

# A boot of 199 graphs writes 170 KB. Of a server's log over days, only the end is read.
_MOST_BYTES = 64 * 2**20


def read_log(path: str) -> str:
    """Return the end of a log; `-` means stdin. Raise `errors.UsageError` where it cannot be read."""
    try:
        if path == "-":
            return sys.stdin.buffer.read()[-_MOST_BYTES:].decode("utf-8", "replace")
        with Path(path).open("rb") as file:
            file.seek(0, 2)
            file.seek(max(0, file.tell() - _MOST_BYTES))
            return file.read().decode("utf-8", "replace")
    except OSError as cause:
        raise UsageError(f"`{path}` cannot be read: {cause.strerror or cause}.") from cause
