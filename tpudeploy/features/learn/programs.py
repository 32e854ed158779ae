"""The programs of one libtpu: the bytes of their temporaries, by the compiler itself, for a chip that is absent."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy.catalog import families
from tpudeploy.catalog.families import answers
from tpudeploy.domain.errors import QueryFailed

# Buckets of requests; 8 and 16 take below half a MiB, and a quarter of a minute each to compile.
REQUESTS = (32, 64, 128, 256, 512, 1_024)
# v5e was compared for four vocabularies: the largest buckets are the same within 0.1 %, some small ones take less.
CHIP = "v6e"
_GRAPH = "structured_decode"
_VERSION = re.compile(r"[0-9]{1,4}(\.[0-9]{1,4}){2,3}")

Programs = Mapping[str, Any]


def vocabularies() -> tuple[int, ...]:
    """Return the vocabularies of the models that the catalogue knows."""
    models = (families.known_model(model_id) for model_id in (*families.ids(), *answers.ids()))
    return tuple(sorted({model.vocabulary for model in models if model is not None}))


def lines() -> Iterator[str]:
    """Yield a line for the probe for each program."""
    for vocabulary in vocabularies():
        for requests in REQUESTS:
            yield json.dumps(["programs", {"chip": CHIP, "requests": requests, "vocabulary": vocabulary}])


def document(libtpu: str, rows: list[Any]) -> Programs:
    """Return what a file has, from the answers to `lines`. Raise `errors.QueryFailed` where one has no bytes."""
    if not _VERSION.fullmatch(libtpu):
        raise QueryFailed("The engine's Python names no version of libtpu.")
    sizes = [row.get("temp") for row in rows]
    wrong = next((row for row, size in zip(rows, sizes, strict=True) if not isinstance(size, int) or size < 0), None)
    if wrong is not None:
        raise QueryFailed(f"A program was not compiled: {wrong.get('error', 'no bytes')}.")
    each = iter(sizes)
    table = {str(vocabulary): {str(requests): next(each) for requests in REQUESTS} for vocabulary in vocabularies()}
    return {"libtpu": libtpu, "chip": CHIP, _GRAPH: table}


def file_name(programs: Programs) -> str:
    return f"libtpu-{programs['libtpu']}.json"


def text(programs: Programs) -> str:
    """Return the file: a vocabulary a line, so that two of them can be compared by `diff`."""
    rows = ",\n".join(f"{json.dumps(key)}: {json.dumps(sizes)}" for key, sizes in programs[_GRAPH].items())
    head = "".join(f"{json.dumps(key)}: {json.dumps(programs[key])},\n" for key in ("libtpu", "chip"))
    return f"{{\n{head}{json.dumps(_GRAPH)}: {{\n{rows}\n}}\n}}\n"
