"""Who is right: the answer found in what a model said, held against what is known."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

_MINUS = "\N{MINUS SIGN}"  # which models write, and Python does not read
_NUMBER = re.compile(rf"[-{_MINUS}]?\d[\d,]*(?:\.\d+)?")
_ANSWER = re.compile(r"answer\s*(?:is)?\s*[:=]\s*(?P<said>.+)", re.IGNORECASE)
_DRESS = re.compile(r"[*_`$\s.]+|\\boxed\{|\}")


def is_right(said: str, answer: str) -> bool:
    """A number is right where it is the same number; words are where they are the same but for dress and case."""
    wanted = _value(answer)
    line = _answered(said)
    if wanted is None:
        return _plain(line) == _plain(answer)
    found = _NUMBER.findall(line) or _NUMBER.findall(said)
    return bool(found) and _value(found[-1]) == wanted


def _answered(said: str) -> str:
    """What stands behind the last `Answer:`; without one, the last line that says something."""
    marked = _ANSWER.findall(said)
    if marked:
        return str(marked[-1])
    lines = [line for line in said.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _value(text: str) -> Decimal | None:
    stripped = text.strip().lstrip("$").rstrip(".%").replace(",", "").replace(_MINUS, "-")
    try:
        value = Decimal(stripped)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def _plain(text: str) -> str:
    return _DRESS.sub(" ", text).strip(" ()\"'").casefold()
