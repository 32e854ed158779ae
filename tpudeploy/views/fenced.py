"""Text of others inside GitHub's Markdown: nothing of it can end a block, make a table's cell, or call a person."""

from __future__ import annotations

import re
from collections.abc import Iterable

from tpudeploy.views.words import plain

_TICKS = re.compile(r"`+")
_ENTITIES = {"&": "&amp;", "<": "&lt;", ">": "&gt;"}
_MARKS = re.compile(r"([\\*\[\]~]|(?<!\w)_|_(?!\w))")
_APART = "\u200b"  # stands between an @ and a name, so that it is no mention


def fence(lines: Iterable[str], language: str = "") -> str:
    """A code block, whose fence is longer than any run of backticks in it."""
    body = plain("\n".join(lines))
    ticks = "`" * max(3, *(len(run) + 1 for run in _TICKS.findall(body)), 3)
    return f"{ticks}{language}\n{body}\n{ticks}"


def code(text: str) -> str:
    """Inline, and safe in a table."""
    inner = " ".join(plain(text).split()).replace("`", "'").replace("|", "\\|")
    return f"`{inner}`" if inner else ""


def prose(text: str) -> str:
    """A sentence of a message. What it has in backticks stays code."""
    pieces = " ".join(plain(text).split()).split("`")
    told = [code(piece) if n % 2 else _escaped(piece) for n, piece in enumerate(pieces)]
    return "".join(told)


def _escaped(text: str) -> str:
    for character, entity in _ENTITIES.items():
        text = text.replace(character, entity)
    return _MARKS.sub(r"\\\1", text).replace("@", f"@{_APART}").replace("|", "\\|")


def details(summary: str, body: str) -> str:
    """Folded away. `summary` is HTML already."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"
