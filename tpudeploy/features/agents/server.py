"""Build the server: its instructions, the tools of a session, and the resources that an agent reads without a call."""

from __future__ import annotations

from collections.abc import AsyncIterator, Mapping
from contextlib import asynccontextmanager
from typing import Any

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError
from mcp.server.mcpserver.prompts import Prompt
from mcp.types import Tool as ListedTool

from tpudeploy.cli import documents
from tpudeploy.domain.excerpt import plain
from tpudeploy.feature_table import modules
from tpudeploy.features.agents.aliases import ALIASES
from tpudeploy.features.agents.operation_tool import HINTS
from tpudeploy.features.agents.prompts import PROMPTS
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
the tool of that name does the same. An answer that says `left_out` is not whole: its hint says how to get the rest."""
_READ_ONLY = "This server only reads: a person starts it with --allow-writes for apply and destroy."
_WRITES = """\
Show a plan to the person before you apply it. An apply takes minutes to hours, because it waits for capacity: poll its
operation, and leave it running meanwhile. A slice costs money from its grant until it is destroyed."""


class AgentServer(MCPServer[AgentSession]):
    """A server that answers to other names of its tools, too, and does not list them."""

    async def list_tools(self) -> list[ListedTool]:
        return [tool for tool in await super().list_tools() if tool.name not in ALIASES]


def server(session: AgentSession, *, allow_writes: bool) -> AgentServer:
    @asynccontextmanager
    async def lifespan(_: MCPServer[AgentSession]) -> AsyncIterator[AgentSession]:
        yield session

    session.allow_writes = allow_writes
    if allow_writes:
        session.fix_place()
    tools = {tool.name: tool for tool in (*READING, *(WRITING if allow_writes else ()))}
    session.accesses = {tool.name: tool.access for tool in tools.values()}
    others = [
        _strict_tool(tools[alias.tool], name, alias.values) for name, alias in ALIASES.items() if alias.tool in tools
    ]
    mcp_server = AgentServer(
        "tpudeploy",
        title="tpudeploy",
        version=VERSION,
        instructions=f"{_INSTRUCTIONS}\n\n{_WRITES if allow_writes else _READ_ONLY}",
        tools=[*map(_strict_tool, tools.values()), *others],
        lifespan=lifespan,
        log_level="WARNING",
    )
    _register_resources(mcp_server, session)
    for title, prompt in PROMPTS.items():
        mcp_server.add_prompt(Prompt.from_function(prompt, title=title))
    return mcp_server


def _strict_tool(tool: Tool, name: str = "", values: Mapping[str, Any] | None = None) -> StrictTool:
    """Return a tool under its name or another one, which may stand for some of its arguments."""
    strict = StrictTool.wrap(
        as_tool_result(tool.does, tool.answers, is_reading=tool.is_reading),
        name=name or tool.name,
        title=tool.title,
        description=tool.description,
        annotations=HINTS[tool.access],
    )
    strict.values = dict(values or {})
    return strict


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
