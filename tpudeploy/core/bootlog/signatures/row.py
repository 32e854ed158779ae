"""One row: the words an engine dies with, what they mean, and what to do about it here."""

from __future__ import annotations

import re
from collections.abc import Callable

from tpudeploy.core.bootlog.said import Said
from tpudeploy.domain.frozen import frozen

Remedy = Callable[[re.Match[str], Said], str]


@frozen
class Signature:
    """`what` names the cause in a line. `remedy` says what to do, with numbers where log or profile have them.

    `example`: a line that was seen, or stands in vLLM's or tpu_inference's source.
    """

    name: str
    what: str
    pattern: str
    remedy: Remedy
    example: str

    def found(self, text: str) -> re.Match[str] | None:
        return re.search(self.pattern, text)


def always(text: str) -> Remedy:
    """A remedy that needs no numbers."""
    return lambda _found, _said: text
