"""The engine in a process of another Python: its answers are lines of JSON, of a bounded size, depth and time."""

from __future__ import annotations

import json
import os
import re
import selectors
import subprocess
import tempfile
import time
from collections.abc import Collection, Generator, Iterable, Iterator, Mapping
from pathlib import Path
from typing import Any

from tpudeploy.adapters.child import bare_environment, check_interrupt, child
from tpudeploy.adapters.files import read_end
from tpudeploy.domain.errors import QueryFailed, UsageError

_CHILD = Path(__file__).with_name("child.py")
_MOST_LINE, _MOST_BYTES, _DEEPEST = 1 << 20, 64 << 20, 20
_LOG_BYTES, _LAST_LINES = 1 << 16, 3
_LACK = re.compile(r"ModuleNotFoundError: No module named '([\w.]{1,80})'")
_INSTALL = "Name a Python that has vllm-tpu: `python3.12 -m venv v && v/bin/pip install vllm-tpu`."


def ask(
    python: str, requests: Iterable[Mapping[str, Any]], *, seconds: float, log: Path
) -> Generator[Mapping[str, Any]]:
    """Yield what the engine answers to each request, row by row. Its own messages go to `log`.

    Raise `errors.UsageError` if `python` cannot be started, `errors.QueryFailed` if it says nothing useful, too much,
    or nothing for `seconds` in all.
    """
    ends = time.monotonic() + seconds
    with log.open("wb") as messages, tempfile.TemporaryFile() as lines:
        lines.write(b"".join(json.dumps(request).encode() + b"\n" for request in requests))
        lines.seek(0)
        try:
            process = child(
                # -I: neither this folder nor variables of Python can put another module before one of the engine's.
                [python, "-I", str(_CHILD)],
                stdin=lines,
                stdout=subprocess.PIPE,
                stderr=messages,
                env=bare_environment(),  # no token reaches an engine
            )
            with process as running:
                yield from _rows(running, ends)
        except OSError as cause:
            raise UsageError(f"{python} cannot be started: {cause.strerror}.", hint=_INSTALL) from cause
    check_interrupt(running)
    if running.returncode:
        ending = _last(log)
        lack = _LACK.search(ending)
        if lack is not None:
            raise UsageError(f"{python} has no vllm-tpu that can be asked: it has no module {lack[1]}.", hint=_INSTALL)
        raise QueryFailed(f"{python} ended with {running.returncode}.", hint=ending)


def _rows(process: subprocess.Popen[bytes], ends: float) -> Iterator[Mapping[str, Any]]:
    assert process.stdout is not None
    total = 0
    with process.stdout, selectors.DefaultSelector() as selector:
        selector.register(process.stdout, selectors.EVENT_READ)
        rest = b""
        while True:
            if not selector.select(max(ends - time.monotonic(), 0)):
                raise QueryFailed("The engine's time is over.", hint="Allow more with -timeout; it continues there.")
            data = os.read(process.stdout.fileno(), _MOST_LINE)
            total += len(data)
            *lines, rest = (rest + data).split(b"\n")
            if total > _MOST_BYTES or len(rest) > _MOST_LINE:
                raise QueryFailed("The engine answers more than any answer has.")
            yield from map(read_row, lines)
            if not data:
                break
    process.wait()


def read_row(line: bytes) -> Mapping[str, Any]:
    """Return a row of the engine's answer. Raise `errors.QueryFailed` for anything else."""
    try:
        row = json.loads(line)
    except (ValueError, RecursionError) as cause:
        raise QueryFailed("The engine's answer is not JSON.") from cause
    if not isinstance(row, dict) or _depth(row) > _DEEPEST:
        raise QueryFailed("The engine's answer has another form.")
    return row


def _depth(tree: object) -> int:
    parts: object = tree.values() if isinstance(tree, dict) else tree
    if not isinstance(parts, Collection) or isinstance(parts, str):
        return 1
    return 1 + max(map(_depth, parts), default=0)


def _last(log: Path) -> str:
    text = read_end(log, _LOG_BYTES).decode("utf-8", "replace")
    lines = [line.strip() for line in text.splitlines() if line.strip()]
    return " | ".join(lines[-_LAST_LINES:]) or "it said nothing"
