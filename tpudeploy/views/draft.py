"""Format a model's draft so that it cannot be mistaken for a verified finding."""

from __future__ import annotations

from tpudeploy.domain.draft import Draft
from tpudeploy.views import words
from tpudeploy.views.paint import Paint

_BAR = "│ "


def draft(draft: Draft, paint: Paint, *, width: int | None) -> str:
    """Return the draft behind a bar on each line. `width` as in `views.zones`."""
    head = f"A draft by {words.plain(draft.model)}, asked at {draft.by}. A model wrote it, and it has not been checked:"
    room = None if width is None else width - 2 - len(_BAR)
    lines = [part for line in draft.text.splitlines() for part in words.wrapped(words.plain(line), room, indent="")]
    return "\n".join([paint.yellow(head), *(f"  {paint.dim(f'{_BAR}{line}'.rstrip())}" for line in lines)])
