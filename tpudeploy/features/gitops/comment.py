"""Quote untrusted text in GitHub's Markdown, and fit a comment in parts into a size limit."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass

from tpudeploy.text.words import plain

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


def paragraph(lines: Iterable[str]) -> str:
    """Return the lines of a message with its Markdown escaped, with a line break between each two."""
    return "\\\n".join(map(prose, lines))


def _escape(text: str) -> str:
    for character, entity in _ENTITIES.items():
        text = text.replace(character, entity)
    return _MARKS.sub(r"\\\1", text).replace("@", f"@{_APART}").replace("|", "\\|")


def details(summary: str, body: str) -> str:
    """Return `body` in a collapsed section. `summary` is already HTML."""
    return f"<details><summary>{summary}</summary>\n\n{body}\n\n</details>"


_BETWEEN = "\n\n"
_CUT = "> [!NOTE]\n> Truncated, because of the forge's size limit. The run's log has the whole text."
_MORE = "… (truncated)"


@dataclass(frozen=True, slots=True, kw_only=True)
class Part:
    """A part of a text. If `can_go`, its `title` may replace it; otherwise it may be truncated after a line."""

    text: str
    title: str = ""
    can_go: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Fitted:
    """A text within its limit. `is_whole` is True if nothing was left out."""

    text: str
    is_whole: bool


def fit(parts: Sequence[Part], limit: int, *, notice: str = _CUT) -> Fitted:
    """Return the parts joined within `limit` bytes of UTF-8 (which is at least the number of characters).

    `limit` is at least a few hundred. `notice` is the last paragraph of a truncated text.
    """
    texts = [part.text for part in parts]
    if _size(_BETWEEN.join(filter(None, texts))) <= limit:
        return Fitted(text=_BETWEEN.join(filter(None, texts)), is_whole=True)
    room = limit - _size(_BETWEEN + notice)
    for shorten in (_drop_longest, _drop_all):
        texts = shorten(parts, texts, room)
    texts = _truncate(texts, room)
    return Fitted(text=_BETWEEN.join([*filter(None, texts), notice]), is_whole=False)


def _drop_longest(parts: Sequence[Part], texts: list[str], room: int) -> list[str]:
    """Replace the longest parts by their titles until the rest fits."""
    texts_left, total = list(texts), _total_size(texts)
    for n in sorted((n for n, p in enumerate(parts) if p.can_go), key=lambda n: -_size(parts[n].text)):
        if total <= room:
            break
        title = f"_Left out: {parts[n].title}._"
        total += _size(title) - _size(texts_left[n])
        texts_left[n] = title
    return texts_left


def _drop_all(parts: Sequence[Part], texts: list[str], room: int) -> list[str]:
    """Drop all optional parts if even their titles do not fit."""
    if _total_size(texts) <= room:
        return texts
    return ["" if part.can_go else text for part, text in zip(parts, texts, strict=True)]


def _truncate(texts: list[str], room: int) -> list[str]:
    """Truncate the longest parts first, each at the end of a line, so that no table row is split."""
    texts_left = list(texts)
    for n in sorted(range(len(texts_left)), key=lambda n: -_size(texts_left[n])):
        over = _total_size(texts_left) - room
        if over > 0:
            texts_left[n] = _first_lines(texts_left[n], _size(texts_left[n]) - over)
    return texts_left


def _first_lines(text: str, size: int) -> str:
    """Return the first lines of a text and a truncation mark, or "" if there is no room for them."""
    lines: list[str] = []
    size_used = _size(_BETWEEN + _MORE)
    for line in text.split("\n"):
        size_used += _size(line) + 1
        if size_used > size:
            break
        lines.append(line)
    return "\n".join([*lines, "", _MORE]) if lines else ""


def _total_size(texts: Sequence[str]) -> int:
    parts = [text for text in texts if text]
    return sum(map(_size, parts)) + _size(_BETWEEN) * (len(parts) - 1)


def _size(text: str) -> int:
    return len(text.encode())
