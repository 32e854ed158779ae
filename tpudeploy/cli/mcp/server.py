"""Build the server: its instructions, the tools of a session, and the resources that an agent reads without a call."""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from inspect import cleandoc

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceError, ResourceNotFoundError

from tpudeploy.benchmark import runfile
from tpudeploy.cli import documents
from tpudeploy.cli.mcp.operation_tool import HINTS
from tpudeploy.cli.mcp.session import Call, Session, session
from tpudeploy.cli.mcp.strict import StrictTool, as_tool_result
from tpudeploy.cli.mcp.tools import READING, WRITING, Tool
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.excerpt import plain, visible_tree
from tpudeploy.operations.show import States
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace

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


_JSON = "application/json"


def _register_resources(server: MCPServer[Session], server_session: Session) -> None:
    @server.resource("tpudeploy://deployments", title="Deployments", mime_type=_JSON)
    def deployments() -> str:
        """List every slice in the states here, without reading the cloud."""
        with _opened(server_session) as workspace:
            return _without_hidden_text(documents.text(workspace.show().to_dict()))

    @server.resource("tpudeploy://runs", title="Benchmarks", mime_type=_JSON)
    def runs() -> str:
        """List every benchmark of this project, without its cells."""
        with _opened(server_session) as workspace:
            return _without_hidden_text(documents.text(workspace.benchmark_runs().to_dict()))

    server.resource("tpudeploy://deployments/{name}", title="Deployment", mime_type=_JSON)(_deployment)
    server.resource("tpudeploy://runs/{run_id}", title="Benchmark", mime_type=_JSON)(_run)


def _deployment(name: str, ctx: Call) -> str:
    """Show one deployment as in its state, without reading the cloud."""
    with _opened(session(ctx)) as workspace:
        states = [state for state in workspace.states() if state.deployment == name]
    if not states:
        raise ResourceNotFoundError(plain(f"Nothing is deployed as `{name}` here."))
    return _without_hidden_text(documents.text(States(states=tuple(states)).to_dict()))


def _run(run_id: str, ctx: Call) -> str:
    """Show one benchmark with all its cells, by its full id."""
    with _opened(session(ctx)) as workspace:
        runs = [candidate for candidate in workspace.adapters.runs.all() if candidate.id == run_id]
    if not runs:
        raise ResourceNotFoundError(plain(f"There is no run `{run_id}` here."))
    return _without_hidden_text(runfile.dumps(runs[0]))


def _without_hidden_text(document: str) -> str:
    """Return a resource without characters that hide or reorder other text, as the answers of tools are."""
    return documents.text(visible_tree(json.loads(document)))


@contextmanager
def _opened(server_session: Session) -> Iterator[Workspace]:
    """Open a workspace. Raise `ResourceError` for an error of ours."""
    try:
        with server_session.project.opened() as at:
            yield at.workspace
    except TpudeployError as error:
        raise ResourceError(plain(f"{error.message} {error.hint}".strip())) from error
