"""Grading: comparison of the answer in a model's text with the known answer."""

from __future__ import annotations

import re
from decimal import Decimal, InvalidOperation

_MINUS = "\N{MINUS SIGN}"  # models write it, and Python does not parse it
_NUMBER = re.compile(rf"[-{_MINUS}]?\d[\d,]*(?:\.\d+)?")
_ANSWER = re.compile(r"answer\s*(?:is)?\s*[:=]\s*(?P<said>.+)", re.IGNORECASE)
_MARKUP = re.compile(r"[*_`$\s.]+|\\boxed\{|\}")


def is_right(text: str, answer: str) -> bool:
    """Return whether the answer in `text` is right: the same number, or the same words without markup and case."""
    expected = _value(answer)
    line = _answer_line(text)
    if expected is None:
        return _plain(line) == _plain(answer)
    numbers = _NUMBER.findall(line) or _NUMBER.findall(text)
    return bool(numbers) and _value(numbers[-1]) == expected


def _answer_line(text: str) -> str:
    """Return the text after the last `Answer:`, or the last line that is not empty."""
    marked_answers = _ANSWER.findall(text)
    if marked_answers:
        return str(marked_answers[-1])
    lines = [line for line in text.splitlines() if line.strip()]
    return lines[-1] if lines else ""


def _value(text: str) -> Decimal | None:
    stripped = text.strip().lstrip("$").rstrip(".%").replace(",", "").replace(_MINUS, "-")
    try:
        value = Decimal(stripped)
    except InvalidOperation:
        return None
    return value if value.is_finite() else None


def _plain(text: str) -> str:
    return _MARKUP.sub(" ", text).strip(" ()\"'").casefold()
