"""How a check says what it found: placed on the line that wrote the key, and nothing where none did."""

from __future__ import annotations

from tpudeploy.catalog import flags
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.diagnostics import Diagnostic, Severity

_ARGS = "serving.args."


def error(of: Deployment, code: str, message: str, *, path: str = "", hint: str = "") -> Diagnostic:
    """It cannot boot, or cannot work."""
    return Diagnostic(code=code, message=message, path=path, location=of.origin(path), hint=hint)


def warning(of: Deployment, code: str, message: str, *, path: str = "", hint: str = "") -> Diagnostic:
    """It works, and something about it is worth a thought."""
    location = of.origin(path)
    return Diagnostic(code=code, message=message, severity=Severity.WARNING, path=path, location=location, hint=hint)


def sized(of: Deployment) -> HbmBudget | None:
    """Its budget, or None where it cannot be sized: what is not known is no problem."""
    return of.budget if isinstance(of.budget, HbmBudget) else None


def argument(of: Deployment, name: str) -> tuple[str, Json]:
    """The path and value of a flag of `serving.args`, by canonical name; ("", None) where it is not written."""
    for path, value in of.attributes.items():
        if path.startswith(_ARGS):
            flag = flags.find(path.removeprefix(_ARGS))
            if flag is not None and flag.name == name:
                return path, value
    return "", None


def gib(size: int, places: int = 1) -> str:
    """Bytes as people say them here: `12.5 GiB`."""
    return f"{size / 1024**3:.{places}f} GiB"
