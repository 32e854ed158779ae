"""vLLM on Cloud TPU, from one YAML profile. The public names; each is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpudeploy.domain import errors, events
    from tpudeploy.domain.report import Report
    from tpudeploy.domain.wait import Wait
    from tpudeploy.loading import Profile, size
    from tpudeploy.plans import Plan
    from tpudeploy.workspace import Workspace

__all__ = ["Plan", "Profile", "Report", "Wait", "Workspace", "errors", "events", "size"]

# Where each is kept: a module, and a name in it; None is the module itself.
_HOMES = {
    "Plan": ("tpudeploy.plans", "Plan"),
    "Profile": ("tpudeploy.loading", "Profile"),
    "Report": ("tpudeploy.domain.report", "Report"),
    "Wait": ("tpudeploy.domain.wait", "Wait"),
    "Workspace": ("tpudeploy.workspace", "Workspace"),
    "errors": ("tpudeploy.domain.errors", None),
    "events": ("tpudeploy.domain.events", None),
    "size": ("tpudeploy.loading", "size"),
}

if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        module, inside = _HOMES[name]
        found = import_module(module)
        return getattr(found, inside) if inside else found

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
