"""Define how far a profile's author is trusted: which environment variables and files the profile may read.

Why: decision 53 in docs/decisions.md.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Final


def _nowhere(_: str) -> bool:
    return False


@dataclass(frozen=True, slots=True, kw_only=True)
class Trust:
    """`allowed` are environment variables that the operator allows by name: on the command line or in the environment,
    never in a file that the author of the profile can write.

    `is_outside` returns whether a file, with links resolved, is outside the project. No message quotes such a file.
    """

    is_trusted: bool = True
    allowed: frozenset[str] = frozenset()
    is_outside: Callable[[str], bool] = field(default=_nowhere, compare=False, repr=False)

    def may_read(self, variable: str) -> bool:
        """Return whether `${env:variable}` may be filled in."""
        return variable in self.allowed or (self.is_trusted and not looks_secret(variable))


TRUSTED: Final = Trust()

_WORD = re.compile(r"[A-Z]+(?![a-z])|[A-Z]?[a-z]+|[0-9]+")
_SECRET_WORDS = frozenset(
    {"KEY", "KEYS", "PAT", "CREDENTIAL", "CREDENTIALS", "PASSPHRASE", "PASSWD", "PASSWORD", "PWD", "SECRET", "SECRETS"}
)
_SECRET_ENDINGS = (
    *("TOKEN", "SECRET", "PASSWORD", "PASSWD", "PASSPHRASE", "CREDENTIAL", "CREDENTIALS"),
    *("ACCESSKEY", "APIKEY", "PRIVATEKEY", "SECRETKEY"),
)
# HF_TOKEN_PATH and SECRET_NAME are locations of secrets; HF_HUB_DISABLE_IMPLICIT_TOKEN is a switch; PWD is a folder.
_ABOUT_A_SECRET = frozenset({"DIR", "FILE", "NAME", "PATH"})
_SWITCHES = frozenset({"DISABLE", "ENABLE"})
_FOLDERS = frozenset({"PWD", "OLDPWD"})


def looks_secret(variable: str) -> bool:
    """Return whether an environment variable of this name usually holds a credential: `GITHUB_TOKEN`, `dbPassword`.

    Words count, not letters: `TOKENIZERS_PARALLELISM` and `MAX_TOKENS` are settings.
    """
    words = [word.upper() for word in _WORD.findall(variable)]
    if variable in _FOLDERS or not words or words[-1] in _ABOUT_A_SECRET or _SWITCHES & set(words):
        return False
    return any(word in _SECRET_WORDS or word.endswith(_SECRET_ENDINGS) for word in words)
