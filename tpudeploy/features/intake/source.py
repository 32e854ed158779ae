"""A text of another tool, and the place where reading it stopped. Secrets are masked in every line that is quoted."""

from __future__ import annotations

import re
from collections.abc import Iterable
from dataclasses import dataclass, replace
from enum import StrEnum

from tpudeploy.config import codes
from tpudeploy.config.diagnose import problem
from tpudeploy.config.source import Source
from tpudeploy.config.tokens import masked, tokens_in
from tpudeploy.config.trust import looks_secret
from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.errors import ConfigError

_QUOTE = r"\"(?:[^\"\\]|\\.)*\"?|'[^']*'?"
_NAMED = re.compile(rf"([A-Za-z_][\w-]*)(['\"]?[ \t]*[=:][ \t]*)({_QUOTE}|[^\s'\",;]+)")
_FLAGGED = re.compile(rf"(--[A-Za-z][\w-]*)([ \t]+)({_QUOTE}|[^\s'\",;-][^\s'\",;]*)")
_BEARER = re.compile(r"(?i)\b(bearer|basic)\s+([^\s'\"]+)")
_PASSWORD_IN_URL = re.compile(r"(://[^\s/:@]*:)([^\s/@]+)(@)")
_VALUE_KEY = re.compile(rf"(\bvalue['\"]?\s*[=:]\s*)({_QUOTE}|[^\s'\",;}}]+)")
LEAST_HIDDEN = 6  # a shorter text is in every profile


class Stop(Exception):
    """Reading stopped at a place of the text. `start` and `end` are offsets; the message is a sentence without its end.

    `at` is the place, where a reader of YAML knows it.
    """

    def __init__(
        self, message: str, start: int = 0, end: int = 0, *, hint: str = "", at: Location | None = None
    ) -> None:
        super().__init__(message)
        self.message = message
        self.start = start
        self.end = max(end, start + 1)
        self.hint = hint
        self.at = at


class Fate(StrEnum):
    """What became of a part of the source."""

    LEFT_OUT = "Not carried over"
    CHANGED = "Carried over with a change"


@dataclass(frozen=True, slots=True, kw_only=True)
class Note:
    """What a profile doesn't have of the source, or has otherwise, and why. `subject` is the source's own word."""

    subject: str
    reason: str
    fate: Fate = Fate.LEFT_OUT

    @property
    def sentence(self) -> str:
        return f"{self.subject}: {self.reason}"


def sentences_by_fate(notes: Iterable[Note]) -> dict[Fate, tuple[str, ...]]:
    """Return the sentences of notes, those of one fate together; without a fate that none has."""
    every = tuple(notes)
    groups = {fate: tuple(note.sentence for note in every if note.fate is fate) for fate in Fate}
    return {fate: sentences for fate, sentences in groups.items() if sentences}


def without_secrets(text: str) -> str:
    """Return a text with each value of a secret as asterisks, of the same length, so that columns stay the same."""

    def of_name(match: re.Match[str]) -> str:
        name, between, value = match.groups()
        return f"{name}{between}{_stars(value)}" if _is_secret(name, value) else match[0]

    hidden = _FLAGGED.sub(of_name, _NAMED.sub(of_name, masked(text)))
    hidden = _BEARER.sub(lambda match: f"{match[1]} {_stars(match[2])}", hidden)
    return _PASSWORD_IN_URL.sub(lambda match: f"{match[1]}{_stars(match[2])}{match[3]}", hidden)


def secret_values(text: str) -> set[str]:
    """Return the values in a text that are secrets by their form or by their name."""
    values = {text[start:end] for _, start, end in tokens_in(text, anywhere=True)}
    values |= {match[2] for match in _PASSWORD_IN_URL.finditer(text)} | {match[2] for match in _BEARER.finditer(text)}
    for pattern in (_NAMED, _FLAGGED):
        values |= {match[3].strip("'\"") for match in pattern.finditer(text) if _is_secret(match[1], match[3])}
    return {value for value in values if len(value) >= LEAST_HIDDEN and not value.startswith(("$", "<"))}


def has_token(text: str) -> bool:
    """Return whether a text has what looks like a credential, by its form."""
    return any(True for _ in tokens_in(text, anywhere=True)) or _PASSWORD_IN_URL.search(text) is not None


def stopped(stop: Stop, source: Source) -> ConfigError:
    """Return the error of a place at which reading stopped: its line, and a caret under the fault."""
    at = stop.at if stop.at is not None else source.location_of(stop.start, stop.end)
    return error_of([problem(codes.FOREIGN, stop.message, at, hint=stop.hint)])


def error_of(problems: list[Diagnostic]) -> ConfigError:
    """Return an error with problems, in which no line shows the value of a secret."""
    hidden = [replace(each, location=_hidden(each.location)) for each in problems]
    return ConfigError("The source cannot be read, so no file was written.", diagnostics=hidden)


def _is_secret(name: str, value: str) -> bool:
    return looks_secret(name.strip("-").replace("-", "_").upper()) and not value.strip("'\"").startswith(("$", "<"))


def _hidden(at: Location | None) -> Location | None:
    if at is None:
        return None
    # A value that stands below its name, as in a manifest, is hidden whatever the name is.
    text = _VALUE_KEY.sub(lambda match: f"{match[1]}{_stars(match[2])}", without_secrets(at.text))
    return replace(at, text=text)


def _stars(value: str) -> str:
    return "*" * len(value)
