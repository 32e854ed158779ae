"""Format diagnostics, each with its line of YAML and a caret under the fault, in the colours of a terminal."""

from __future__ import annotations

from collections.abc import Iterable

from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.text.paint import Paint


def diagnostics(diagnostics: Iterable[Diagnostic], paint: Paint) -> str:
    return describe_diagnostics(diagnostics, paint.styled)
