"""Make boot logs fit to be attached to an issue: no secret, no address, no account, no project, no bucket."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping

from tpudeploy.config.tokens import masked

_ROWS: tuple[tuple[re.Pattern[str], str], ...] = (
    # Values of what is a secret by its name, as vLLM prints its arguments and bash its variables.
    (
        re.compile(
            r"(?i)((?:api[_-]?key|token|secret|password)s?['\"]?\s*[=:]\s*)(\[[^\]]*\]|'[^']*'|\"[^\"]*\"|[^\s,}]+)"
        ),
        r"\1***",
    ),
    (re.compile(r"(?i)(\bbearer\s+)\S+"), r"\1***"),
    (re.compile(r"[\w.+-]+@[\w-]+\.[\w.-]+"), "ACCOUNT"),
    (re.compile(r"(?<=projects/)[\w.:-]+|(?<=\.c\.)[\w-]+(?=\.internal)"), "PROJECT"),
    (re.compile(r"(?<=gs://)[\w.-]+"), "BUCKET"),
    (re.compile(r"(?<=pkg\.dev/)[\w-]+"), "PROJECT"),
    (
        re.compile(
            r"(?<![\w.])(?!127\.|0\.0\.0\.0)(?:\d{1,3}\.){3}\d{1,3}(?![\w.])|(?<![\w:])(?:[0-9a-f]{1,4}:){3,7}[0-9a-f]{0,4}(?![\w:])"
        ),
        "ADDRESS",
    ),
)


def redact(text: str, names: Mapping[str, str]) -> str:
    """Return a log without what may be private. `names` are words to replace, such as a project's id, by others."""
    text = masked(text)
    for pattern, replacement in _ROWS:
        text = pattern.sub(replacement, text)
    for name in sorted(filter(None, names), key=len, reverse=True):  # one can be a part of another
        text = re.sub(rf"(?<![\w-]){re.escape(name)}(?![\w-])", names[name], text)
    return text


def report(head: Iterable[str], logs: Mapping[str, str], names: Mapping[str, str]) -> str:
    """Return the text of a file with some facts, and the logs by what they are called in it."""
    parts = [*head, ""]
    for title, text in logs.items():
        parts += [f"== {redact(title, names)}", redact(text, names).rstrip("\n"), ""]
    return "\n".join(parts)
