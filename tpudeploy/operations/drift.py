"""Show what changed or vanished since the last apply; exit 2 where anything did. Changes nothing."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from typing import Annotated

from tpudeploy.domain import exits
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.events import Event
from tpudeploy.operations.arguments import Arg, ValidProfiles
from tpudeploy.operations.declaration import Operation
from tpudeploy.plans import Plan
from tpudeploy.workspace import Workspace


class Drift(Plan):
    """A plan that would only record the drift."""

    __slots__ = ()

    @property
    def exit_code(self) -> int:
        if self.worst_error is not None:
            return self.worst_error.exit_code
        return exits.SUCCESS if self.is_empty else exits.CHANGES

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        return ("format", "is_empty", "resource_drift")


def drift(
    workspace: Workspace,
    profiles: ValidProfiles,
    *,
    target: Annotated[
        Iterable[str],
        Arg("Plan only this deployment, NAME, or this replica, NAME[0] (repeatable).", metavar="ADDR", agents=None),
    ] = (),
    invalid: Mapping[str, ConfigError] | None = None,
    on_event: Callable[[Event], None] | None = None,
) -> Drift:
    """Show what changed outside since the last apply, including server settings: a plan that would only record it.

    Raise as `plan` does.
    """
    plan = workspace.plan(profiles, refresh_only=True, attest=True, target=target, invalid=invalid, on_event=on_event)
    return Drift.from_domain(plan)


OPERATION = Operation(
    run=drift,
    results=(Drift,),
    title="Find drift",
    tool="drift",
    options=("parallelism", "backend"),
    takes_invalid=True,
    takes_events=True,
)
