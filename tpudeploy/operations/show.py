"""Show a saved plan, or the contents of the states. Reads local files and the state backend only."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Annotated, Any

from tpudeploy.domain.state import State
from tpudeploy.operations.arguments import Arg
from tpudeploy.operations.declaration import Operation
from tpudeploy.plans import Plan
from tpudeploy.results import Result, document, part, result
from tpudeploy.text.paint import Paint
from tpudeploy.views.state import slices_text, values
from tpudeploy.workspace import Workspace


@result
class States(Result):
    """What the states here hold, as it was last applied."""

    FORMAT = "show"
    states: tuple[State, ...]

    def values(self) -> dict[str, Any]:
        return values(self.states)

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        state = {"deployment": str, "lineage": str, "serial": int}
        resource = dict.fromkeys(("address", "mode", "type", "name"), str) | {"index": int, "values": {}}
        resources = part({"resources": [resource]})
        return document("show", {"states": [state], "values": part({"root_module": resources})})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return slices_text(self.states, paint)


def show(
    workspace: Workspace,
    file: Annotated[
        Path | str | None,
        Arg("A saved plan (default: show the states).", metavar="PLANFILE", positional=True, agents=None),
    ] = None,
) -> States | Plan:
    """Show what the states here hold, without reading the cloud; or the plan that is saved in `file`.

    Raise `errors.StateUnreadable`, or `errors.PlanUnreadable` or `errors.PlanTooNew`.
    """
    if file is not None:
        return Plan.load(file)
    return States(states=workspace.states())


OPERATION = Operation(
    run=show,
    results=(States,),
)
