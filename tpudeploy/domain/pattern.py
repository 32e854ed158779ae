"""Define `pattern`: a regular expression that is compiled when it is first used.

Modules declare their patterns at their heads, and a command needs few of them. Compiling the 85 that `validate`
imports, PyYAML's included, took a fifth of its time.
"""

from __future__ import annotations

import re
from typing import AnyStr, cast

_METHODS = ("findall", "finditer", "fullmatch", "match", "search", "split", "sub")


class _Pattern:
    def __init__(self, *arguments: object) -> None:
        self._arguments = arguments
        self.pattern = arguments[0]

    def __getattr__(self, name: str) -> object:
        compiled = re.compile(*vars(self)["_arguments"])
        # As attributes of its own, the methods are as fast as those of a compiled pattern.
        vars(self).update({method: getattr(compiled, method) for method in _METHODS})
        return getattr(compiled, name)


def pattern(text: AnyStr, flags: int = 0) -> re.Pattern[AnyStr]:
    """Return what `re.compile` returns, compiled at its first use."""
    return cast("re.Pattern[AnyStr]", _Pattern(text, flags))
