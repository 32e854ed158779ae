"""One row: the words that an engine dies with, their meaning, and what to do about it here."""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass
from functools import cache

from tpudeploy.boot_log.settings import EngineFacts

Remedy = Callable[[re.Match[str], EngineFacts], str]  # computed from the match and the rest of the log


@cache  # each line of a log is searched for every row, and `re.search` takes longer to find a pattern than to search
def _compiled(pattern: str) -> re.Pattern[str]:
    return re.compile(pattern)


@dataclass(frozen=True, slots=True, kw_only=True)
class Signature:
    """`what` names the cause in a line. `remedy` says what to do; a text may name groups of the match.

    `example`: a line from a real log, or from the source of the program that writes it.
    `is_consequence`: what others do when the server fails; it names the cause only where no other row does.
    `ends_server`: False where the server comes up and serves all the same, but for some requests.
    `is_hardware`: the machine itself is broken, which Google can be told (`tpudeploy report-host`).
    `applies`: whether the row can be true, by the rest of the log; None: always.
    """

    name: str
    what: str
    pattern: str
    remedy: Remedy | str
    example: str
    is_consequence: bool = False
    ends_server: bool = True
    is_hardware: bool = False
    applies: Callable[[re.Match[str], EngineFacts], bool] | None = None

    def search(self, text: str) -> re.Match[str] | None:
        return _compiled(self.pattern).search(text)

    def match(self, text: str, facts: EngineFacts) -> re.Match[str] | None:
        """Return the match in `text`, or None also where the rest of the log contradicts it."""
        match = self.search(text)
        return match if match is None or self.applies is None or self.applies(match, facts) else None

    def advice(self, match: re.Match[str], facts: EngineFacts) -> str:
        """Return the remedy for this match, with numbers where log or profile have them."""
        return self.remedy.format(**match.groupdict()) if isinstance(self.remedy, str) else self.remedy(match, facts)
