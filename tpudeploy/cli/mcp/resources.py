"""Define the resources that an agent can read without a call: the deployments in the states, and benchmark runs."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from tpudeploy.benchmark import runfile
from tpudeploy.cli import documents
from tpudeploy.cli.mcp.session import Call, Session, session
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.operations.show import States
from tpudeploy.workspace import Workspace

_JSON = "application/json"


def register(server: MCPServer[Session], server_session: Session) -> None:
    @server.resource("tpudeploy://deployments", title="Deployments", mime_type=_JSON)
    def deployments() -> str:
        """List every slice in the states here, without reading the cloud."""
        with _opened(server_session) as workspace:
            return documents.text(workspace.show().to_dict())

    @server.resource("tpudeploy://runs", title="Benchmarks", mime_type=_JSON)
    def runs() -> str:
        """List every benchmark of this project, without its cells."""
        with _opened(server_session) as workspace:
            return documents.text(workspace.benchmark_runs().to_dict())

    server.resource("tpudeploy://deployments/{name}", title="Deployment", mime_type=_JSON)(deployment)
    server.resource("tpudeploy://runs/{run_id}", title="Benchmark", mime_type=_JSON)(run)


def deployment(name: str, ctx: Call) -> str:
    """Show one deployment as in its state, without reading the cloud."""
    with _opened(session(ctx)) as workspace:
        states = [state for state in workspace.states() if state.deployment == name]
    if not states:
        raise ResourceNotFoundError(f"Nothing is deployed as `{name}` here.")
    return documents.text(States(states=tuple(states)).to_dict())


def run(run_id: str, ctx: Call) -> str:
    """Show one benchmark with all its cells, by its full id."""
    with _opened(session(ctx)) as workspace:
        runs = [candidate for candidate in workspace.adapters.runs.all() if candidate.id == run_id]
    if not runs:
        raise ResourceNotFoundError(f"There is no run `{run_id}` here.")
    return runfile.dumps(runs[0])


@contextmanager
def _opened(server_session: Session) -> Iterator[Workspace]:
    """Open a workspace. Raise `ResourceError` for an error of ours."""
    try:
        with server_session.project.opened() as at:
            yield at.workspace
    except TpudeployError as error:
        raise ResourceError(f"{error.message} {error.hint}".strip()) from error
