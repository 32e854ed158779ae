"""A model's draft, drawn so that nobody takes it for a finding."""

from __future__ import annotations

from tpudeploy.domain.draft import Draft
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

_BAR = "│ "


def draft(of: Draft, paint: Paint, *, width: int | None) -> str:
    """`width` as in `views.zones`."""
    head = f"A draft by {words.plain(of.model)}, asked at {of.by}. A model wrote it, and nobody has checked it:"
    room = None if width is None else width - 2 - len(_BAR)
    said = [part for line in of.text.splitlines() for part in words.wrapped(words.plain(line), room, indent="")]
    return "\n".join([paint.yellow(head), *(f"  {paint.dim(f'{_BAR}{line}'.rstrip())}" for line in said)])
