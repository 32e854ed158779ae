"""Fit a text in parts into a size limit: the longest parts are left out first, and their titles remain."""

from __future__ import annotations

from collections.abc import Sequence

from tpudeploy.domain.frozen import frozen

_BETWEEN = "\n\n"
_CUT = "> [!NOTE]\n> Truncated, because of the forge's size limit. The run's log has the whole text."
_MORE = "… (truncated)"


@frozen
class Part:
    """A part of a text. If `can_go`, its `title` may replace it; otherwise it may be truncated after a line."""

    text: str
    title: str = ""
    can_go: bool = False


@frozen
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
