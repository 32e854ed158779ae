"""List where a slice type is available: hardware, provisioning models, quota, price and recent results."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Annotated

from tpudeploy import loading
from tpudeploy.availability.gates import Query, judge_zones
from tpudeploy.availability.view import zones as view
from tpudeploy.config.profile import Profile
from tpudeploy.domain import exits
from tpudeploy.domain.availability import ZoneTable
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import Diagnostic
from tpudeploy.domain.errors import ConfigError
from tpudeploy.domain.excerpt import describe_diagnostics
from tpudeploy.operations.arguments import Agents, Arg, Refresh, ValidProfiles
from tpudeploy.operations.declaration import Operation
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace


@result
class ZoneTables(Result):
    """Where slices are available, a table for each profile."""

    FORMAT = "zones"
    ADDED_LATER = frozenset({"diagnostics"})
    emulated: bool
    tables: Annotated[tuple[ZoneTable, ...], "a quota limit does not guarantee capacity"]
    diagnostics: Annotated[tuple[Diagnostic, ...], "the problems of the profiles that have no table"] = ()

    def __iter__(self) -> Iterator[ZoneTable]:
        return iter(self.tables)

    @property
    def exit_code(self) -> int:
        return exits.ERROR if self.diagnostics else exits.SUCCESS

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        tables = view(self.tables, paint, width=width, emulated=self.emulated)
        return f"{tables}\n\n{describe_diagnostics(self.diagnostics, paint.styled)}" if self.diagnostics else tables


def zones(
    workspace: Workspace,
    profiles: Annotated[
        ValidProfiles, Arg(agents=Agents("paths inside the project; none to ask for `type` alone"))
    ] = (),
    *,
    type: Annotated[  # noqa: A002 - the command line's word
        str | None,
        Arg(
            "The slice type, e.g. v6e-4 (default: the profile's, or v6e-1).",
            agents=Agents("e.g. v6e-4; otherwise the profile's, else v6e-1"),
        ),
    ] = None,
    refresh: Refresh = False,
) -> ZoneTables:
    """List where a slice type is available, by zone: hardware, provisioning models, quota, price, recent results.

    Without `profiles` and `type`, the smallest type. An answer that Google does not give is marked as unknown. A
    profile that cannot be resolved stops no other; its problems are in the diagnostics.

    Raise `errors.UsageError` for a type that does not exist, and `errors.ConfigError` if no profile can be resolved.
    """
    adapters = workspace.adapters
    slice_type = None if type is None else loading.accelerator_type(type)
    deployments, unusable = _resolved(workspace, loading.profiles(profiles))
    queries = [(deployment.project, Query.for_deployment(deployment, slice_type)) for deployment in deployments]
    if not deployments:
        kind = slice_type or loading.smallest_type()
        query = Query(type=kind, backends=kind.backends[:1])
        queries = [(workspace.project_or_none(), query)]
    history = workspace.or_unknown(adapters.states.history)
    facts = {
        (project, backends): adapters.survey.facts(project, backends, refresh=refresh)
        for project, backends in dict.fromkeys((project, query.backends) for project, query in queries)
    }
    now = adapters.clock.now()
    return ZoneTables(
        emulated=adapters.is_emulated,
        diagnostics=tuple(problem for error in unusable for problem in error.problems),
        tables=tuple(
            judge_zones(query, facts[project, query.backends], history, project=project, now=now)
            for project, query in queries
        ),
    )


def _resolved(workspace: Workspace, profiles: Iterable[Profile]) -> tuple[list[Deployment], list[ConfigError]]:
    """Return the deployments, and the error of each profile without one. Raise the first if no profile has one."""
    deployments: list[Deployment] = []
    unusable: list[ConfigError] = []
    for profile in profiles:
        try:
            deployments.append(workspace.offline_deployment(profile))
        except ConfigError as error:
            unusable.append(error)
    if unusable and not deployments:
        raise unusable[0]
    return deployments, unusable


OPERATION = Operation(
    run=zones,
    results=(ZoneTables,),
    title="Find zones",
    tool="zones",
)
