"""Lines of a log as they were written: an export of Cloud Logging, of journald or of docker is taken apart.

An export is one JSON object a line, one array of them, or YAML documents (`gcloud logging read`), and Cloud Logging
writes the newest first.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterator, Mapping
from typing import Any, NamedTuple

import yaml

from tpudeploy.config.libyaml import LOADER

_BOM = "\ufeff"
# Where an entry has its text: Cloud Logging (textPayload, or a field of jsonPayload), docker's json-file (log),
# journald (MESSAGE), and loggers that write JSON.
_PAYLOADS = ("jsonPayload", "json_payload")
_TEXTS = ("textPayload", "text_payload", "message", "MESSAGE", "log", "msg")
_TIMES = ("timestamp", "receiveTimestamp", "time", "__REALTIME_TIMESTAMP", "ts")
_DECODER = json.JSONDecoder()
_DOCUMENT = re.compile(r"^---[ \t]*\r?$", re.MULTILINE)
_PAYLOAD_OF_YAML = re.compile(rf"^(?:{'|'.join((*_PAYLOADS, *_TEXTS))}):", re.MULTILINE)
_PROBE = 20  # lines more than entries, after which a text counts as plain


class _Entry(NamedTuple):
    time: str
    number: int
    text: str


def numbered_lines(text: str) -> Iterator[tuple[int, str]]:
    """Yield each line with its number in `text`, oldest first; of an export, the lines that its entries hold."""
    entries = _entries(text)
    if not entries:
        yield from enumerate(text.removeprefix(_BOM).split("\n"), start=1)
        return
    if entries[0].time > entries[-1].time:
        entries.reverse()
    for entry in sorted(entries, key=lambda entry: entry.time):
        for line in entry.text.rstrip("\n").split("\n"):
            yield entry.number, line


def _entries(text: str) -> list[_Entry]:
    """Return the entries of an export, or nothing for any other text."""
    start = text.removeprefix(_BOM).lstrip()
    if start.startswith("["):
        return list(_array(text))
    if start.startswith("---"):
        return list(_documents(text))
    return _objects(text) if start.startswith("{") else []


def _documents(text: str) -> Iterator[_Entry]:
    """Yield the entries of YAML documents; one that is damaged or cut is left out."""
    begin, number = 0, 1
    for separator in (*_DOCUMENT.finditer(text), None):
        end = len(text) if separator is None else separator.start()
        document = text[begin:end]
        entry = _entry(_parsed(document), number) if _PAYLOAD_OF_YAML.search(document) else None
        if entry is not None:
            yield entry
        number += document.count("\n")
        begin = end if separator is None else separator.end()


def _parsed(document: str) -> Any:
    try:
        return yaml.load(document, LOADER)  # noqa: S506 - a safe loader: see config/libyaml.py
    except (yaml.YAMLError, ValueError, RecursionError):
        return None


def _array(text: str) -> Iterator[_Entry]:
    """Yield the entries of an array, each with the number of the line on which it begins."""
    position, number = text.index("[") + 1, 1
    counted = 0
    while (begin := text.find("{", position)) >= 0:
        try:
            tree, position = _DECODER.raw_decode(text, begin)
        except (ValueError, RecursionError):
            return
        number += text.count("\n", counted, begin)
        counted = begin
        entry = _entry(tree, number)
        if entry is None:
            return
        yield entry


def _objects(text: str) -> list[_Entry]:
    """Return the entries of an export with one object a line, or nothing if most lines are none: one may be cut."""
    entries: list[_Entry] = []
    misses = 0
    for number, line in enumerate(text.removeprefix(_BOM).split("\n"), start=1):
        if not line.strip():
            continue
        try:
            tree = json.loads(line)
        except (ValueError, RecursionError):
            tree = None
        entry = _entry(tree, number)
        if entry is not None:
            entries.append(entry)
            continue
        misses += 1
        if misses > _PROBE + len(entries):
            return []
    return entries if len(entries) > misses else []


def _entry(tree: Any, number: int) -> _Entry | None:
    if not isinstance(tree, Mapping):
        return None
    payload = next((tree[key] for key in _PAYLOADS if isinstance(tree.get(key), Mapping)), tree)
    texts = (value for part in (tree, payload) for key in _TEXTS if (value := _text(part.get(key))) is not None)
    text = next(texts, None)
    if text is None:
        return None
    time = next((str(tree[key]).rstrip("Z") for key in _TIMES if tree.get(key)), "")
    return _Entry(time, number, text)


def _text(value: object) -> str | None:
    """Return a text, which journald writes as a list of bytes if it has marks of color in it."""
    if isinstance(value, list):
        try:
            return bytes(value).decode("utf-8", errors="replace")
        except (TypeError, ValueError):
            return None
    return value if isinstance(value, str) else None
