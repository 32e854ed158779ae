"""Parse the tool's settings, which no profile has: flags over TPUDEPLOY_* variables over tpudeploy.toml."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, fields
from typing import Any

from tpudeploy.config import codes
from tpudeploy.config.diagnose import did_you_mean, in_order, problem, quoted
from tpudeploy.config.scalars import Duration
from tpudeploy.domain.diagnostics import Diagnostic, Location
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.patience import Patience

FILE = "tpudeploy.toml"
_PREFIX = "TPUDEPLOY_"
_PATIENCE = "patience"
_TEXTS = ("backend", "project")
_TIMES = tuple(f"{_PATIENCE}.{time.name}" for time in fields(Patience))
_UNTRUSTED = "untrusted"
KEYS = (*_TEXTS, _UNTRUSTED, *_TIMES)


@dataclass(frozen=True, slots=True, kw_only=True)
class Settings:
    """The settings. `backend` is a folder or gs://bucket/prefix; None is the folder beside the profiles.

    With `untrusted`, profiles read no environment variable and no file outside the project.

    `origins` maps every setting that is set to its origin: `--backend`, `TPUDEPLOY_BACKEND`, `tpudeploy.toml:3:1`.
    """

    backend: str | None = None
    project: str | None = None
    untrusted: bool = False
    patience: Patience = field(default_factory=Patience)
    origins: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True, slots=True, kw_only=True)
class _Value:
    value: object
    at: Location


def settings(flags: Mapping[str, str | None], environment: Mapping[str, str], file: bytes = b"") -> Settings:
    """Return the settings. `flags` are by setting, e.g. `patience.grace`, or None; `file` is tpudeploy.toml's content.

    Raise ConfigError with every problem.
    """
    values = {**_from_file(file), **dict(_from_environment(environment)), **dict(_from_flags(flags))}
    problems = [diagnostic for key, setting in values.items() for diagnostic in _problems(key, setting)]
    if problems:
        raise ConfigError("The settings have problems", diagnostics=in_order(problems))
    texts = {key: str(setting.value) for key, setting in values.items() if key in _TEXTS}
    times = {key.partition(".")[2]: _seconds(setting.value) for key, setting in values.items() if key in _TIMES}
    return Settings(
        backend=texts.get("backend"),
        project=texts.get("project"),
        untrusted=_UNTRUSTED in values and values[_UNTRUSTED].value is True,
        patience=Patience(**{name: seconds for name, seconds in times.items() if seconds is not None}),
        origins={key: str(setting.at) for key, setting in values.items()},
    )


def variable(key: str) -> str:
    """Return the environment variable of a setting: `patience.grace` is TPUDEPLOY_PATIENCE_GRACE."""
    return _PREFIX + key.replace(".", "_").upper()


def _from_flags(flags: Mapping[str, str | None]) -> Iterator[tuple[str, _Value]]:
    for key, value in flags.items():
        if value is not None:
            flag = "--" + key.replace(".", "-").replace("_", "-")
            yield key, _Value(value=value, at=Location(file=flag, line=0, column=0))


def _from_environment(environment: Mapping[str, str]) -> Iterator[tuple[str, _Value]]:
    for key in (*_TEXTS, *_TIMES):  # the command line reads TPUDEPLOY_UNTRUSTED
        if environment.get(variable(key)):
            yield key, _Value(value=environment[variable(key)], at=Location(file=variable(key), line=0, column=0))


def _from_file(content: bytes) -> dict[str, _Value]:
    if not content:
        return {}

    try:
        text = content.decode("utf-8")
        tables = tomllib.loads(text)
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, RecursionError) as error:
        raise ConfigError(f"`{FILE}` is not TOML: {error}") from error
    return {key: _Value(value=value, at=_line_of(key, text)) for key, value in _flat(tables)}


def _flat(tables: Mapping[str, Any]) -> Iterator[tuple[str, object]]:
    for key, value in tables.items():
        if key == _PATIENCE and isinstance(value, dict):
            yield from ((f"{key}.{name}", time) for name, time in value.items())
        else:
            yield key, value


def _line_of(key: str, text: str) -> Location:
    """Return the first line that begins with the key's last word: tomllib returns no positions."""
    pattern = re.compile(rf"\s*\[?\s*['\"]?(?:{_PATIENCE}\.)?{re.escape(key.rpartition('.')[2])}\b")
    lines = text.splitlines()
    number = next((n for n, line in enumerate(lines) if pattern.match(line)), 0)
    return Location(file=FILE, line=number + 1, column=1, width=len(lines[number].rstrip()), text=lines[number])


def _problems(key: str, setting: _Value) -> Iterator[Diagnostic]:
    if key not in KEYS:
        yield problem(codes.UNKNOWN_KEY, f"Unknown setting {quoted(key)}", setting.at, hint=did_you_mean(key, KEYS))
    elif key in _TEXTS and not isinstance(setting.value, str):
        yield problem(codes.WRONG_TYPE, f"{key} must be text", setting.at, hint="quote it")
    elif key == _UNTRUSTED and not isinstance(setting.value, bool):
        yield problem(codes.WRONG_TYPE, f"{key} must be true or false", setting.at, hint="write untrusted = true")
    elif key in _TIMES and _seconds(setting.value) is None:
        hint = "write seconds, or 90s, 15m, 2h"
        yield problem(codes.WRONG_FORM, f"{key} must be a time above zero", setting.at, hint=hint)


def _seconds(value: object) -> float | None:
    """Return a number of seconds, or a duration as in a profile, in seconds; None for anything else."""
    text = str(value)
    try:
        seconds = Duration.parse(text) if text[-1:].isalpha() else float(text)
    except ValueError:
        return None
    return float(seconds) if 0 < seconds < float("inf") else None
