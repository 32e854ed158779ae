"""Show what each engine runs with and what its chips hold: planned beside measured."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.domain.verify import Details
from tpudeploy.engine.verify import detailed
from tpudeploy.operations.arguments import AProfile
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.verify.view import details as view
from tpudeploy.workspace import Workspace


@result
class MemoryLayout(Result):
    """What each machine of a profile runs with, planned beside measured. Part of the document of `status`."""

    FORMAT = "status"
    IS_DOCUMENT = False
    details: Annotated[tuple[Details, ...], "by machine; `memory` in bytes of one chip, planned beside measured"]

    def __iter__(self) -> Iterator[Details]:
        return iter(self.details)

    def to_dict(self) -> dict[str, Any]:
        return {"details": [details.to_dict() for details in self.details]}

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        return ("details",)

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return "\n".join(view(details, paint, width=width) for details in self.details)


def details(workspace: Workspace, profile: AProfile) -> MemoryLayout:
    """Show what a deployment's chips hold, planned beside measured, and the settings of its engines.

    Without a deployment there are none. A value that no engine reports is unknown. Raise `errors.Fault` or
    `errors.Denied` if it cannot be observed.
    """
    adapters = workspace.adapters
    deployment = workspace.deployment(loading.profile(profile), script=False)
    state = adapters.states.read(deployment.name).state
    if state is None or all(attempt.granted_at is None for attempt in state.slice_attempts):
        return MemoryLayout(details=())
    return MemoryLayout(details=detailed(adapters.world(), adapters.verify_sources, deployment))


OPERATION = Operation(run=details, results=(MemoryLayout,), title="Memory layout", tool="memory_layout")
