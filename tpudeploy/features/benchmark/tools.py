"""The tools of agents that measure, and their resources."""

from __future__ import annotations

from mcp.server.mcpserver import MCPServer
from mcp.server.mcpserver.exceptions import ResourceNotFoundError

from tpudeploy.cli.documents import Document, text
from tpudeploy.domain.excerpt import plain
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.agents import answers
from tpudeploy.features.agents.operation import EmitEvent, OperationOutcome, Stops
from tpudeploy.features.agents.operation_tool import Response, ToolCall
from tpudeploy.features.agents.resources import JSON, opened, visible
from tpudeploy.features.agents.session import AgentSession, Call, session
from tpudeploy.features.benchmark import runfile
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.features.benchmark.view import row
from tpudeploy.operations.declaration import Operation
from tpudeploy.text.paint import Paint


def _measure_in_background(call: ToolCall) -> Document:
    """Start to measure a deployment, and return the operation to poll. Raise what stops it before the first cell."""
    server_session, (path,) = call.session, call.paths
    clock, name = server_session.project.clock(), call.opened.profile.name
    stops = Stops(clock.stop)

    def work(tell: EmitEvent) -> OperationOutcome:
        def hear(run: Run, cell: Cell) -> None:
            tell({"v": 1, "type": "cell", "run": run.id, "line": row(run, cell, Paint()), **to_json(cell)})

        with server_session.project.workspace([path], backend="", clock=clock) as workspace:
            stops.add(workspace.adapters.stop)
            result = workspace.bench(**call.values, on_cell=hear)
        return OperationOutcome(document=result.to_dict())

    about = {"does": "bench", "profile": path}
    return server_session.operations.begin(work, about=about, names=frozenset({name}), stop=stops.stop).document()


ROWS: tuple[Operation, ...] = ()  # the library has all of them
RESPONSES: dict[str, Response] = {"bench": _measure_in_background}
ANSWERS: dict[str, type[answers.ToolDocument]] = {"bench": answers.OperationProgress}
WRITING = ()


def _register_runs(server: MCPServer[AgentSession], server_session: AgentSession) -> None:
    @server.resource("tpudeploy://runs", title="Benchmarks", mime_type=JSON)
    def runs() -> str:
        """List every benchmark of this project, without its cells."""
        with opened(server_session) as workspace:
            return visible(text(workspace.benchmark_runs().to_dict()))

    server.resource("tpudeploy://runs/{run_id}", title="Benchmark", mime_type=JSON)(_run)


def _run(run_id: str, ctx: Call) -> str:
    """Show one benchmark with all its cells, by its full id."""
    with opened(session(ctx)) as workspace:
        runs = [candidate for candidate in stored_runs(workspace.adapters).all() if candidate.id == run_id]
    if not runs:
        raise ResourceNotFoundError(plain(f"There is no run `{run_id}` here."))
    return visible(runfile.dumps(runs[0]))


RESOURCES = (_register_runs,)
