"""The tools of agents that propose an A/B and run it."""

from __future__ import annotations

import json
from dataclasses import dataclass
from typing import Annotated

from mcp.server.mcpserver import Elicit, ElicitationResult, Resolve
from pydantic import Field

from tpudeploy.cli.documents import Document
from tpudeploy.domain.errors import TpudeployError, Unapproved
from tpudeploy.domain.events import Event
from tpudeploy.domain.excerpt import plain
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.ab_test.experiment import Experiment
from tpudeploy.features.ab_test.operation import AbResult
from tpudeploy.features.ab_test.service import AbTests, Arms, Listener
from tpudeploy.features.ab_test.turns import ExperimentPlan
from tpudeploy.features.ab_test.view import proposal
from tpudeploy.features.agents import answers
from tpudeploy.features.agents.consent import Consent, ConsentToRestart, can_ask, may_reset, require_yes
from tpudeploy.features.agents.operation import EmitEvent, OperationOutcome, Stops
from tpudeploy.features.agents.operation_tool import Response, ToolCall
from tpudeploy.features.agents.session import AgentSession, Call, session
from tpudeploy.features.benchmark import view
from tpudeploy.features.benchmark.run import Bounds, Cell, Run, Side
from tpudeploy.operations import operation as row
from tpudeploy.operations.declaration import Operation
from tpudeploy.text.paint import Paint
from tpudeploy.views import jsonl


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedExperiment:
    """An A/B that was proposed. `path` is the profile as it was named."""

    path: str
    arms: Arms
    proposal: ExperimentPlan

    @property
    def id(self) -> str:
        return self.proposal.experiment.id


def _keep_trial(call: ToolCall) -> Document:
    """Return the proposal of an A/B, which this server keeps under its id."""
    result, (path,) = call.result(), call.paths
    trial = call.session.store(ProposedExperiment).keep(
        lambda _: ProposedExperiment(path=path, arms=result.arms, proposal=result.proposal)
    )
    return {**result.to_dict(), "ab_id": trial.id, "text": str(result)}


def consent_to_trial(ab_id: str, ctx: Call) -> Consent | Elicit[Consent]:
    """Return the same for an A/B, which always restarts the server."""
    trial = session(ctx).store(ProposedExperiment).get(ab_id)
    if trial is None or not can_ask(ctx):
        return Consent(approve=False)
    text = proposal(trial.proposal, Paint())
    form: type[Consent] = ConsentToRestart
    return Elicit(plain(f"tpudeploy: carry out {trial.id}?\n{text}"), form)


_AB = row("ab")
AbId = Annotated[str, Field(min_length=1, description="the ab_id that the tool ab_propose returned")]
TrialApproval = Annotated[ElicitationResult[Consent], Resolve(consent_to_trial)]


def ab(
    ctx: Call,
    ab_id: AbId,
    approval: TrialApproval,
    duration_seconds: Annotated[
        float | None, Field(gt=0, description=_AB.argument("duration_seconds").agents_help)
    ] = None,
) -> Document:
    """Run an A/B in the background, which may take an hour: poll the operation. The server restarts many times.

    A person has to approve; a client that cannot ask one is refused. At the end the deployment matches its profile.
    """
    server_session = session(ctx)
    trial = server_session.store(ProposedExperiment).get(ab_id)
    if trial is None:
        raise Unapproved(
            f"There is no A/B `{ab_id}`. Nothing was done.",
            hint="Propose one with the tool `ab_propose`, and pass its ab_id, which is valid until this server ends.",
        )
    require_yes(f"{trial.id} ends or restarts a server", approval, ctx)
    stops = Stops()
    reset = may_reset(approval)

    def work(tell: EmitEvent) -> OperationOutcome:
        try:
            outcome = _run_trial(server_session, trial, Bounds(seconds=duration_seconds), tell, stops, reset=reset)
        except TpudeployError:
            try:
                _restore_profile(server_session, trial, tell, stops, reset=reset)
            except TpudeployError as error:
                tell({"v": 1, "type": "not_brought_back", **error.to_dict()})
            raise
        _restore_profile(server_session, trial, tell, stops, reset=reset)
        return outcome

    about = {"does": "ab", "profile": trial.path, "ab_id": trial.id}
    names = frozenset({trial.proposal.experiment.deployment})
    return server_session.operations.begin(work, about=about, names=names, stop=stops.stop).document()


def _run_trial(
    server_session: AgentSession,
    trial: ProposedExperiment,
    bounds: Bounds,
    tell: EmitEvent,
    stops: Stops,
    *,
    reset: bool,
) -> OperationOutcome:
    clock = server_session.project.clock()
    with server_session.project.workspace([trial.path], backend="", clock=clock) as workspace:
        ab_tests = AbTests(workspace)
        stops.add(workspace.adapters.stop)
        experiment = trial.proposal.experiment
        finished = ab_tests.run(
            experiment,
            trial.arms,
            bounds=bounds,
            usd_per_hour=trial.proposal.usd_per_hour,
            reset=reset,
            folder=server_session.project.context.folder,
            listener=_listener(tell),
        )
        result = AbResult(effects=ab_tests.result(finished), path=ab_tests.experiments.path(finished))
        return OperationOutcome(document=result.to_dict())


def _restore_profile(
    server_session: AgentSession,
    trial: ProposedExperiment,
    tell: EmitEvent,
    stops: Stops,
    *,
    reset: bool,
) -> None:
    """Restore the profile on a new clock, because a cancel stopped the old one. A second cancel stops this too."""
    clock = server_session.project.clock()
    with server_session.project.workspace([trial.path], backend="", clock=clock) as workspace:
        stops.become(clock.stop)
        AbTests(workspace).bring_back(trial.arms, reset=reset, on_event=_listener(tell).on_event)


def _listener(tell: EmitEvent) -> Listener:
    def turn(experiment: Experiment, place: int, side: Side) -> None:
        tell(
            {
                "v": 1,
                "type": "turn",
                "ab": experiment.id,
                "place": place,
                "side": side,
                "value": experiment.arm(side).value,
            }
        )

    def event(event_: Event) -> None:
        tell(json.loads(jsonl.line(event_)))

    def cell(run: Run, cell_: Cell) -> None:
        tell({"v": 1, "type": "cell", "run": run.id, "line": view.row(run, cell_, Paint()), **to_json(cell_)})

    return Listener(on_turn=turn, on_event=event, on_cell=cell)


ROWS: tuple[Operation, ...] = ()  # the library has all of them
RESPONSES: dict[str, Response] = {"ab_propose": _keep_trial}
ANSWERS: dict[str, type[answers.ToolDocument]] = {"ab_propose": answers.AbProposalDocument}
WRITING = (ab,)
RESOURCES = ()  # the result of an A/B is a tool
