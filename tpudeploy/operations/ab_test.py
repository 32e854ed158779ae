"""Experimenting: two values of one flag, deployed in turns on the slice that is there, measured, held together."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TypeAlias

from tpudeploy.ab_test import arms
from tpudeploy.ab_test.order import order
from tpudeploy.ab_test.proposal import Proposal, start_seconds
from tpudeploy.ab_test.result import Result, repeats, result
from tpudeploy.ab_test.starts import deciding_measure
from tpudeploy.accuracy.sheet import Sheet
from tpudeploy.accuracy.verdict import Judgement, Verdict, verdict
from tpudeploy.adapters import ids
from tpudeploy.adapters.experiments import PREFIX, LocalExperiments
from tpudeploy.benchmark.subject import runs_as_declared, serving_attempt
from tpudeploy.config.profile import Profile
from tpudeploy.domain.benchmark import Bounds, Cell, Driver, Ended, Run, Sweep, Turn
from tpudeploy.domain.comparison import Measure
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.errors import (
    BenchFailed,
    CheckFailed,
    CloudError,
    Interrupted,
    QueryFailed,
    StalePlan,
    UsageError,
)
from tpudeploy.domain.events import Event
from tpudeploy.domain.experiment import Arm, Experiment, InEffect
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.load import Point
from tpudeploy.domain.plan import Action
from tpudeploy.domain.side import Side
from tpudeploy.domain.state import Attempt, State
from tpudeploy.operations.accuracy import Examining
from tpudeploy.operations.benchmark import Benching
from tpudeploy.plans import Plan
from tpudeploy.reconcile import prices
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace

# A profile's server asked, as the sheet says that the other arm was.
Examine: TypeAlias = Callable[[Profile, Sheet | None], Sheet]
_HOUR = 3600.0
_UNBOUND = Bounds()


@frozen
class Arms:
    """One profile three times: as it is written, and with each of two values at `path`."""

    base: Profile
    a: Profile
    b: Profile
    path: str
    values: tuple[str, str]

    def of(self, side: Side) -> Profile:
        return self.a if side is Side.A else self.b


@frozen
class Listener:
    """Who hears how it goes: each turn before it begins, what is deployed, and cells as in `Benching.run`."""

    on_turn: Callable[[Experiment, int, Side], None] = lambda _experiment, _place, _side: None
    on_event: Callable[[Event], None] = lambda _event: None
    on_point: Callable[[Run, Point], None] = lambda _run, _point: None
    on_cell: Callable[[Run, Cell], None] = lambda _run, _cell: None


@frozen
class _Terms:
    """How one command goes about it: the arguments of `Experimenting.run`."""

    bounds: Bounds
    usd_per_hour: float | None
    reset: bool
    examine: Examine | None
    hear: Listener

    def left(self, spent: float) -> tuple[float | None, Ended]:
        """Seconds until the nearer bound, and which that is."""
        found: list[tuple[float, Ended]] = []
        if self.bounds.seconds is not None:
            found.append((self.bounds.seconds - spent, Ended.DURATION))
        if self.bounds.usd is not None and self.usd_per_hour:
            found.append((self.bounds.usd / self.usd_per_hour * _HOUR - spent, Ended.COST))
        return min(found) if found else (None, Ended.NOT_YET)


class Experimenting:
    """Experiments are kept in `experiments`, their runs in `workspace.runs`."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._benching = Benching(workspace)
        self.examining = Examining(workspace)
        self.experiments = LocalExperiments(workspace.runs.folder / "ab")

    def experiment(
        self,
        of: Arms,
        sweep: Sweep,
        *,
        repeats: int,
        by: Measure | None = None,
        driver: Driver = Driver.TPUDEPLOY,
        tokenizer: str = "",
        questions: str = "",
        count: int | None = None,
    ) -> Experiment:
        """Return a new one; nothing of it is kept or done yet. `by` None: what this path is decided by."""
        now = self._workspace.clock.now()
        base, a, b = (self._deployment(profile) for profile in (of.base, of.a, of.b))
        file, origin = of.base.origins["name"].file, of.base.origins.get(of.path)
        written = [side for side, arm in zip(Side, (a, b), strict=True) if arms.arm_print(arm) == arms.arm_print(base)]
        return Experiment(
            id=f"{PREFIX}{ids.new(now)}",
            began_at=now,
            version=VERSION,
            deployment=of.base.spec.name,
            path=of.path,
            file=file,
            line=origin.line if origin is not None and origin.file == file else None,
            written=written[0] if written else None,
            a=Arm(value=of.values[0], fingerprint=arms.arm_print(a)),
            b=Arm(value=of.values[1], fingerprint=arms.arm_print(b)),
            sweep=sweep,
            repeats=repeats,
            by=deciding_measure(of.path) if by is None else by,
            driver=driver,
            tokenizer=tokenizer,
            questions=questions,
            count=count,
        )

    def propose(self, experiment: Experiment, of: Arms) -> Proposal:
        """What is going to be done, with everything checked that can be before anything is touched.

        Raise `errors.UsageError` for arms that cannot be compared in place, or another profile than it began with;
        `errors.CheckFailed` for one that cannot be deployed, `errors.QueryFailed` where nothing serves.
        """
        base, a, b = (self._deployment(profile) for profile in (of.base, of.a, of.b))
        arms.check(of.path, base, a, b)
        _check_same(experiment, a, b)
        state = self._workspace.states.read(base.name).state
        attempt = serving_attempt(state)
        # One that was cut short in the middle of a restart serves nothing yet; its machine is there.
        standing = attempt if attempt is not None or not self._has_begun(experiment) else _standing(state)
        if standing is None:
            raise QueryFailed(f"{base.name} has no endpoint yet.", hint="Run `tpudeploy apply` first.")
        self._benching.check(of.base, experiment.driver, tokenizer=experiment.tokenizer)
        plans = [self._plan(profile) for profile in (of.base, of.a, of.b)]
        for side, plan in zip(Side, plans[1:], strict=True):
            _check_arm(plan, f"Arm {side} ({of.path}={experiment.arm(side).value})")
        now = [side for side, arm in zip(Side, (a, b), strict=True) if attempt and runs_as_declared(arm, attempt)]
        span = start_seconds((base, a, b), self._workspace.patience)
        return Proposal(
            experiment=experiment,
            turns=self.left(experiment),
            now=now[0] if now else None,
            then=experiment.written,
            least=None if span is None else span[0],
            most=None if span is None else span[1],
            where=", ".join((base.accelerator.name, str(standing.zone), str(standing.provisioning))),
            usd_per_hour=prices.usd_per_hour(standing),
            diagnostics=tuple(dict.fromkeys(said for plan in plans for said in plan.diagnostics)),
        )

    def run(
        self,
        experiment: Experiment,
        of: Arms,
        *,
        bounds: Bounds = _UNBOUND,
        usd_per_hour: float | None = None,
        reset: bool = False,
        examine: Examine | None = None,
        hear: Listener | None = None,
    ) -> Experiment:
        """Every turn that is left, kept after each, as far as `bounds` let it go: they count restarts too.

        `examine` puts the experiment's questions to each arm, once, after its first repeat.

        Ends as soon as more repeats would change nothing: where an engine does not do what its arm says, or quality
        fell. What is deployed at its end stays so: `bring_back` is for whoever calls. Raise as `Workspace.apply`,
        `Benching.run` and `examine` do, the error of a deployment that failed, and `errors.UsageError` where the slice
        is no longer there, `errors.StalePlan` where somebody else changed the deployment under way, or where its slice
        was taken away.
        """
        heard = hear if hear is not None else Listener()
        terms = _Terms(bounds=bounds, usd_per_hour=usd_per_hour, reset=reset, examine=examine, hear=heard)
        try:
            return self._turns(experiment, of, terms)
        except (Interrupted, KeyboardInterrupt) as cause:
            count = len(order(experiment.repeats))
            raise Interrupted(
                f"Interrupted. {count - len(self.left(experiment))} of {count} repeats are kept.",
                hint=f"Go on with: tpudeploy compare {experiment.file} --resume {experiment.id}",
            ) from cause

    def _turns(self, experiment: Experiment, of: Arms, by: _Terms) -> Experiment:
        before = experiment.seconds
        kept = self.experiments.keep(replace(experiment, ended=Ended.NOT_YET))
        for place, side in self.left(kept):
            left, ended = by.left(kept.seconds - before)
            if left is not None and left <= 0:
                return self.experiments.keep(replace(kept, ended=ended))
            by.hear.on_turn(kept, place, side)
            kept = self._deployed(kept, of, side, by)
            if kept.arm(side).in_effect is InEffect.NO:
                return kept
            left, ended = by.left(kept.seconds - before)
            run, seconds = self._measured(kept, of, Turn(experiment=kept.id, place=place, side=side), left, by.hear)
            kept = self.experiments.keep(replace(kept, seconds=kept.seconds + seconds))
            if run.ended is not Ended.COMPLETE:
                return self.experiments.keep(replace(kept, ended=ended))
            kept = self._examined(kept, of, side, by.examine)
            if self._has_fallen(kept):
                return kept
        return self.experiments.keep(replace(kept, ended=Ended.COMPLETE))

    def bring_back(self, of: Arms, *, reset: bool = False, on_event: Callable[[Event], None] | None = None) -> bool:
        """Have the profile again as it is written; whether anything had to be done.

        Raise as `run` does, where it cannot be: the next plan shows what is left to change.
        """
        plan = self._plan(of.base)
        arms.check_in_place(plan)
        self._carried_out(plan, on_event, reset=reset)
        return not plan.is_empty

    def result(self, of: Experiment) -> Result:
        """What its runs say, as far as there are any. Raise `errors.RunUnreadable`."""
        return result(of, self._workspace.runs.all(), self._quality(of))

    def left(self, of: Experiment) -> tuple[tuple[int, Side], ...]:
        """The turns that have no whole run yet, each with its place."""
        done = {run.turn.place for run in repeats(of, self._workspace.runs.all()) if run.turn is not None}
        return tuple((place, side) for place, side in enumerate(order(of.repeats)) if place not in done)

    def stop(self) -> None:
        """End what is under way, from whichever thread. What was measured is kept."""
        self._benching.stop()

    def _examined(self, kept: Experiment, of: Arms, side: Side, examine: Examine | None) -> Experiment:
        """With the answers of this arm, asked as the other one was."""
        arm, other = kept.arm(side), kept.b if side is Side.A else kept.a
        if not kept.questions or examine is None or arm.sheet:
            return kept
        began = self._workspace.clock.now()
        sheet = examine(of.of(side), self.examining.sheets.read(other.sheet) if other.sheet else None)
        seconds = kept.seconds + self._workspace.clock.now() - began
        return self.experiments.keep(replace(_with_arm(kept, side, replace(arm, sheet=sheet.id)), seconds=seconds))

    def _has_fallen(self, kept: Experiment) -> bool:
        found = self._quality(kept)
        return found is not None and found.judgement is Judgement.FELL

    def _quality(self, of: Experiment) -> Verdict | None:
        """None where not both have answered."""
        if not of.a.sheet or not of.b.sheet:
            return None
        return verdict(self.examining.sheets.read(of.a.sheet), self.examining.sheets.read(of.b.sheet))

    def _has_begun(self, experiment: Experiment) -> bool:
        return self.experiments.path(experiment).exists()

    def _deployment(self, profile: Profile) -> Deployment:
        return self._workspace.deployment(profile, script=False)

    def _plan(self, profile: Profile, on_event: Callable[[Event], None] | None = None) -> Plan:
        return self._workspace.plan([profile], on_event=on_event)

    def _deployed(self, kept: Experiment, of: Arms, side: Side, by: _Terms) -> Experiment:
        """With the arm serving, and its engine asked, the first time in this command, whether it does what it says."""
        began, profile = self._workspace.clock.now(), of.of(side)
        plan = self._plan(profile)
        arms.check_in_place(plan)
        self._carried_out(plan, by.hear.on_event, reset=by.reset)
        arm = kept.arm(side)
        if arm.in_effect in {None, InEffect.NO}:
            found = self._workspace.verify(profile)
            other = kept.b.told if side is Side.A else kept.a.told
            arm = replace(arm, told=arms.told(found), in_effect=arms.in_effect(of.path, found, other))
        seconds = kept.seconds + self._workspace.clock.now() - began
        return self.experiments.keep(replace(_with_arm(kept, side, arm), seconds=seconds))

    def _carried_out(self, plan: Plan, on_event: Callable[[Event], None] | None, *, reset: bool) -> None:
        """Raise what a deployment failed of. A setting that is not in effect is asked for apart."""
        report = self._workspace.apply(plan, on_event=on_event, reset=reset)
        for error in report.failures:
            raise error

    def _measured(
        self, kept: Experiment, of: Arms, turn: Turn, left: float | None, heard: Listener
    ) -> tuple[Run, float]:
        """One repeat, and how many seconds that took; one that was begun goes on with the cells it lacks."""
        begun = next((run for run in self._workspace.runs.all() if run.turn == turn), None)
        try:
            run = self._benching.run(
                self._benching.deployment(of.of(turn.side)),
                None if begun is not None else kept.sweep,
                resume=None if begun is None else begun.id,
                bounds=Bounds(seconds=left),
                driver=kept.driver,
                tokenizer=kept.tokenizer,
                turn=turn,
                on_point=heard.on_point,
                on_cell=heard.on_cell,
            )
        except (QueryFailed, BenchFailed) as cause:
            if self._is_slice_gone(of.of(turn.side)):
                raise self._taken_away(of, turn) from cause
            raise
        self._must_still_be(of, turn, run)
        run = self._with_start(of, run)
        return run, run.seconds - (0.0 if begun is None else begun.seconds)

    def _with_start(self, of: Arms, run: Run) -> Run:
        """Return the run with the start of its server, kept; looked for afterwards, when all of the log is there."""
        if run.start is not None:
            return run
        name = of.base.spec.name
        attempt = serving_attempt(self._workspace.states.read(name).state)
        if attempt is None:
            return run
        try:
            start = self._workspace.last_start(attempt)
        except CloudError:
            return run  # The figures count without it; the result names the start as not known.
        run = replace(run, start=start)
        self._workspace.runs.keep(run)
        return run

    def _must_still_be(self, of: Arms, turn: Turn, run: Run) -> None:
        """Raise `errors.StalePlan` where another server came while this arm was measured: then the run is no repeat."""
        deployment = self._deployment(of.of(turn.side))
        attempt = serving_attempt(self._workspace.states.read(deployment.name).state)
        is_gone = self._is_slice_gone(of.of(turn.side))
        if attempt is not None and runs_as_declared(deployment, attempt) and not is_gone:
            return
        self._workspace.runs.keep(replace(run, turn=None))
        if is_gone:
            raise self._taken_away(of, turn)
        raise StalePlan(
            f"{deployment.name} was changed while arm {turn.side} was measured: that repeat does not count.",
            hint="See who else applies to it, and what `tpudeploy status` says; then go on.",
        )

    def _is_slice_gone(self, profile: Profile) -> bool:
        """Return whether a look finds no slice of the deployment: it was preempted, or deleted."""
        return any(change.action is Action.CREATE for change in self._plan(profile).changes)

    def _taken_away(self, of: Arms, turn: Turn) -> StalePlan:
        name = of.base.spec.name
        return StalePlan(
            f"The slice of {name} was taken away while arm {turn.side} was measured: that repeat does not count.",
            hint="Run `tpudeploy apply` for another slice, then resume the A/B.",
        )


def _with_arm(of: Experiment, side: Side, arm: Arm) -> Experiment:
    return replace(of, a=arm) if side is Side.A else replace(of, b=arm)


def _standing(state: State | None) -> Attempt | None:
    """The machine of a deployment, whether or not it serves."""
    known = () if state is None else state.attempts
    return next((a for a in known if a.granted_at is not None and a.releasing_at is None), None)


def _check_same(experiment: Experiment, a: Deployment, b: Deployment) -> None:
    """Raise `errors.UsageError` where the profile has moved on since it began."""
    for arm, deployment in ((experiment.a, a), (experiment.b, b)):
        if arm.fingerprint != arms.arm_print(deployment):
            raise UsageError(
                f"{experiment.id} was begun with another profile: what was measured is not what would be.",
                hint="Name the same profile, -f and --set; or begin another: leave out --resume.",
            )


def _check_arm(plan: Plan, arm: str) -> None:
    forbidden = errors_in(plan.diagnostics)
    if forbidden:
        raise CheckFailed(f"{arm} cannot be deployed: {forbidden[0].message}", hint=forbidden[0].hint)
    arms.check_in_place(plan)
