"""How engines died on real TPUs: excerpts of their logs, verbatim but for the time of day.

The files are cut by tests/boot_log/excerpts.py, which names their sources. A real log breaks one message over several
lines, and writes it twice: once by the logger, once by the traceback that ends the process.
"""

from __future__ import annotations

import re
from functools import cache
from pathlib import Path

NAMES = ("program-allocation", "quantizing-in-place")
_TIME = re.compile(r"(?<= )\d\d-\d\d \d\d:\d\d:\d\d(?= \[)")
_PREFIX = re.compile(r"^\(EngineCore pid=\d+\) ")
# Where the message ends that begins with the exception.
_AFTER = ("-----", "For simplicity, JAX has removed")


@cache
def lines(name: str) -> tuple[str, ...]:
    """Return the log of a death; `{at}` is the time of day. Raise KeyError for an unknown name."""
    if name not in NAMES:
        raise KeyError(name)
    text = Path(__file__).with_name(f"{name}.log").read_text(encoding="utf-8")
    return tuple(_TIME.sub("{at}", line) for line in text.splitlines())


def message(name: str) -> str:
    """Return the message of the exception in one line, as a machine without a log of its own would report it."""
    plain = [_PREFIX.sub("", line) for line in lines(name) if "{at}" not in line]
    first = next(number for number, line in enumerate(plain) if "RESOURCE_EXHAUSTED" in line)
    last = next(number for number, line in enumerate(plain) if number > first and line.startswith(_AFTER))
    return " ".join(plain[first:last])
