"""vLLM on Cloud TPU, from one YAML profile. The public names; each is imported when it is first asked for."""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpudeploy.domain import errors, events
    from tpudeploy.domain.report import Wait
    from tpudeploy.loading import Profile
    from tpudeploy.operations.ab import AbProposal, AbResult
    from tpudeploy.operations.accuracy import Accuracy
    from tpudeploy.operations.alerts import AlertFile
    from tpudeploy.operations.bench import WrittenFiles
    from tpudeploy.operations.benchmark_runs import BenchmarkRun, OperatingPoints, Runs
    from tpudeploy.operations.compare import Compared
    from tpudeploy.operations.details import MemoryLayout
    from tpudeploy.operations.doctor import Preconditions
    from tpudeploy.operations.explain import Explanation
    from tpudeploy.operations.force_unlock import Unlocked
    from tpudeploy.operations.gc import Orphans
    from tpudeploy.operations.import_slice import Imported
    from tpudeploy.operations.logs import LogReadings
    from tpudeploy.operations.metrics import MetricsReport
    from tpudeploy.operations.output import Outputs
    from tpudeploy.operations.query import Answer
    from tpudeploy.operations.recommend import Recommended
    from tpudeploy.operations.rehearse import Rehearsal
    from tpudeploy.operations.render import Rendered
    from tpudeploy.operations.report_host import ReportedHost
    from tpudeploy.operations.show import States
    from tpudeploy.operations.size import Size
    from tpudeploy.operations.size import predict_size as size
    from tpudeploy.operations.state import StateAddresses, StateFile, StateHistory, StateRecords
    from tpudeploy.operations.state_change import StateMoved, StatePushed, StateRemoved
    from tpudeploy.operations.status import Status
    from tpudeploy.operations.validate import Validation
    from tpudeploy.operations.verify import Verified
    from tpudeploy.operations.version import Version
    from tpudeploy.operations.zones import ZoneTables
    from tpudeploy.plans import Plan, Report
    from tpudeploy.workspace import Workspace

__all__ = [
    "AbProposal",
    "AbResult",
    "Accuracy",
    "AlertFile",
    "Answer",
    "BenchmarkRun",
    "Compared",
    "Explanation",
    "Imported",
    "LogReadings",
    "MemoryLayout",
    "MetricsReport",
    "OperatingPoints",
    "Orphans",
    "Outputs",
    "Plan",
    "Preconditions",
    "Profile",
    "Recommended",
    "Rehearsal",
    "Rendered",
    "Report",
    "ReportedHost",
    "Runs",
    "Size",
    "StateAddresses",
    "StateFile",
    "StateHistory",
    "StateMoved",
    "StatePushed",
    "StateRecords",
    "StateRemoved",
    "States",
    "Status",
    "Unlocked",
    "Validation",
    "Verified",
    "Version",
    "Wait",
    "Workspace",
    "WrittenFiles",
    "ZoneTables",
    "errors",
    "events",
    "size",
]

# The module of each name, and its name there; None is the module itself. Results are beside their operations.
_HOMES = {
    "Plan": ("tpudeploy.plans", "Plan"),
    "Profile": ("tpudeploy.loading", "Profile"),
    "Report": ("tpudeploy.plans", "Report"),
    "Wait": ("tpudeploy.domain.report", "Wait"),
    "Workspace": ("tpudeploy.workspace", "Workspace"),
    "errors": ("tpudeploy.domain.errors", None),
    "events": ("tpudeploy.domain.events", None),
    "size": ("tpudeploy.operations.size", "predict_size"),
    "AbProposal": ("tpudeploy.operations.ab", "AbProposal"),
    "AbResult": ("tpudeploy.operations.ab", "AbResult"),
    "Accuracy": ("tpudeploy.operations.accuracy", "Accuracy"),
    "AlertFile": ("tpudeploy.operations.alerts", "AlertFile"),
    "Answer": ("tpudeploy.operations.query", "Answer"),
    "BenchmarkRun": ("tpudeploy.operations.benchmark_runs", "BenchmarkRun"),
    "Compared": ("tpudeploy.operations.compare", "Compared"),
    "Explanation": ("tpudeploy.operations.explain", "Explanation"),
    "LogReadings": ("tpudeploy.operations.logs", "LogReadings"),
    "MemoryLayout": ("tpudeploy.operations.details", "MemoryLayout"),
    "MetricsReport": ("tpudeploy.operations.metrics", "MetricsReport"),
    "OperatingPoints": ("tpudeploy.operations.benchmark_runs", "OperatingPoints"),
    "Orphans": ("tpudeploy.operations.gc", "Orphans"),
    "Outputs": ("tpudeploy.operations.output", "Outputs"),
    "Preconditions": ("tpudeploy.operations.doctor", "Preconditions"),
    "Recommended": ("tpudeploy.operations.recommend", "Recommended"),
    "Rehearsal": ("tpudeploy.operations.rehearse", "Rehearsal"),
    "Rendered": ("tpudeploy.operations.render", "Rendered"),
    "ReportedHost": ("tpudeploy.operations.report_host", "ReportedHost"),
    "Runs": ("tpudeploy.operations.benchmark_runs", "Runs"),
    "Size": ("tpudeploy.operations.size", "Size"),
    "States": ("tpudeploy.operations.show", "States"),
    "Status": ("tpudeploy.operations.status", "Status"),
    "Validation": ("tpudeploy.operations.validate", "Validation"),
    "Verified": ("tpudeploy.operations.verify", "Verified"),
    "Version": ("tpudeploy.operations.version", "Version"),
    "WrittenFiles": ("tpudeploy.operations.bench", "WrittenFiles"),
    "ZoneTables": ("tpudeploy.operations.zones", "ZoneTables"),
    "Imported": ("tpudeploy.operations.import_slice", "Imported"),
    "StateAddresses": ("tpudeploy.operations.state", "StateAddresses"),
    "StateFile": ("tpudeploy.operations.state", "StateFile"),
    "StateHistory": ("tpudeploy.operations.state", "StateHistory"),
    "StateMoved": ("tpudeploy.operations.state_change", "StateMoved"),
    "StatePushed": ("tpudeploy.operations.state_change", "StatePushed"),
    "StateRecords": ("tpudeploy.operations.state", "StateRecords"),
    "StateRemoved": ("tpudeploy.operations.state_change", "StateRemoved"),
    "Unlocked": ("tpudeploy.operations.force_unlock", "Unlocked"),
}

if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        if name not in _HOMES:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        module, inside = _HOMES[name]
        home = import_module(module)
        return getattr(home, inside) if inside else home

    def __dir__() -> list[str]:
        return sorted({*globals(), *__all__})
