"""Draw the life of an attempt from its table, as Mermaid: `python tests/house/lifecycle_diagram.py` updates the page."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path

from tpudeploy.domain.life import TRANSITIONS, Event, Life, Rule

PAGE = Path(__file__).parents[2] / "ARCHITECTURE.md"
_BLOCK = re.compile(r"(<!-- lifecycle: begin -->\n).*?(<!-- lifecycle: end -->)", re.DOTALL)


def diagram() -> str:
    return "\n".join(["```mermaid", "stateDiagram-v2", *(f"    {line}" for line in _lines()), "```", ""])


def drawn(page: str) -> str:
    """Return the page with the diagram of today's table."""
    return _BLOCK.sub(lambda block: f"{block[1]}{diagram()}{block[2]}", page)


def _lines() -> Iterator[str]:
    yield "[*] --> Requested: the intent is saved"
    for state, row in TRANSITIONS.items():
        events: dict[type[Life], list[type[Event]]] = {}
        for event, following in row.items():
            if not isinstance(following, Rule):
                events.setdefault(following, []).append(event)
        for following, names in events.items():
            yield f"{state.__name__} --> {following.__name__}: {', '.join(each.__name__ for each in names)}"
    yield "Releasing --> [*]: the slice is gone"


if __name__ == "__main__":
    PAGE.write_text(drawn(PAGE.read_text(encoding="utf-8")), encoding="utf-8")
