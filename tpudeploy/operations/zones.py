"""List where a slice type is available: hardware, provisioning models, quota, price and recent results."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Annotated

from tpudeploy.domain.availability import Zones
from tpudeploy.operations.declaration import Argument, Operation, flag, valid_profiles
from tpudeploy.results import Result, result

if TYPE_CHECKING:
    from tpudeploy.loading import Profiles
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace


@result
class ZoneTables(Result):
    """Where slices are available, a table for each profile."""

    FORMAT = "zones"
    emulated: bool
    tables: Annotated[tuple[Zones, ...], "a quota limit does not guarantee capacity"]

    def __iter__(self) -> Iterator[Zones]:
        return iter(self.tables)

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        from tpudeploy.availability.view import zones as view

        return view(self.tables, paint, width=width, emulated=self.emulated)


def zones(
    workspace: Workspace,
    profiles: Profiles = (),
    *,
    type: str | None = None,  # noqa: A002 - the command line's word
    refresh: bool = False,
) -> ZoneTables:
    """List where a slice type is available, by zone: hardware, provisioning models, quota, price, recent results.

    Without `profiles` and `type`, the smallest type. An answer that Google does not give is marked as unknown.

    Raise `errors.UsageError` for a type that does not exist.
    """
    from tpudeploy import loading
    from tpudeploy.availability.gates import Query, judge_zones

    adapters = workspace.adapters
    slice_type = None if type is None else loading.accelerator_type(type)
    deployments = [workspace.offline_deployment(profile) for profile in loading.profiles(profiles)]
    queries = [(deployment.project, Query.for_deployment(deployment, slice_type)) for deployment in deployments]
    if not deployments:
        query = Query(type=slice_type or loading.smallest_type())
        queries = [(workspace.project_or_none(), query)]
    history = workspace.or_unknown(adapters.states.history)
    facts = {
        project: adapters.survey.facts(project, refresh=refresh)
        for project in dict.fromkeys(project for project, _ in queries)
    }
    now = adapters.clock.now()
    return ZoneTables(
        emulated=adapters.is_emulated,
        tables=tuple(
            judge_zones(query, facts[project], history, project=project, now=now) for project, query in queries
        ),
    )


OPERATION = Operation(
    run=zones,
    arguments=(
        valid_profiles(is_required=False, agents="paths inside the project; none to ask for `type` alone"),
        Argument(
            name="type",
            help="The slice type, e.g. v6e-4 (default: the profile's, or v6e-1).",
            metavar="TYPE",
            agents="e.g. v6e-4; otherwise the profile's, else v6e-1",
        ),
        flag("refresh", "Read hardware and prices again; they are cached for a day.", for_agents=False),
    ),
    results=(ZoneTables,),
    title="Find zones",
    tool="zones",
)
