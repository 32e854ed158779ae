"""vLLM on Cloud TPU, from one YAML profile. The public names; each is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpudeploy.domain import errors, events
    from tpudeploy.domain.plan import Plan
    from tpudeploy.domain.report import Report
    from tpudeploy.domain.wait import Wait
    from tpudeploy.version import VERSION as __version__
    from tpudeploy.workspace import Profile, Workspace

__all__ = ["Plan", "Profile", "Report", "Wait", "Workspace", "__version__", "errors", "events"]

# Where each name is kept: module, and what in it; "" is the module itself.
_HOMES = {
    "Plan": ("tpudeploy.domain.plan", "Plan"),
    "Profile": ("tpudeploy.workspace", "Profile"),
    "Report": ("tpudeploy.domain.report", "Report"),
    "Wait": ("tpudeploy.domain.wait", "Wait"),
    "Workspace": ("tpudeploy.workspace", "Workspace"),
    "__version__": ("tpudeploy.version", "VERSION"),
    "errors": ("tpudeploy.domain.errors", ""),
    "events": ("tpudeploy.domain.events", ""),
}

if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module `tpudeploy` has no `{name}`")
        module, inside = _HOMES[name]
        found = import_module(module)
        return getattr(found, inside) if inside else found

    def __dir__() -> list[str]:
        return list(__all__)
