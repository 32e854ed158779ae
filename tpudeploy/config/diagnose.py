"""How config makes a Diagnostic: coded, placed, and with nothing in it that looks like a credential."""

from __future__ import annotations

from collections.abc import Iterable

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


def did_you_mean(word: str, known: Iterable[str]) -> str:
    """`did you mean "tpu"?`, or nothing."""
    nearest = closest(word, known)
    return f'did you mean "{nearest}"?' if nearest else ""


def quoted(text: str, most: int = 60) -> str:
    """The text as a message shows it: on one line, and not endless."""
    shown = masked(text).replace("\n", "\\n").replace("\r", "\\r")
    return f'"{shown if len(shown) <= most else shown[:most] + "…"}"'


def in_order(found: Iterable[Diagnostic]) -> tuple[Diagnostic, ...]:
    """Without repetition, by file, line and column; what has no place comes first."""
    return tuple(sorted(dict.fromkeys(found), key=_place))


def _place(diagnostic: Diagnostic) -> tuple[str, int, int, str]:
    at = diagnostic.location
    return (at.file, at.line, at.column, diagnostic.code) if at else ("", 0, 0, diagnostic.code)
