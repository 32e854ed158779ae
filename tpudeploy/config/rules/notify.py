"""Check `notify`: URLs that are encrypted, commands that can be split into words, and no password in either."""

from __future__ import annotations

import re
import shlex
from collections.abc import Iterator

from tpudeploy.config import codes
from tpudeploy.config.rules.violation import Violation
from tpudeploy.config.schema import ProfileSpec

_LOCAL = frozenset({"localhost", "127.0.0.1", "[::1]"})
_URL = re.compile(
    r"(?P<scheme>https?)://(?P<host>[a-z0-9.-]+|\[[0-9a-f:]+\])(?::[0-9]{1,5})?(?:[/?][!-~]*)?", re.IGNORECASE
)
_PASSWORD = re.compile(r"[a-z]+://[^/?#]*@", re.IGNORECASE)


def targets(profile: ProfileSpec) -> Iterator[Violation]:
    """Report a target that could not be sent to, or that would be sent to without encryption."""
    for i, text in enumerate(profile.notify):
        wrong = target_problem(text)
        if wrong is not None:
            yield Violation(codes.NOTIFY_TARGET, ("notify", i), *wrong)


def target_problem(text: str) -> tuple[str, str] | None:
    """Return what is wrong with a URL or a command, and what to do; None for one that can be used."""
    return _url_problem(text) if is_url(text) else _command_problem(text)


def is_url(text: str) -> bool:
    """Return whether a target is a URL. Everything else is a command."""
    return "://" in text.split(" ", 1)[0]


def _url_problem(text: str) -> tuple[str, str] | None:
    if _PASSWORD.match(text):
        return "A URL to notify has a password", "leave out the part before `@`; the receiver can check the signature"
    url = _URL.fullmatch(text)
    if url is None:
        return "A URL to notify is not valid", "write https://HOST/PATH"
    if url["scheme"] == "http" and url["host"] not in _LOCAL:
        return "A URL to notify is not encrypted", "write https://; plain http is for localhost"
    return None


def _command_problem(text: str) -> tuple[str, str] | None:
    try:
        words = shlex.split(text)
    except ValueError:
        return "A command to notify has an open quote", "close it; no shell reads it, so quotes only group words"
    if not words or "\x00" in text:
        return "A command to notify is empty", "write a program and its arguments, or a URL"
    return None
