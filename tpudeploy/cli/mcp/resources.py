"""What an agent may read without a call: what is deployed here as the states remember it, and what was measured."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from tpudeploy.cli import documents
from tpudeploy.cli.mcp.session import Asked, Session, session
from tpudeploy.core.bench import runfile
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.views import show
from tpudeploy.workspace import Workspace

_JSON = "application/json"


def register(server: MCPServer[Session], of: Session) -> None:
    @server.resource("tpudeploy://deployments", title="Deployments", mime_type=_JSON)
    def deployments() -> str:
        """Every slice that the states here remember, without a look at the cloud."""
        with _opened(of) as workspace:
            return documents.text(show.document(workspace.remembered()))

    @server.resource("tpudeploy://runs", title="Benchmarks", mime_type=_JSON)
    def runs() -> str:
        """Every benchmark that was measured here, without its cells."""
        with _opened(of) as workspace:
            return documents.text(documents.runs(workspace.runs.all()))

    server.resource("tpudeploy://deployments/{name}", title="Deployment", mime_type=_JSON)(deployment)
    server.resource("tpudeploy://runs/{run_id}", title="Benchmark", mime_type=_JSON)(run)


def deployment(name: str, ctx: Asked) -> str:
    """One deployment as its state remembers it, without a look at the cloud."""
    with _opened(session(ctx)) as workspace:
        found = [state for state in workspace.remembered() if state.deployment == name]
    if not found:
        raise ResourceNotFoundError(f"Nothing is deployed as `{name}` here.")
    return documents.text(show.document(found))


def run(run_id: str, ctx: Asked) -> str:
    """One benchmark with all its cells, by its whole id."""
    with _opened(session(ctx)) as workspace:
        found = [each for each in workspace.runs.all() if each.id == run_id]
    if not found:
        raise ResourceNotFoundError(f"There is no run `{run_id}` here.")
    return runfile.dumps(found[0])


@contextmanager
def _opened(of: Session) -> Iterator[Workspace]:
    """Raise `ResourceError` with what stopped us."""
    try:
        with of.project.opened() as at:
            yield at.workspace
    except TpudeployError as error:
        raise ResourceError(f"{error.message} {error.hint}".strip()) from error
