"""One row: the words an engine dies with, what they mean, and what to do about it here."""

from __future__ import annotations

import re
from collections.abc import Callable

from tpudeploy.boot_log.said import Said
from tpudeploy.domain.frozen import frozen

Remedy = Callable[[re.Match[str], Said], str]


@frozen
class Signature:
    """`what` names the cause in a line. `remedy` says what to do, with numbers where log or profile have them.

    `example`: a line that was seen, or stands in the source of the program that writes it.
    `is_consequence`: what others do when the server fails; it names the cause only where no other row does.
    `ends_server`: False where the server comes up and serves all the same, but for some requests.
    `applies`: whether the row can be true, with what else the log says; None: always.
    """

    name: str
    what: str
    pattern: str
    remedy: Remedy
    example: str
    is_consequence: bool = False
    ends_server: bool = True
    applies: Callable[[re.Match[str], Said], bool] | None = None

    def found(self, text: str) -> re.Match[str] | None:
        return re.search(self.pattern, text)

    def match(self, text: str, said: Said) -> re.Match[str] | None:
        """Return the match in `text`, or None also where the rest of the log contradicts it."""
        match = self.found(text)
        return match if match is None or self.applies is None or self.applies(match, said) else None


def always(text: str) -> Remedy:
    """A remedy that needs no numbers."""
    return lambda _found, _said: text
