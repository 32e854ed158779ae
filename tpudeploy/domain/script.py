"""Script: the startup script of a deployment, rendered on first use, because a plan without changes needs none."""

from __future__ import annotations

from collections.abc import Callable


class Script:
    """A text, or a function that returns it. Scripts with the same text are equal."""

    __slots__ = ("_source",)

    def __init__(self, source: str | Callable[[], str]) -> None:
        self._source = source

    def __str__(self) -> str:
        if not isinstance(self._source, str):
            self._source = self._source()
        return self._source

    def __eq__(self, other: object) -> bool:
        return str(self) == str(other) if isinstance(other, Script) else NotImplemented

    def __hash__(self) -> int:
        return hash(str(self))
