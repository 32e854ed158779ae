"""Build the server: its instructions, the tools of a session, and the resources that an agent reads without a call."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import cleandoc

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from tpudeploy.cli import documents
from tpudeploy.domain.excerpt import plain
from tpudeploy.feature_table import modules
from tpudeploy.features.agents.operation_tool import HINTS
from tpudeploy.features.agents.resources import JSON, opened, visible
from tpudeploy.features.agents.session import AgentSession, Call, session
from tpudeploy.features.agents.strict import StrictTool, as_tool_result
from tpudeploy.features.agents.tools import READING, WRITING, Tool
from tpudeploy.operations.show import States
from tpudeploy.version import VERSION

_INSTRUCTIONS = """\
tpudeploy deploys vLLM on Google Cloud TPUs, declared in YAML profiles. Profiles are files of this project and are named
by their paths in it; to change a deployment, edit its profile, then plan. No tool takes a secret: profiles name secrets
of Secret Manager. Answers are the documents that the command line prints with --json; where a hint names a command,
the tool of that name does the same."""
_READ_ONLY = "This server only reads: a person starts it with --allow-writes for apply and destroy."
_WRITES = """\
Show a plan to the person before you apply it. An apply takes minutes to hours, because it waits for capacity: poll its
operation, and leave it running meanwhile. A slice costs money from its grant until it is destroyed."""


def server(session: AgentSession, *, allow_writes: bool) -> MCPServer[AgentSession]:
    @asynccontextmanager
    async def lifespan(_: MCPServer[AgentSession]) -> AsyncIterator[AgentSession]:
        yield session

    tools = (*READING, *(WRITING if allow_writes else ()))
    mcp_server = MCPServer(
        "tpudeploy",
        title="tpudeploy",
        version=VERSION,
        instructions=f"{_INSTRUCTIONS}\n\n{_WRITES if allow_writes else _READ_ONLY}",
        tools=[_strict_tool(tool) for tool in tools],
        lifespan=lifespan,
        log_level="WARNING",
    )
    _register_resources(mcp_server, session)
    return mcp_server


def _strict_tool(tool: Tool) -> StrictTool:
    return StrictTool.wrap(
        as_tool_result(tool.does, tool.answers),
        name=tool.name,
        title=tool.title,
        description=cleandoc(tool.does.__doc__ or ""),
        annotations=HINTS[tool.access],
    )


def _register_resources(server: MCPServer[AgentSession], server_session: AgentSession) -> None:
    @server.resource("tpudeploy://deployments", title="Deployments", mime_type=JSON)
    def deployments() -> str:
        """List every slice in the states here, without reading the cloud."""
        with opened(server_session) as workspace:
            return visible(documents.text(workspace.show().to_dict()))

    server.resource("tpudeploy://deployments/{name}", title="Deployment", mime_type=JSON)(_deployment)
    for feature in modules("tools"):
        for register in feature.RESOURCES:
            register(server, server_session)


def _deployment(name: str, ctx: Call) -> str:
    """Show one deployment as in its state, without reading the cloud."""
    with opened(session(ctx)) as workspace:
        states = [state for state in workspace.states() if state.deployment == name]
    if not states:
        raise ResourceNotFoundError(plain(f"Nothing is deployed as `{name}` here."))
    return visible(documents.text(States(states=tuple(states)).to_dict()))
