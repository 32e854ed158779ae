"""A text in parts, as much of it as there is room for: the longest go first, and it is said that they did."""

from __future__ import annotations

from collections.abc import Sequence

from tpudeploy.domain.frozen import frozen

_BETWEEN = "\n\n"
_CUT = "> [!NOTE]\n> Cut short, because the forge takes no longer text. The log of the run has all of it."
_MORE = "… and more: this is cut short here."


@frozen
class Part:
    """`can_go`: it can be left out whole, and its `title` is named instead. What cannot is cut after a line."""

    text: str
    title: str = ""
    can_go: bool = False


@frozen
class Fitted:
    """`is_whole`: nothing was left out."""

    text: str
    is_whole: bool


def fitted(parts: Sequence[Part], limit: int, *, notice: str = _CUT) -> Fitted:
    """`limit` in bytes of UTF-8, of which there are never fewer than characters; a few hundred at least.

    `notice` is the last paragraph of a text that was cut.
    """
    texts = [part.text for part in parts]
    if _size(_BETWEEN.join(filter(None, texts))) <= limit:
        return Fitted(text=_BETWEEN.join(filter(None, texts)), is_whole=True)
    room = limit - _size(_BETWEEN + notice)
    for shorten in (_without_the_longest, _without_any):
        texts = shorten(parts, texts, room)
    texts = _cut_to(texts, room)
    return Fitted(text=_BETWEEN.join([*filter(None, texts), notice]), is_whole=False)


def _without_the_longest(parts: Sequence[Part], texts: list[str], room: int) -> list[str]:
    """Each that goes leaves its title."""
    kept, total = list(texts), _total(texts)
    for n in sorted((n for n, p in enumerate(parts) if p.can_go), key=lambda n: -_size(parts[n].text)):
        if total <= room:
            break
        title = f"_Left out: {parts[n].title}._"
        total += _size(title) - _size(kept[n])
        kept[n] = title
    return kept


def _without_any(parts: Sequence[Part], texts: list[str], room: int) -> list[str]:
    """Where even the titles are too many."""
    if _total(texts) <= room:
        return texts
    return ["" if part.can_go else text for part, text in zip(parts, texts, strict=True)]


def _cut_to(texts: list[str], room: int) -> list[str]:
    """The longest first, each after a line, so that no row of a table is cut in two."""
    kept = list(texts)
    for n in sorted(range(len(kept)), key=lambda n: -_size(kept[n])):
        over = _total(kept) - room
        if over > 0:
            kept[n] = _head(kept[n], _size(kept[n]) - over)
    return kept


def _head(text: str, size: int) -> str:
    """Its first lines, and one that says that there were more; nothing, where there is no room for that."""
    lines: list[str] = []
    used = _size(_BETWEEN + _MORE)
    for line in text.split("\n"):
        used += _size(line) + 1
        if used > size:
            break
        lines.append(line)
    return "\n".join([*lines, "", _MORE]) if lines else ""


def _total(texts: Sequence[str]) -> int:
    shown = [text for text in texts if text]
    return sum(map(_size, shown)) + _size(_BETWEEN) * (len(shown) - 1)


def _size(text: str) -> int:
    return len(text.encode())
