"""A text in parts, as much of it as there is room for: the longest go first, and it is said that they did."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace

from tpudeploy.domain.frozen import frozen

_CUT = "> [!CAUTION]\n> Cut short, so this approves nothing. All of it is in the summary and in the files of the run."
_LINES_LEFT = "… and more; this table is cut short."


@frozen
class Part:
    """`can_go`: it can be left out whole, and `title` then stands for it. What cannot is cut at a line."""

    text: str
    title: str = ""
    can_go: bool = False


@frozen
class Fitted:
    """`is_whole`: nothing was left out."""

    text: str
    is_whole: bool


def fitted(parts: Sequence[Part], limit: int) -> Fitted:
    """`limit` in bytes of UTF-8, which is never less than in characters."""
    whole = _joined(parts)
    if _size(whole) <= limit:
        return Fitted(text=whole, is_whole=True)
    room = limit - _size(_CUT) - 2
    left = list(parts)
    order = sorted((n for n, p in enumerate(parts) if p.can_go), key=lambda n: -_size(parts[n].text))
    for n in order:
        if _size(_joined(left)) <= room:
            break
        left[n] = replace(left[n], text=f"_Left out: {left[n].title}._")
    if _size(_joined(left)) > room:
        left = [p for n, p in enumerate(left) if n not in order]
    for n in sorted(range(len(left)), key=lambda n: -_size(left[n].text)):
        over = _size(_joined(left)) - room
        if over > 0:
            left[n] = replace(left[n], text=_head(left[n].text, _size(left[n].text) - over))
    return Fitted(text=f"{_joined(left)}\n\n{_CUT}", is_whole=False)


def _head(text: str, size: int) -> str:
    """Its first lines, with a last one that says that there were more."""
    lines: list[str] = []
    used = _size(_LINES_LEFT) + 2
    for line in text.splitlines():
        used += _size(line) + 1
        if used > size:
            break
        lines.append(line)
    return "\n".join([*lines, "", _LINES_LEFT])


def _joined(parts: Sequence[Part]) -> str:
    return "\n\n".join(p.text for p in parts if p.text)


def _size(text: str) -> int:
    return len(text.encode())
