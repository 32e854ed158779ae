"""Build the server with the tools and resources of a session, and the instructions that an agent reads first."""

from __future__ import annotations

from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from inspect import cleandoc

from mcp.server.mcpserver import MCPServer

from tpudeploy.cli.mcp import resources
from tpudeploy.cli.mcp.operation_tool import HINTS
from tpudeploy.cli.mcp.session import Session
from tpudeploy.cli.mcp.strict import StrictTool, as_tool_result
from tpudeploy.cli.mcp.tools import READING, WRITING, Tool
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


def server(session: Session, *, allow_writes: bool) -> MCPServer[Session]:
    @asynccontextmanager
    async def lifespan(_: MCPServer[Session]) -> AsyncIterator[Session]:
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
    resources.register(mcp_server, session)
    return mcp_server


def _strict_tool(tool: Tool) -> StrictTool:
    return StrictTool.wrap(
        as_tool_result(tool.does, tool.answers),
        name=tool.name,
        title=tool.title,
        description=cleandoc(tool.does.__doc__ or ""),
        annotations=HINTS[tool.access],
    )
