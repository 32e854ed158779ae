"""Show the current metrics of running servers: each figure, what it means, and what to do.

Exit with 1 if the metrics of a server cannot be read.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator, Mapping
from functools import partial
from typing import Annotated, Any

from tpudeploy import loading
from tpudeploy.adapters.vllm_metrics import HttpMeter
from tpudeploy.domain import exits
from tpudeploy.domain.errors import CloudError, QueryFailed, StateError, TpudeployError
from tpudeploy.domain.facts import Unknown
from tpudeploy.domain.metrics import EngineFigures, Metered, Metrics
from tpudeploy.domain.names import address
from tpudeploy.domain.together import together
from tpudeploy.engine.confirmation import confirmed_urls
from tpudeploy.engine.metrics import ServerFigures, read_metrics, to_metrics
from tpudeploy.metrics.view import metrics as view
from tpudeploy.operations.arguments import Agents, Arg, NamesProfiles, ProfileOrName
from tpudeploy.operations.declaration import Operation
from tpudeploy.ports import World
from tpudeploy.results import Result, result
from tpudeploy.text.paint import Paint
from tpudeploy.workspace import Workspace

_UNCONFIRMED = "only endpoints/NAME.json names this address, and no slice of the state has it: it was not asked"


@result
class MetricsReport(Result):
    """The current metrics of servers, in words."""

    FORMAT = "metrics"
    ADDED_LATER = frozenset({"totals"})
    replicas: tuple[Metered, ...]
    totals: Annotated[tuple[Metered, ...], "the sum over the replicas of each deployment that has several"]

    @property
    def exit_code(self) -> int:
        return exits.SUCCESS if all(each.observed for each in self.replicas) else exits.ERROR

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return view(Metrics(replicas=self.replicas, totals=self.totals), paint, width=width)


def metrics(
    workspace: Workspace,
    profile: Annotated[
        ProfileOrName | None,
        Arg(
            "A profile (all its servers), or the name of a deployment (those that take requests); default: those of "
            "all deployments.",
            agents=Agents("a profile's path inside the project", required=True, profiles=NamesProfiles.ONE),
        ),
    ] = None,
) -> MetricsReport:
    """Show the current metrics of a deployment's servers, each with its meaning and what to do.

    A profile stands for each of its machines, the name of a deployment for its published servers, and None for those
    of all deployments. A server that does not answer has the reason. Several replicas also have a total.

    Raise `errors.StateError` if the profile has no machine, `errors.QueryFailed` if there is no endpoint,
    `errors.Fault` or `errors.Denied` if the machines cannot be observed.
    """
    if profile is None or loading.is_name(profile):
        return _of_endpoints(workspace, None if profile is None else str(profile))
    adapters = workspace.adapters
    deployment = workspace.deployment(loading.profile(profile), script=False)
    meter = HttpMeter(has_iap=not adapters.is_emulated)
    read = read_metrics(adapters.world(), meter, deployment)
    return MetricsReport(replicas=read.replicas, totals=read.totals)


def _of_endpoints(workspace: Workspace, name: str | None) -> MetricsReport:
    adapters = workspace.adapters
    names = adapters.states.names() if name is None else (name,)
    servers = [(each, where, url) for each in names for where, url in _servers(each, workspace.endpoint(each))]
    if not servers:
        message = f"{name} has no endpoint yet." if name is not None else "No endpoint is published here."
        raise QueryFailed(message, hint="Run `tpudeploy apply` first, or name a profile.")
    meter, world = HttpMeter(has_iap=False), adapters.world()
    published = list(dict.fromkeys(each for each, _, _ in servers))
    confirmed = dict(zip(published, together(adapters.parallelism, partial(_confirmed, world), published), strict=True))

    def read_server(server: tuple[str, str, str]) -> EngineFigures | Unknown:
        urls = confirmed[server[0]]
        if isinstance(urls, TpudeployError):
            return Unknown(because=f"its slices could not be observed: {urls.message}")
        return meter.at(server[2]) if server[2] in urls else Unknown(because=_UNCONFIRMED)

    figures = together(adapters.parallelism, read_server, servers)
    answers: dict[str, list[ServerFigures]] = {}
    for (deployment, where, url), read in zip(servers, figures, strict=True):
        answers.setdefault(deployment, []).append(ServerFigures(address=where, url=url, figures=read))
    metrics = to_metrics(answers)
    return MetricsReport(replicas=metrics.replicas, totals=metrics.totals)


def _confirmed(world: World, name: str) -> Collection[str] | TpudeployError:
    """Return the addresses of a deployment that may be asked, or why they are not known."""
    try:
        return confirmed_urls(world, name)
    except (CloudError, StateError) as cause:
        return cause


def _servers(name: str, endpoint: Mapping[str, Any] | None) -> Iterator[tuple[str, str]]:
    """Yield the address and URL of each published server: the endpoint of several is a router, which has no metrics."""
    if endpoint is None:
        return
    rows = endpoint.get("replicas", [])
    if len(rows) > 1 or "router" in endpoint:
        yield from ((address(name, row["replica"]), row["url"]) for row in rows)
    else:
        yield name, str(endpoint["url"])


OPERATION = Operation(
    run=metrics,
    results=(MetricsReport,),
    title="Read metrics",
    tool="metrics",
)
