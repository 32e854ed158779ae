"""Resolve plain YAML text to null, booleans and numbers by the core schema of YAML 1.2, where `no` is text."""

from __future__ import annotations

import re

_WORDS: dict[str, bool | None] = {
    "": None,
    "~": None,
    "null": None,
    "Null": None,
    "NULL": None,
    "true": True,
    "True": True,
    "TRUE": True,
    "false": False,
    "False": False,
    "FALSE": False,
}
_INTEGER = re.compile(r"[-+]?[0-9]+")
_BASED = re.compile(r"0o[0-7]+|0x[0-9a-fA-F]+")
_FLOAT = re.compile(r"[-+]?(?:\.[0-9]+|[0-9]+(?:\.[0-9]*)?)(?:[eE][-+]?[0-9]+)?")
_NOT_FINITE = re.compile(r"[-+]?\.(?:inf|Inf|INF)|\.(?:nan|NaN|NAN)")
# Python refuses to convert longer ones (4,300 digits); a number in a profile has at most ten digits.
_MOST_DIGITS = 400


class NotText(ValueError):
    """Text with a NUL or half a character, which no argument, variable or file can hold."""


class NotFinite(ValueError):
    """NaN, an infinity, or a number too large to be one."""


def resolve(text: str) -> bool | int | float | str | None:
    """Return the value of a plain scalar. Raise NotFinite for numbers that JSON cannot express."""
    if text in _WORDS:
        return _WORDS[text]
    if _NOT_FINITE.fullmatch(text):
        raise NotFinite(text)
    if not (_FLOAT.fullmatch(text) or _BASED.fullmatch(text)):
        return text
    if len(text) > _MOST_DIGITS:
        raise NotFinite(text)
    return _number(text)


def is_literal(text: str) -> bool:
    """Return whether the text would be a number or a boolean without quotes."""
    return bool(_FLOAT.fullmatch(text) or _BASED.fullmatch(text) or _WORDS.get(text) is not None)


def _number(text: str) -> int | float:
    if _INTEGER.fullmatch(text):
        return int(text)
    if _BASED.fullmatch(text):
        return int(text, 0)
    number = float(text)
    if number in (float("inf"), float("-inf")):
        raise NotFinite(text)
    return number


def is_clean(text: str) -> bool:
    """Return whether an argument, a variable or a file can hold the text: it has no NUL and no lone surrogate."""
    return "\0" not in text and (text.isascii() or text == text.encode("utf-8", "replace").decode("utf-8"))
