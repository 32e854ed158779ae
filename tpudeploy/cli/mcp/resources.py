"""What an agent may read without a call: the deployments that are remembered here."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from tpudeploy.cli import documents
from tpudeploy.cli.mcp.session import Asked, Session, session
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.state import State
from tpudeploy.views import remembered

_JSON = "application/json"


def register(server: MCPServer[Session], of: Session) -> None:
    @server.resource("tpudeploy://deployments", title="Deployments", mime_type=_JSON)
    def deployments() -> str:
        """Every slice that the states here remember, without a look at the cloud."""
        return documents.text(remembered.document(_states(of)))

    server.resource("tpudeploy://deployments/{name}", title="Deployment", mime_type=_JSON)(deployment)


def deployment(name: str, ctx: Asked) -> str:
    """One deployment as its state remembers it, without a look at the cloud."""
    found = [state for state in _states(session(ctx)) if state.deployment == name]
    if not found:
        raise ResourceNotFoundError(f"Nothing is deployed as `{name}` here.")
    return documents.text(remembered.document(found))


def _states(of: Session) -> tuple[State, ...]:
    """Raise `ResourceError` with what stopped us."""
    try:
        with of.project.opened() as at:
            return at.workspace.remembered()
    except TpudeployError as error:
        raise ResourceError(f"{error.message} {error.hint}".strip()) from error
