"""A run ↔ JSON: the format `tpudeploy.run/1`, with a hash of its content that shows a changed figure.

A cell is one line, and a line that was written before is reused, because a run grows by hundreds of cells.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tpudeploy.domain.errors import RunUnreadable
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.serialization.typed import read

FORMAT = "tpudeploy.run/1"


def dumps(run: Run, lines: Sequence[str] | None = None) -> str:
    """Return the text that is stored, and that `bench --json` prints. `lines` are the cells' lines, if they exist."""
    cell_lines = list(map(line, run.cells)) if lines is None else lines
    head = _head(run)
    begin = json.dumps({"format": FORMAT, "hash": _hash(head, cell_lines), **head}, ensure_ascii=False)
    return f'{begin[:-1]}, "cells": [\n' + ",\n".join(cell_lines) + "\n]}\n"


def digest(run: Run) -> str:
    """Return the hash of a run's content, which is in its file."""
    return _hash(_head(run), map(line, run.cells))


def line(cell: Cell) -> str:
    return _canonical(to_json(cell))


def loads(text: str, *, source: str) -> Run:
    """Return the run in a text. Raise `errors.RunUnreadable`; `source` names the file."""
    try:
        content = json.loads(text)
        form, stamp, cells = content.pop("format"), content.pop("hash"), content.pop("cells")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as cause:
        raise _unreadable(source, f"{type(cause).__name__}: {cause}") from cause
    if not isinstance(cells, list):
        raise _unreadable(source, "its cells are not a list")
    if form != FORMAT:
        raise _unreadable(source, f"its format is `{form}`, and this tpudeploy reads `{FORMAT}`")
    if stamp != _hash(content, map(_canonical, cells)):
        raise _unreadable(source, "it was changed after it was measured")
    try:
        for point in (*content["sweep"]["points"], *(cell["point"] for cell in cells)):
            # Earlier versions wrote 0 for what a table or another client did not say.
            point.update({name: None for name, size in point.items() if size == 0})
        return read(Run, {**content, "cells": cells})
    except (ValueError, KeyError, TypeError) as cause:
        raise _unreadable(source, f"{type(cause).__name__}: {cause}") from cause


def _head(run: Run) -> Any:
    head = to_json(replace(run, cells=()))
    del head["cells"]
    return head


def _hash(head: Any, lines: Iterable[str]) -> str:
    """Return the hash of all fields, independent of their layout."""
    text = "\n".join((_canonical(head), *lines))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _canonical(value: Any) -> str:
    return json.dumps(value, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _unreadable(source: str, why: str) -> RunUnreadable:
    return RunUnreadable(f"{source} is not a readable run: {why}.", hint="Measure it again: `tpudeploy bench`.")
