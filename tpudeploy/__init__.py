"""Deploy vLLM on Cloud TPU from one YAML profile. The public names; each is imported on its first use.

    report = tpudeploy.apply("gemma.yaml", timeout="1h", on_event=tpudeploy.progress())

`plan`, `apply`, `destroy` and `size` take profiles or their paths. `Workspace` has a method for everything else.
Every error is a class of `errors`, every event one of `events`.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from tpudeploy.config.profile import BootSpec as BootSpec
    from tpudeploy.config.profile import BudgetSpec as BudgetSpec
    from tpudeploy.config.profile import HealthSpec as HealthSpec
    from tpudeploy.config.profile import LifecycleSpec as LifecycleSpec
    from tpudeploy.config.profile import ModelSpec as ModelSpec
    from tpudeploy.config.profile import NetworkSpec as NetworkSpec
    from tpudeploy.config.profile import PlacementSpec as PlacementSpec
    from tpudeploy.config.profile import RouterSpec as RouterSpec
    from tpudeploy.config.profile import ScaleSpec as ScaleSpec
    from tpudeploy.config.profile import ServingSpec as ServingSpec
    from tpudeploy.config.profile import TpuSpec as TpuSpec
    from tpudeploy.domain import errors as errors
    from tpudeploy.domain import events as events
    from tpudeploy.domain.report import Wait as Wait
    from tpudeploy.features import *  # noqa: F403 - results of features, by their own list
    from tpudeploy.loading import Profile as Profile
    from tpudeploy.operations.details import MemoryLayout as MemoryLayout
    from tpudeploy.operations.doctor import FixScript as FixScript
    from tpudeploy.operations.doctor import Preconditions as Preconditions
    from tpudeploy.operations.explain import Explanation as Explanation
    from tpudeploy.operations.force_unlock import Unlocked as Unlocked
    from tpudeploy.operations.gc import Orphans as Orphans
    from tpudeploy.operations.import_slice import Imported as Imported
    from tpudeploy.operations.logs import LogReadings as LogReadings
    from tpudeploy.operations.metrics import MetricsReport as MetricsReport
    from tpudeploy.operations.output import Outputs as Outputs
    from tpudeploy.operations.query import Answer as Answer
    from tpudeploy.operations.render import Rendered as Rendered
    from tpudeploy.operations.report_host import ReportedHost as ReportedHost
    from tpudeploy.operations.show import States as States
    from tpudeploy.operations.size import Size as Size
    from tpudeploy.operations.size import predict_size as _predict_size
    from tpudeploy.operations.state import StateAddresses as StateAddresses
    from tpudeploy.operations.state import StateFile as StateFile
    from tpudeploy.operations.state import StateHistory as StateHistory
    from tpudeploy.operations.state import StateRecords as StateRecords
    from tpudeploy.operations.state_change import StateMigrated as StateMigrated
    from tpudeploy.operations.state_change import StateMoved as StateMoved
    from tpudeploy.operations.state_change import StatePushed as StatePushed
    from tpudeploy.operations.state_change import StateRemoved as StateRemoved
    from tpudeploy.operations.status import Status as Status
    from tpudeploy.operations.validate import Validation as Validation
    from tpudeploy.operations.verify import Verified as Verified
    from tpudeploy.operations.version import Version as Version
    from tpudeploy.operations.written_files import WrittenFiles as WrittenFiles
    from tpudeploy.operations.zones import ZoneTables as ZoneTables
    from tpudeploy.plans import Plan as Plan
    from tpudeploy.plans import Report as Report
    from tpudeploy.shortcuts import apply as apply
    from tpudeploy.shortcuts import destroy as destroy
    from tpudeploy.shortcuts import plan as plan
    from tpudeploy.shortcuts import progress as progress
    from tpudeploy.workspace import Workspace as Workspace

    size = _predict_size
    __all__: list[str]

# The module of each name, and its name there; None is the module itself. Results are beside their operations.
_HOMES = {
    "Plan": ("tpudeploy.plans", "Plan"),
    "Profile": ("tpudeploy.loading", "Profile"),
    "BootSpec": ("tpudeploy.config.profile", "BootSpec"),
    "BudgetSpec": ("tpudeploy.config.profile", "BudgetSpec"),
    "HealthSpec": ("tpudeploy.config.profile", "HealthSpec"),
    "LifecycleSpec": ("tpudeploy.config.profile", "LifecycleSpec"),
    "ModelSpec": ("tpudeploy.config.profile", "ModelSpec"),
    "NetworkSpec": ("tpudeploy.config.profile", "NetworkSpec"),
    "PlacementSpec": ("tpudeploy.config.profile", "PlacementSpec"),
    "RouterSpec": ("tpudeploy.config.profile", "RouterSpec"),
    "ScaleSpec": ("tpudeploy.config.profile", "ScaleSpec"),
    "ServingSpec": ("tpudeploy.config.profile", "ServingSpec"),
    "TpuSpec": ("tpudeploy.config.profile", "TpuSpec"),
    "Report": ("tpudeploy.plans", "Report"),
    "Wait": ("tpudeploy.domain.report", "Wait"),
    "Workspace": ("tpudeploy.workspace", "Workspace"),
    "errors": ("tpudeploy.domain.errors", None),
    "events": ("tpudeploy.domain.events", None),
    "size": ("tpudeploy.operations.size", "predict_size"),
    "apply": ("tpudeploy.shortcuts", "apply"),
    "destroy": ("tpudeploy.shortcuts", "destroy"),
    "plan": ("tpudeploy.shortcuts", "plan"),
    "progress": ("tpudeploy.shortcuts", "progress"),
    "Answer": ("tpudeploy.operations.query", "Answer"),
    "Explanation": ("tpudeploy.operations.explain", "Explanation"),
    "LogReadings": ("tpudeploy.operations.logs", "LogReadings"),
    "MemoryLayout": ("tpudeploy.operations.details", "MemoryLayout"),
    "MetricsReport": ("tpudeploy.operations.metrics", "MetricsReport"),
    "Orphans": ("tpudeploy.operations.gc", "Orphans"),
    "Outputs": ("tpudeploy.operations.output", "Outputs"),
    "FixScript": ("tpudeploy.operations.doctor", "FixScript"),
    "Preconditions": ("tpudeploy.operations.doctor", "Preconditions"),
    "Rendered": ("tpudeploy.operations.render", "Rendered"),
    "ReportedHost": ("tpudeploy.operations.report_host", "ReportedHost"),
    "Size": ("tpudeploy.operations.size", "Size"),
    "States": ("tpudeploy.operations.show", "States"),
    "Status": ("tpudeploy.operations.status", "Status"),
    "Validation": ("tpudeploy.operations.validate", "Validation"),
    "Verified": ("tpudeploy.operations.verify", "Verified"),
    "Version": ("tpudeploy.operations.version", "Version"),
    "WrittenFiles": ("tpudeploy.operations.written_files", "WrittenFiles"),
    "ZoneTables": ("tpudeploy.operations.zones", "ZoneTables"),
    "Imported": ("tpudeploy.operations.import_slice", "Imported"),
    "StateAddresses": ("tpudeploy.operations.state", "StateAddresses"),
    "StateFile": ("tpudeploy.operations.state", "StateFile"),
    "StateHistory": ("tpudeploy.operations.state", "StateHistory"),
    "StateMoved": ("tpudeploy.operations.state_change", "StateMoved"),
    "StateMigrated": ("tpudeploy.operations.state_change", "StateMigrated"),
    "StatePushed": ("tpudeploy.operations.state_change", "StatePushed"),
    "StateRecords": ("tpudeploy.operations.state", "StateRecords"),
    "StateRemoved": ("tpudeploy.operations.state_change", "StateRemoved"),
    "Unlocked": ("tpudeploy.operations.force_unlock", "Unlocked"),
}

if not TYPE_CHECKING:  # a type checker would take any name for one of ours

    def __getattr__(name: str) -> Any:
        from tpudeploy.feature_table import RESULTS

        if name == "__all__":
            return sorted({*_HOMES, *RESULTS})
        module, inside = _HOMES.get(name) or (RESULTS.get(name), name)
        if module is None:
            raise AttributeError(f"module `{__name__}` has no attribute `{name}`")
        home = import_module(module)
        return getattr(home, inside) if inside else home

    def __dir__() -> list[str]:
        return list(__getattr__("__all__"))
