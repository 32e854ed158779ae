"""The file of a release: what a probe printed, checked, and laid out one row a line."""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

from tpudeploy.catalog.flags import Style, ValueType
from tpudeploy.domain import strict_json
from tpudeploy.domain.errors import QueryFailed

Document = dict[str, Any]

MOST_BYTES = 8 * 1024 * 1024  # a release has 0.2 MiB
_ENGINE = re.compile(r"[a-z][a-z-]{0,30}")
_VERSION = re.compile(r"[0-9]{1,4}\.[0-9]{1,4}\.[0-9]{1,4}")
_PARTS = ("packages", "flags", "defaults", "values", "variables", "removed", "registry", "rules", "weights")
_HINT = "It is not what probe.py prints: look at what the Python writes when it starts."


def parse(text: bytes) -> Document:
    """Return what a probe printed. Raise `errors.QueryFailed` for anything else."""
    try:
        document = strict_json.parse(text)
    except ValueError as cause:
        raise QueryFailed(f"What the engine's Python printed is not JSON: {cause}.", hint=_HINT) from cause
    problem = next(_problems(document), None)
    if problem is not None:
        raise QueryFailed(f"What the engine's Python printed has {problem}.", hint=_HINT)
    return dict(document)


def _problems(document: Any) -> Iterator[str]:
    if not isinstance(document, dict):
        yield "no document"
        return
    if not _ENGINE.fullmatch(str(document.get("engine"))) or not _VERSION.fullmatch(str(document.get("release"))):
        yield "no engine with a release"
    for part in _PARTS:
        if not isinstance(document.get(part, {}), dict):
            yield f"another form of {part}"
            return
    for name, row in document.get("flags", {}).items():
        if not _is_flag(row):
            yield f"another form of the flag {name[:40]!r}"
    if not all(isinstance(row, dict) for row in document.get("weights", {}).values()):
        yield "another form of weights"
    if not all(isinstance(line, str) for line in document.get("problems", ())):
        yield "another form of problems"


def _is_flag(row: Any) -> bool:
    """Return whether it is [style, type], with lists of aliases and of choices where there are any."""
    match row:
        case [str(style), str(kind), *lists] if style in set(Style) and kind in set(ValueType):
            is_of_words = all(isinstance(words, list) and all(isinstance(w, str) for w in words) for words in lists)
            return is_of_words and len(lists) <= len(("aliases", "choices"))
    return False


def file_name(document: Document) -> str:
    return f"{document['engine']}-{document['release']}.json"


def with_removed(document: Document, older: Mapping[str, Any] | None, same: Mapping[str, Any] | None) -> Document:
    """Return the document with the names that it has not and an older release had, with the last that did.

    `older` is the file of an older release. `same` is an earlier file of this one: its rows stay, with what
    a person wrote about a name's successor.
    """
    present = {*document.get("flags", ()), *document.get("variables", ())}
    rows: dict[str, list[str]] = {}
    if older is not None:
        gone = set(older["flags"]) - set(document["flags"])
        if older["engine"] == document["engine"]:  # another engine's variables are another plug-in's
            gone |= set(older["variables"]) - present
        rows |= {name: [older["release"], ""] for name in gone if name.startswith("VLLM_") or not name.isupper()}
        rows |= older["removed"]
    for name, row in (same or {}).get("removed", {}).items():
        if row[1] or name not in rows:
            rows[name] = row
    removed = {name: row for name, row in sorted(rows.items()) if name not in present and _is_older(row, document)}
    return {**document, "removed": removed}


def with_weights(
    document: Document, answers: Mapping[str, Mapping[str, int | str]], same: Mapping[str, Any] | None
) -> Document:
    """Return the document with what its loader answered now, and what an earlier file of it has of other models."""
    rows = {**(same or {}).get("weights", {}), **answers}
    return {**document, "weights": rows} if rows else document


def _is_older(row: list[str], document: Document) -> bool:
    return numbers(row[0]) < numbers(document["release"])


def numbers(version: str) -> tuple[int, ...]:
    return tuple(map(int, version.split(".")))


def text(document: Document) -> str:
    """Return the file: sorted, one row a line, so that two releases can be compared by `diff`."""
    head = {"engine": document["engine"], "release": document["release"]}
    parts = [f"{_json(key)}: {_json(value)}" for key, value in head.items()]
    for part in _PARTS:
        rows = document.get(part)
        if rows is not None:
            lines = [f"{_json(key)}: {_json(value)}" for key, value in sorted(rows.items())]
            body = ",\n".join(lines)
            parts.append(f"{_json(part)}: {{\n{body}\n}}" if lines else f"{_json(part)}: {{}}")
    body = ",\n".join(parts)
    return f"{{\n{body}\n}}\n"


def _json(value: Any) -> str:
    return json.dumps(value, separators=(",", ":"))


# The kinds of draws, in words.
KINDS: Mapping[str, str] = {
    "kv": "KV cache (block size and blocks)",
    "ladders": "Token and request buckets",
    "words": "Flags as parsed",
}
_EARLIER = 40


def earlier(version: str) -> Iterator[str]:
    """Yield the versions before this one, the nearest first, as vLLM numbers them: one minor version after another."""
    major, minor, _ = numbers(version)
    yield from (f"{major}.{number}.0" for number in range(minor - 1, max(minor - _EARLIER, -1), -1))
