"""Define the tools that propose an A/B, run it after approval, and show its result."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

from mcp.server.mcpserver import ElicitationResult, Resolve
from pydantic import Field

from tpudeploy.ab_test.arms import is_risky, parsed
from tpudeploy.ab_test.experiment import Experiment
from tpudeploy.ab_test.view import proposal
from tpudeploy.accuracy import questions
from tpudeploy.benchmark.cells import grid
from tpudeploy.benchmark.view import row
from tpudeploy.cli import documents
from tpudeploy.cli.ab import GRID, load_arms, question_asker
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.mcp.benchmark import Several
from tpudeploy.cli.mcp.consent import Consent, consent_to_trial, may_reset, require_yes
from tpudeploy.cli.mcp.operation import EmitEvent, Outcome
from tpudeploy.cli.mcp.reading import OneProfile
from tpudeploy.cli.mcp.session import Call, Session, session
from tpudeploy.cli.mcp.trials import Trial
from tpudeploy.domain.benchmark import Bounds, Cell, Run, Side, Sweep
from tpudeploy.domain.errors import TpudeployError, Unapproved
from tpudeploy.domain.events import Event
from tpudeploy.domain.serialization import to_json
from tpudeploy.operations.ab_test import AbTests, Listener
from tpudeploy.text.paint import Paint
from tpudeploy.views import jsonl

_MOMENT = 5.0  # seconds in which an error before the start is detected
AbId = Annotated[str, Field(min_length=1, description="the ab_id that the tool ab_propose returned")]
Approval = Annotated[ElicitationResult[Consent], Resolve(consent_to_trial)]


def ab_propose(
    ctx: Call,
    profile: OneProfile,
    *,
    flag: Annotated[
        str, Field(description="PATH=A,B: a key of the profile and two values, as serving.padding_gap=0,512")
    ],
    repeats: Annotated[int, Field(ge=2, le=20, description="how often to measure B; A is measured once more")] = 3,
    concurrency: Annotated[Several, Field(description="streams at once")] = GRID.streams,
    context: Annotated[Several, Field(description="tokens of a prompt")] = GRID.contexts,
    output: Annotated[Several, Field(description="tokens of an answer")] = GRID.outputs,
    window_seconds: Annotated[float, Field(gt=0, le=3600, description="the longest time to measure a cell")] = 60.0,
) -> documents.Document:
    """Propose to compare two values of one flag in place: restarts, downtime, time, cost. Changes nothing.

    For a flag that may change answers, quality is measured too.
    """
    server_session = session(ctx)
    points = grid(*(sorted(set(axis)) for axis in (concurrency, context, output)))
    with server_session.project.opened(profile) as at:
        arms = load_arms(at.context, profile, AS_WRITTEN, parsed(flag))
        ab_tests = AbTests(at.workspace)
        experiment = ab_tests.experiment(
            arms,
            Sweep(points=points, window_seconds=window_seconds),
            repeats=repeats,
            questions=questions.ARITHMETIC if is_risky(arms.path) else "",
        )
        proposal_ = ab_tests.propose(experiment, arms)
    trial = server_session.trials.keep(lambda _: Trial(path=profile, arms=arms, proposal=proposal_))
    return {**documents.ab_proposal(proposal_), "ab_id": trial.id, "text": proposal(proposal_, Paint())}


def ab(
    ctx: Call,
    ab_id: AbId,
    approval: Approval,
    duration_seconds: Annotated[float | None, Field(gt=0, description="start no new step after this long")] = None,
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


def ab_result(
    ctx: Call, ab_id: Annotated[str, Field(min_length=1, description="an A/B's id, or a prefix of it")]
) -> documents.Document:
    """Show the result of an A/B: which value to keep and why, and each effect with its interval."""
    with session(ctx).project.opened() as at:
        ab_tests = AbTests(at.workspace)
        return documents.ab(ab_tests.result(ab_tests.experiments.find(ab_id)))


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
        stops.append(ab_tests.stop)
        experiment = trial.proposal.experiment
        finished = ab_tests.run(
            experiment,
            trial.arms,
            bounds=bounds,
            usd_per_hour=trial.proposal.usd_per_hour,
            reset=reset,
            ask_questions=question_asker(experiment, server_session.project.context, ab_tests.accuracy),
            listener=_listener(tell),
        )
        return Outcome(document=documents.ab(ab_tests.result(finished)))


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
