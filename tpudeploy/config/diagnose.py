"""Create diagnostics: with a code, a location, and nothing that looks like a credential."""

from __future__ import annotations

from collections.abc import Iterable, Mapping

from tpudeploy.catalog import closest
from tpudeploy.config.nodes import Path, dotted
from tpudeploy.config.tokens import masked
from tpudeploy.domain.diagnostics import Diagnostic, Location, Severity


def problem(
    code: str,
    message: str,
    at: Location | None,
    *,
    path: Path = (),
    hint: str = "",
    also: Location | None = None,
    severity: Severity = Severity.ERROR,
) -> Diagnostic:
    return Diagnostic(
        code=code,
        message=masked(message),
        severity=severity,
        path=masked(dotted(path)),
        location=at,
        hint=masked(hint),
        also=also,
    )


def warning(code: str, message: str, at: Location | None, *, path: Path = (), hint: str = "") -> Diagnostic:
    return problem(code, message, at, path=path, hint=hint, severity=Severity.WARNING)


def did_you_mean(word: str, choices: Iterable[str]) -> str:
    """Return `did you mean "tpu"?`, or "" if no choice is close."""
    nearest = closest(word, choices)
    return f'did you mean "{nearest}"?' if nearest else ""


def quoted(text: str, most: int = 60) -> str:
    """Return the text in quotes as a message shows it: on one line, with at most `most` characters."""
    line = masked(text).replace("\n", "\\n").replace("\r", "\\r")
    excerpt = line if len(line) <= most else f"{line[:most]}…"
    return f'"{excerpt}"'


def as_yaml(value: object) -> str:
    """Return a value as YAML's flow style has it."""
    match value:
        case bool() | None:
            return {True: "true", False: "false", None: "null"}[value]
        case Mapping():
            return f"{{{', '.join(f'{key}: {as_yaml(each)}' for key, each in value.items())}}}"
        case list() | tuple():
            return f"[{', '.join(map(as_yaml, value))}]"
        case _:
            return str(value)


def in_order(diagnostics: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Return the diagnostics without duplicates, by file, line and column; those without a location come first."""
    return tuple(sorted(dict.fromkeys(diagnostics), key=_place))


def _place(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    at = diagnostic.location
    return (at.file, at.line, at.column, diagnostic.code) if at else ("", 0, 0, diagnostic.code)
