"""Tools for an A/B: proposed, carried out once a person said yes, and shown again."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Annotated

from mcp.server.mcpserver import ElicitationResult, Resolve
from pydantic import Field

from tpudeploy.cli import documents
from tpudeploy.cli.ab import GRID
from tpudeploy.cli.context import AS_WRITTEN
from tpudeploy.cli.experiments import examiner, loaded
from tpudeploy.cli.mcp.benching import Several
from tpudeploy.cli.mcp.consent import Consent, consent_to_trial, may_reset, require_yes
from tpudeploy.cli.mcp.offline import OneProfile
from tpudeploy.cli.mcp.operation import Came, Tell
from tpudeploy.cli.mcp.session import Asked, Session, session
from tpudeploy.cli.mcp.trials import Trial
from tpudeploy.core.ab.arms import is_risky, parsed
from tpudeploy.core.accuracy import arithmetic
from tpudeploy.core.bench.grid import grid
from tpudeploy.domain.benchmark import Bounds, Cell, Run, Sweep
from tpudeploy.domain.errors import TpudeployError, Unapproved
from tpudeploy.domain.events import Event
from tpudeploy.domain.experiment import Experiment
from tpudeploy.domain.side import Side
from tpudeploy.domain.tree import tree
from tpudeploy.experimenting import Experimenting, Listener
from tpudeploy.views import jsonl
from tpudeploy.views.ab import proposal
from tpudeploy.views.bench import row
from tpudeploy.views.paint import Paint

_MOMENT = 5.0  # seconds in which it is found out that it cannot be begun
AbId = Annotated[str, Field(min_length=1, description="the ab_id that the tool ab_propose answered")]
Yes = Annotated[ElicitationResult[Consent], Resolve(consent_to_trial)]


def ab_propose(
    ctx: Asked,
    profile: OneProfile,
    *,
    flag: Annotated[
        str, Field(description="PATH=A,B: a key of the profile and two values, as serving.padding_gap=0,512")
    ],
    repeats: Annotated[int, Field(ge=2, le=20, description="measure B so often, and A once more")] = 3,
    concurrency: Annotated[Several, Field(description="streams at once")] = GRID.streams,
    context: Annotated[Several, Field(description="tokens of a prompt")] = GRID.contexts,
    output: Annotated[Several, Field(description="tokens of an answer")] = GRID.outputs,
    window_seconds: Annotated[float, Field(gt=0, le=3600, description="measure a cell for so long at most")] = 60.0,
) -> documents.Document:
    """What comparing two values of one flag in place would do: restarts, downtime, time, cost. Changes nothing.

    A flag that may change answers is asked for quality too.
    """
    of = session(ctx)
    points = grid(*(sorted(set(axis)) for axis in (concurrency, context, output)))
    with of.project.opened(profile) as at:
        arms = loaded(at.context, profile, AS_WRITTEN, parsed(flag))
        experimenting = Experimenting(at.workspace)
        experiment = experimenting.experiment(
            arms,
            Sweep(points=points, window_seconds=window_seconds),
            repeats=repeats,
            questions=arithmetic.NAME if is_risky(arms.path) else "",
        )
        found = experimenting.propose(experiment, arms)
    trial = of.trials.keep(lambda _: Trial(path=profile, arms=arms, proposal=found))
    return {**documents.ab_proposal(found), "ab_id": trial.id, "text": proposal(found, Paint())}


def ab(
    ctx: Asked,
    ab_id: AbId,
    given: Yes,
    duration_seconds: Annotated[float | None, Field(gt=0, description="begin nothing more after so long")] = None,
) -> documents.Document:
    """Carry out an A/B, in the background, for an hour perhaps: poll the operation. The server restarts many times.

    A person is asked first; a client that cannot ask is refused. At the end the deployment is what its profile says.
    """
    of = session(ctx)
    trial = of.trials.get(ab_id)
    if trial is None:
        raise Unapproved(
            f"There is no A/B `{ab_id}`: nothing was done.",
            hint="Make one with the tool `ab_propose`, and name the ab_id that it answers. None outlives its server.",
        )
    require_yes(trial.id, given, ctx)
    stops: list[Callable[[], None]] = []
    reset = may_reset(given)

    def work(tell: Tell) -> Came:
        try:
            came = _carried_out(of, trial, Bounds(seconds=duration_seconds), tell, stops, reset=reset)
        except TpudeployError:
            try:
                _bring_back(of, trial, tell, stops, reset=reset)
            except TpudeployError as also:
                tell({"v": 1, "type": "not_brought_back", **also.to_dict()})
            raise
        _bring_back(of, trial, tell, stops, reset=reset)
        return came

    def stop() -> None:
        for each in tuple(stops):
            each()

    about = {"does": "ab", "profile": trial.path, "ab_id": trial.id}
    names = frozenset({trial.proposal.experiment.deployment})
    return of.operations.begin(work, about=about, names=names, stop=stop, moment=_MOMENT).document()


def ab_result(
    ctx: Asked, ab_id: Annotated[str, Field(min_length=1, description="an A/B's id, or a beginning of it")]
) -> documents.Document:
    """What an A/B came to: which value to keep and why, each effect with its interval."""
    with session(ctx).project.opened() as at:
        experimenting = Experimenting(at.workspace)
        return documents.ab(experimenting.result(experimenting.experiments.find(ab_id)))


def _carried_out(
    of: Session, trial: Trial, bounds: Bounds, tell: Tell, stops: list[Callable[[], None]], *, reset: bool
) -> Came:
    clock = of.project.clock()
    with of.project.workspace([trial.path], backend="", clock=clock) as workspace:
        experimenting = Experimenting(workspace)
        stops.append(experimenting.stop)
        experiment = trial.proposal.experiment
        done = experimenting.run(
            experiment,
            trial.arms,
            bounds=bounds,
            usd_per_hour=trial.proposal.usd_per_hour,
            reset=reset,
            examine=examiner(experiment, of.project.context, experimenting.examining),
            hear=_hearing(tell),
        )
        return Came(document=documents.ab(experimenting.result(done)))


def _bring_back(of: Session, trial: Trial, tell: Tell, stops: list[Callable[[], None]], *, reset: bool) -> None:
    """On a clock of its own: a cancel has stopped the other. Only a second one ends this too."""
    clock = of.project.clock()
    with of.project.workspace([trial.path], backend="", clock=clock) as workspace:
        stops[:] = [clock.stop]
        Experimenting(workspace).bring_back(trial.arms, reset=reset, on_event=_hearing(tell).on_event)


def _hearing(tell: Tell) -> Listener:
    def turn(of: Experiment, place: int, side: Side) -> None:
        tell({"v": 1, "type": "turn", "ab": of.id, "place": place, "side": side, "value": of.arm(side).value})

    def event(of: Event) -> None:
        tell(json.loads(jsonl.line(of)))

    def cell(run: Run, of: Cell) -> None:
        tell({"v": 1, "type": "cell", "run": run.id, "line": row(run, of, Paint()), **tree(of)})

    return Listener(on_turn=turn, on_event=event, on_cell=cell)
