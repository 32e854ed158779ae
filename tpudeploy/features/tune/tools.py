"""The tools of agents that propose a tuning and run it."""

from __future__ import annotations

import json
from dataclasses import dataclass, replace
from functools import wraps
from typing import Annotated, Any

from mcp.server.mcpserver import Elicit, ElicitationResult, Resolve
from pydantic import Field

from tpudeploy.cli.documents import Document
from tpudeploy.domain.errors import Interrupted, StalePlan, TpudeployError, Unapproved, UsageError
from tpudeploy.domain.events import Event
from tpudeploy.domain.serialization import to_json
from tpudeploy.features.accuracy.questions import ARITHMETIC
from tpudeploy.features.agents import answers
from tpudeploy.features.agents.consent import (
    Consent,
    check_ceiling,
    consent_to_spend,
    may_reset,
    needs_yes_to_spend,
    require_yes_to_spend,
)
from tpudeploy.features.agents.operation import EmitEvent, OperationOutcome, Stops
from tpudeploy.features.agents.operation_tool import Response, ToolCall
from tpudeploy.features.agents.session import AgentSession, Call, session
from tpudeploy.features.benchmark.bench_operation import SweepOptions
from tpudeploy.features.benchmark.run import Cell, Run
from tpudeploy.features.benchmark.view import row as cell_line
from tpudeploy.features.tune import view
from tpudeploy.features.tune.operation import Tuned, prepared
from tpudeploy.features.tune.operation import tune as tune_operation
from tpudeploy.features.tune.search import TuneStep
from tpudeploy.features.tune.service import TuneListener, TuneRequest, Tunings, text_of
from tpudeploy.features.tune.tuning import Tuning
from tpudeploy.loading import Profile
from tpudeploy.operations import operation
from tpudeploy.operations.declaration import Access, Operation
from tpudeploy.text.paint import Paint
from tpudeploy.views import jsonl
from tpudeploy.workspace import Workspace


@dataclass(frozen=True, slots=True, kw_only=True)
class ProposedTuning:
    """A tuning that was proposed. `path` is the profile as it was named; `ends` says whether anything was there."""

    id: str
    path: str
    profile: Profile
    request: TuneRequest
    tuning: Tuning
    ends: bool


@wraps(tune_operation, assigned=())  # it takes the same arguments
def propose_tuning(
    workspace: Workspace, profile: Profile, options: SweepOptions | None = None, **values: Any
) -> ProposedTuning:
    """Propose a tuning: the settings to try, what sizing drops, and what it can cost. Measures and restarts nothing."""
    if values["questions"] not in {None, ARITHMETIC}:
        raise UsageError(
            f"Questions for an agent are `{ARITHMETIC}`.", hint="A person can name a file or a task: `tpudeploy tune`."
        )
    limits = values.pop("limit_ttft"), values.pop("limit_tpot")
    tunings, base, request = prepared(workspace, profile, options, limits=limits, **values)
    tuning = tunings.tuning(base, request)
    ends = tuning.was_there or tunings.is_deployed(tuning.deployment)
    return ProposedTuning(id="", path="", profile=base, request=request, tuning=tuning, ends=ends)


def _keep_tuning(call: ToolCall) -> Document:
    """Return the proposal of a tuning, which this server keeps under an id of its own."""
    check_ceiling(call.values["max_cost"], call.session)
    (path,) = call.paths
    proposed: ProposedTuning = call.result()
    stored = call.session.store(ProposedTuning).keep(
        lambda number: replace(proposed, id=f"tuning-{number}-{proposed.tuning.id[-8:]}", path=path)
    )
    result = Tuned(
        tuning=replace(stored.tuning, verdict=None), path=Tunings(call.opened.workspace).store.path(stored.tuning)
    )
    asks = needs_yes_to_spend(call.session, ends=stored.ends)
    return {**result.to_dict(), "proposal_id": stored.id, "needs_consent": asks, "text": str(result)}


def consent_to_tuning(proposal_id: str, ctx: Call) -> Consent | Elicit[Consent]:
    stored = session(ctx).store(ProposedTuning).get(proposal_id)
    if stored is None:
        return Consent(approve=False)
    text = view.proposal(stored.tuning, Paint())
    return consent_to_spend(f"tpudeploy: carry out {stored.id}?\n{text}", ctx, ends=stored.ends)


TuningId = Annotated[str, Field(min_length=1, description="the proposal_id that the tool tune_propose returned")]
TuningApproval = Annotated[ElicitationResult[Consent], Resolve(consent_to_tuning)]


def tune(ctx: Call, proposal_id: TuningId, approval: TuningApproval) -> Document:
    """Run a tuning in the background, which may take hours: poll the operation. The server restarts many times.

    A person has to approve if a server runs there, and a purchase unless the server has a ceiling. At the end the
    deployment matches its profile, or is gone if it was not there before.
    """
    agents = session(ctx)
    stored = agents.store(ProposedTuning).get(proposal_id)
    if stored is None:
        raise Unapproved(
            f"There is no proposed tuning `{proposal_id}`. Nothing was done.",
            hint="Propose one with the tool `tune_propose`, and pass its proposal_id, valid until this server ends.",
        )
    require_yes_to_spend(stored.id, approval, ctx, ends=stored.ends)
    stops, reset = Stops(), may_reset(approval)
    names = frozenset({stored.tuning.deployment})

    def work(tell: EmitEvent) -> OperationOutcome:
        _check_is_current(agents, stored)
        try:
            return _run(agents, stored, tell, stops, reset=reset)
        except Interrupted:
            try:
                _restore(agents, stored, tell, stops)
            except TpudeployError as error:
                tell({"v": 1, "type": "not_brought_back", **error.to_dict()})
            raise

    about = {"does": "tune", "profile": stored.path, "proposal_id": stored.id, "tune_id": stored.tuning.id}
    return agents.operations.begin(work, about=about, names=names, stop=stops.stop).document()


def _check_is_current(agents: AgentSession, stored: ProposedTuning) -> None:
    """Raise `errors.StalePlan` for a deployment that is there since the tuning was proposed, and would be deleted."""
    with agents.project.workspace([stored.path], backend="", clock=agents.project.clock()) as workspace:
        is_new = not stored.ends and Tunings(workspace).is_deployed(stored.tuning.deployment)
    if is_new:
        name = stored.tuning.deployment
        raise StalePlan(
            f"{name} is deployed since {stored.id} was proposed. Nothing was done.", hint="Propose it again."
        )


def _run(
    agents: AgentSession, stored: ProposedTuning, tell: EmitEvent, stops: Stops, *, reset: bool
) -> OperationOutcome:
    clock = agents.project.clock()
    with agents.project.workspace([stored.path], backend="", clock=clock) as workspace:
        stops.add(workspace.adapters.stop)
        tunings = Tunings(workspace, agents.ceiling(frozenset({stored.tuning.deployment})))
        tuning = tunings.tune(stored.profile, stored.request, reset=reset, listener=_listener(tell))
        return OperationOutcome(document=Tuned(tuning=tuning, path=tunings.store.path(tuning)).to_dict())


def _restore(agents: AgentSession, stored: ProposedTuning, tell: EmitEvent, stops: Stops) -> None:
    """Bring the deployment back on a new clock, because a cancel stopped the old one. Another cancel stops this too."""
    clock = agents.project.clock()
    with agents.project.workspace([stored.path], backend="", clock=clock) as workspace:
        stops.become(clock.stop)
        tunings, on_event = Tunings(workspace), _listener(tell).on_event
        with tunings.holding(stored.tuning.deployment, on_event):
            tunings.bring_back(stored.tuning, stored.profile, on_event=on_event)


def _listener(tell: EmitEvent) -> TuneListener:
    def step(tuning: Tuning, step_: TuneStep) -> None:
        settings = text_of(step_.settings)
        tell({"v": 1, "type": "step", "tuning": tuning.id, "stage": step_.stage, "settings": settings})

    def event(event_: Event) -> None:
        tell(json.loads(jsonl.line(event_)))

    def cell(run: Run, cell_: Cell) -> None:
        tell({"v": 1, "type": "cell", "run": run.id, "line": cell_line(run, cell_, Paint()), **to_json(cell_)})

    return TuneListener(on_step=step, on_event=event, on_cell=cell)


# The library proposes by `tune(dry_run=True)`.
ROWS: tuple[Operation, ...] = (
    replace(operation("tune"), run=propose_tuning, access=Access.LOOK, title="Propose a tuning", tool="tune_propose"),
)
RESPONSES: dict[str, Response] = {"tune_propose": _keep_tuning}
ANSWERS: dict[str, type[answers.ToolDocument]] = {"tune_propose": answers.TuningProposalDocument}
WRITING = (tune,)
RESOURCES = ()  # the result of a tuning is a tool
