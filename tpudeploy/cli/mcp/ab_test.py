"""Define the tool that runs a proposed A/B after approval. Its signature is its own, as those in `writing.py` are."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

from mcp.server.mcpserver import ElicitationResult, Resolve
from pydantic import Field

from tpudeploy.ab_test.experiment import Experiment
from tpudeploy.benchmark.view import row
from tpudeploy.cli import documents
from tpudeploy.cli.mcp.consent import Consent, consent_to_trial, may_reset, require_yes
from tpudeploy.cli.mcp.operation import EmitEvent, Outcome
from tpudeploy.cli.mcp.session import Call, Session, Trial, session
from tpudeploy.domain.benchmark import Bounds, Cell, Run, Side
from tpudeploy.domain.errors import TpudeployError, Unapproved
from tpudeploy.domain.events import Event
from tpudeploy.domain.serialization import to_json
from tpudeploy.operations import operation
from tpudeploy.operations.ab import AbResult
from tpudeploy.operations.ab_test import AbTests, Listener
from tpudeploy.text.paint import Paint
from tpudeploy.views import jsonl

_AB = operation("ab")
_MOMENT = 5.0  # seconds in which an error before the start is detected
AbId = Annotated[str, Field(min_length=1, description="the ab_id that the tool ab_propose returned")]
Approval = Annotated[ElicitationResult[Consent], Resolve(consent_to_trial)]


def ab(
    ctx: Call,
    ab_id: AbId,
    approval: Approval,
    duration_seconds: Annotated[float | None, Field(gt=0, description=_AB.argument("duration_seconds").agents)] = None,
) -> documents.Document:
    """Run an A/B in the background, which may take an hour: poll the operation. The server restarts many times.

    A person has to approve; a client that cannot ask one is refused. At the end the deployment matches its profile.
    """
    server_session = session(ctx)
    trial = server_session.trials.get(ab_id)
    if trial is None:
        raise Unapproved(
            f"There is no A/B `{ab_id}`. Nothing was done.",
            hint="Propose one with the tool `ab_propose`, and pass its ab_id, which is valid until this server ends.",
        )
    require_yes(trial.id, approval, ctx)
    stops: list[Callable[[], None]] = []
    reset = may_reset(approval)

    def work(tell: EmitEvent) -> Outcome:
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

    def stop() -> None:
        for each in tuple(stops):
            each()

    about = {"does": "ab", "profile": trial.path, "ab_id": trial.id}
    names = frozenset({trial.proposal.experiment.deployment})
    return server_session.operations.begin(work, about=about, names=names, stop=stop, moment=_MOMENT).document()


def _run_trial(
    server_session: Session,
    trial: Trial,
    bounds: Bounds,
    tell: EmitEvent,
    stops: list[Callable[[], None]],
    *,
    reset: bool,
) -> Outcome:
    clock = server_session.project.clock()
    with server_session.project.workspace([trial.path], backend="", clock=clock) as workspace:
        ab_tests = AbTests(workspace)
        stops.append(workspace.stop)
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
        return Outcome(document=result.to_dict())


def _restore_profile(
    server_session: Session, trial: Trial, tell: EmitEvent, stops: list[Callable[[], None]], *, reset: bool
) -> None:
    """Restore the profile on a new clock, because a cancel stopped the old one. A second cancel stops this too."""
    clock = server_session.project.clock()
    with server_session.project.workspace([trial.path], backend="", clock=clock) as workspace:
        stops[:] = [clock.stop]
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
        tell({"v": 1, "type": "cell", "run": run.id, "line": row(run, cell_, Paint()), **to_json(cell_)})

    return Listener(on_turn=turn, on_event=event, on_cell=cell)
