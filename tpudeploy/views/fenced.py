"""Quote untrusted text in GitHub's Markdown: it cannot end a block, add a table cell, or mention a person."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tpudeploy.views.words import plain

_TICKS = re.compile(r"`+")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKS = re.compile(r"([\\*\[\]~]|(?<!\w)_|_(?!\w))")
_APART = "\u200b"  # goes between an @ and a name, so that GitHub does not notify anyone


def fence(lines: Iterable[str], language: str = "") -> str:
    """Return a code block whose fence is longer than any run of backticks inside it."""
    body = plain("\n".join(lines))
    ticks = "`" * max(3, *(len(run) + 1 for run in _TICKS.findall(body)), 3)
    return f"{ticks}{language}\n{body}\n{ticks}"


def code(text: str) -> str:
    """Return inline code that is safe in a table cell."""
    inner = " ".join(plain(text).split()).replace("`", "'").replace("|", "\\|")
    return f"`{inner}`" if inner else ""


def prose(text: str) -> str:
    """Return a sentence of a message with its Markdown escaped. Text in backticks stays code."""
    pieces = " ".join(plain(text).split()).split("`")
    parts = [code(piece) if n % 2 else _escape(piece) for n, piece in enumerate(pieces)]
    return "".join(parts)


def _escape(text: str) -> str:
    for character, entity in _ENTITIES.items():
        text = text.replace(character, entity)
    return _MARKS.sub(r"\\\1", text).replace("@", f"@{_APART}").replace("|", "\\|")


def details(summary: str, body: str) -> str:
    """Return `body` in a collapsed section. `summary` is already HTML."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
