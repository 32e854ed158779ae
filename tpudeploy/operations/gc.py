"""Find and remove requests that no deployment needs, which are still billed: a lost or older state may miss them."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import fields
from typing import Annotated, Any, Self

from tpudeploy import loading
from tpudeploy.domain import orphans
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.events import Event
from tpudeploy.domain.report import RunReport
from tpudeploy.engine.orphan_removal import survey
from tpudeploy.operations.arguments import Agents, Arg, SomeProfiles
from tpudeploy.operations.declaration import ApprovalForm, Operation
from tpudeploy.orphans.view import gc as view
from tpudeploy.results import Result, document
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


class Orphans(orphans.Orphans, Result):
    """The resources with our mark, and which of them no deployment needs."""

    __slots__ = ()
    __repr__ = Result.__repr__
    FORMAT = "gc"

    @classmethod
    def from_domain(cls, garbage: orphans.Orphans) -> Self:
        """Return the domain's list as this class."""
        return cls(**{spec.name: getattr(garbage, spec.name) for spec in fields(garbage)})

    def to_dict(self) -> dict[str, object]:
        """Return the document without the report of a removal."""
        return orphans.Orphans.to_dict(self)

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return document("gc", {"report": RunReport | None, "error": TpudeployError | None}, orphans.Orphans)

    @classmethod
    def promised_keys(cls) -> tuple[str, ...]:
        return ("format", "strays", "unreachable")

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return view(self, paint)


def gc(
    workspace: Workspace,
    profiles: Annotated[
        SomeProfiles, Arg(agents=Agents("paths inside the project; none for everything in the states"))
    ] = (),
    *,
    foreign: Annotated[bool, Arg("Delete also what no state here tracks.", agents=None)] = False,
    on_event: Callable[[Event], None] | None = None,
) -> Orphans:
    """List orphans: resources with our mark that no deployment needs, which are billed. Removes nothing.

    Of these profiles, or of all; with `foreign`, also what no state here tracks. `Workspace.collect` removes them.
    Raise `errors.Fault`, `errors.Denied` or `errors.StateError` if they cannot be found out.
    """
    adapters = workspace.adapters
    deployments = [workspace.deployment(profile, script=False) for profile in loading.profiles(profiles)]
    projects = {deployment.project for deployment in deployments} or {adapters.project()}
    garbage = survey(
        adapters.world(on_event), deployments, [project for project in projects if project], foreign=foreign
    )
    return Orphans.from_domain(garbage)


OPERATION = Operation(
    run=gc,
    results=(Orphans,),
    title="Find orphans",
    tool="gc_list",
    options=("lock_timeout", "backend"),
    approval=ApprovalForm(
        question="Do you really want to remove this? There is no undo.",
        otherwise="Review the list, then pass -auto-approve.",
    ),
)
