"""A run ↔ JSON: the format `tpudeploy.run/1`, with a hash of its content, so that a figure is what was measured.

A cell is a line: what was written of it once is written again as it was, while a run grows by hundreds of them.
"""

from __future__ import annotations

import hashlib
import json
from collections.abc import Iterable, Sequence
from dataclasses import replace
from typing import Any

from tpudeploy.domain.benchmark import Cell, Run
from tpudeploy.domain.errors import RunUnreadable
from tpudeploy.domain.serialization import to_json
from tpudeploy.serialization.typed import read

FORMAT = "tpudeploy.run/1"


def dumps(of: Run, lines: Sequence[str] | None = None) -> str:
    """What `bench --json` prints and what is kept. `lines` are `line` of each cell, where they are known already."""
    known = list(map(line, of.cells)) if lines is None else lines
    head = _head(of)
    begin = json.dumps({"format": FORMAT, "hash": _hash(head, known), **head}, ensure_ascii=False)
    return f'{begin[:-1]}, "cells": [\n' + ",\n".join(known) + "\n]}\n"


def digest(of: Run) -> str:
    """The hash of its content, which its file begins with."""
    return _hash(_head(of), map(line, of.cells))


def _head(of: Run) -> Any:
    head = to_json(replace(of, cells=()))
    del head["cells"]
    return head


def line(cell: Cell) -> str:
    return _canonical(to_json(cell))


def loads(text: str, *, source: str) -> Run:
    """Raise `errors.RunUnreadable`; `source` names the file."""
    try:
        content = json.loads(text)
        written, stamp, cells = content.pop("format"), content.pop("hash"), content.pop("cells")
    except (ValueError, KeyError, AttributeError, TypeError, RecursionError) as cause:
        raise _unreadable(source, f"{type(cause).__name__}: {cause}") from cause
    if not isinstance(cells, list):
        raise _unreadable(source, "its cells are no list")
    if written != FORMAT:
        raise _unreadable(source, f"its format is `{written}`, and this tpudeploy reads `{FORMAT}`")
    if stamp != _hash(content, map(_canonical, cells)):
        raise _unreadable(source, "it was changed after it was measured")
    try:
        for point in (*content["sweep"]["points"], *(cell["point"] for cell in cells)):
            # Earlier versions wrote 0 for what a table or another client did not say.
            point.update({name: None for name, size in point.items() if size == 0})
        return read(Run, {**content, "cells": cells})
    except (ValueError, KeyError, TypeError) as cause:
        raise _unreadable(source, f"{type(cause).__name__}: {cause}") from cause


def _hash(head: Any, lines: Iterable[str]) -> str:
    """Of all fields, however they are laid out."""
    text = "\n".join((_canonical(head), *lines))
    return f"sha256:{hashlib.sha256(text.encode()).hexdigest()}"


def _canonical(of: Any) -> str:
    return json.dumps(of, sort_keys=True, ensure_ascii=True, separators=(",", ":"))


def _unreadable(source: str, why: str) -> RunUnreadable:
    return RunUnreadable(f"{source} is no run that we can read: {why}.", hint="Measure it again: `tpudeploy bench`.")
