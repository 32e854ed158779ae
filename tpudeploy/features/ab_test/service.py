"""A/B tests of a workspace: two values of one flag, deployed in turns on the existing slice, measured, compared.

Why: decision 48 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tpudeploy.adapters import records
from tpudeploy.config.profile import Profile
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.errors import (
    BenchFailed,
    CheckFailed,
    Interrupted,
    QueryFailed,
    StalePlan,
    UsageError,
)
from tpudeploy.domain.events import Event
from tpudeploy.domain.plan import Action
from tpudeploy.domain.state import Attempt
from tpudeploy.features.ab_test import arms
from tpudeploy.features.ab_test.experiment import Arm, Experiment, InEffect
from tpudeploy.features.ab_test.result import ExperimentResult, repeats, result
from tpudeploy.features.ab_test.starts import deciding_measure
from tpudeploy.features.ab_test.store import PREFIX, LocalExperiments
from tpudeploy.features.ab_test.turns import ExperimentPlan, order, start_seconds
from tpudeploy.features.accuracy.judgement import Judgement, SheetComparison
from tpudeploy.features.accuracy.service import AccuracyTests, QuestionRequest
from tpudeploy.features.accuracy.verdict import verdict
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Bounds, Cell, Driver, Ended, Run, Side, Sweep, Turn
from tpudeploy.features.benchmark.service import Benchmarks, seconds_left
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.operations.endpoint import no_endpoint, require_completions, runs_as_declared, serving_attempt
from tpudeploy.plans import Plan
from tpudeploy.reconcile import prices
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace

_UNBOUND = Bounds()


@dataclass(frozen=True, slots=True, kw_only=True)
class Arms:
    """One profile three times: as it is written, and with each of two values at `path`."""

    base: Profile
    a: Profile
    b: Profile
    path: str
    values: tuple[str, str]

    def profile(self, side: Side) -> Profile:
        return self.a if side is Side.A else self.b


@dataclass(frozen=True, slots=True, kw_only=True)
class Listener:
    """The callbacks of an A/B: before each turn, for each event of a deployment, and as in `Benchmarks.run`.

    `on_message` gets a line before an arm is asked the questions.
    """

    on_turn: Callable[[Experiment, int, Side], None] = lambda _experiment, _place, _side: None
    on_event: Callable[[Event], None] = lambda _event: None
    on_point: Callable[[Run, Point], None] = lambda _run, _point: None
    on_cell: Callable[[Run, Cell], None] = lambda _run, _cell: None
    on_message: Callable[[str], None] = lambda _text: None


@dataclass(frozen=True, slots=True, kw_only=True)
class _AbRequest:
    """The arguments of `AbTests.run`."""

    arms: Arms
    bounds: Bounds
    usd_per_hour: float | None
    reset: bool
    folder: Path
    listener: Listener


class AbTests:
    """Runs A/B tests. Experiments are kept in `experiments`, their runs as all others."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self._benchmarks = Benchmarks(workspace)
        self.accuracy = AccuracyTests(workspace)
        self.experiments = LocalExperiments(workspace.adapters.own_folder("runs").sub("ab"))

    def experiment(
        self,
        profiles: Arms,
        sweep: Sweep,
        *,
        repeats: int,
        by: Measure | None = None,
        driver: Driver = Driver.TPUDEPLOY,
        tokenizer: str = "",
        questions: str = "",
        count: int | None = None,
    ) -> Experiment:
        """Return a new experiment that is neither stored nor started. `by` None: the default measure of this path."""
        for profile in (profiles.base, profiles.a, profiles.b):
            require_completions(self._workspace.deployment(profile, script=False), "an A/B has nothing to measure")
        now = self._workspace.adapters.clock.now()
        base, a, b = (arms.arm_print(self._deployment(p)) for p in (profiles.base, profiles.a, profiles.b))
        file, origin = profiles.base.origins["name"].file, profiles.base.origins.get(profiles.path)
        sides = {b: Side.B, a: Side.A}  # if both are as written, it is A
        return Experiment(
            id=f"{PREFIX}{records.new_id(now)}",
            began_at=now,
            version=VERSION,
            deployment=profiles.base.name,
            path=profiles.path,
            file=file,
            line=origin.line if origin is not None and origin.file == file else None,
            written=sides.get(base),
            a=Arm(value=profiles.values[0], fingerprint=a),
            b=Arm(value=profiles.values[1], fingerprint=b),
            sweep=sweep,
            repeats=repeats,
            by=deciding_measure(profiles.path) if by is None else by,
            driver=driver,
            tokenizer=tokenizer,
            questions=questions,
            count=count,
        )

    def propose(self, experiment: Experiment, profiles: Arms) -> ExperimentPlan:
        """Return what the A/B will do, after every check that is possible without a change.

        Raise `errors.UsageError` for arms that cannot be compared in place, or for another profile than the experiment
        began with; `errors.CheckFailed` for an arm that cannot be deployed, `errors.QueryFailed` without a server.
        """
        base, a, b = (self._deployment(profile) for profile in (profiles.base, profiles.a, profiles.b))
        arms.check(profiles.path, base, a, b)
        _check_same(experiment, a, b)
        state = self._workspace.adapters.states.read(base.name).state
        serving = machine = serving_attempt(state)
        if machine is None and state is not None and self.experiments.path(experiment).exists():
            # An A/B that was interrupted during a restart has a machine, but no server yet.
            granted = (a for a in state.slice_attempts if a.holds_slice)
            machine = next(granted, None)
        if machine is None:
            raise no_endpoint(base.name)
        self._benchmarks.check(profiles.base, experiment.driver, tokenizer=experiment.tokenizer)
        plans = [self._plan(profile) for profile in (profiles.base, profiles.a, profiles.b)]
        for side, plan in zip(Side, plans[1:], strict=True):
            _check_arm(plan, f"Arm {side} ({profiles.path}={experiment.arm(side).value})")
        indexes = self._workspace.replica_indexes(profiles.base)
        span = start_seconds((base, a, b), self._workspace.adapters.patience)
        return ExperimentPlan(
            experiment=experiment,
            turns=self.remaining_turns(experiment),
            now=_current_side(serving, a, b),
            then=experiment.written,
            least=None if span is None else span[0],
            most=None if span is None else span[1],
            where=_where(base, machine, len(indexes)),
            usd_per_hour=prices.usd_per_hour_of(state, indexes) if len(indexes) > 1 else prices.usd_per_hour(machine),
            replicas=len(indexes),
            at_once=min(len(indexes), base.lifecycle.max_unavailable),
            diagnostics=tuple(dict.fromkeys(diagnostic for plan in plans for diagnostic in plan.diagnostics)),
        )

    def run(
        self,
        experiment: Experiment,
        profiles: Arms,
        *,
        bounds: Bounds = _UNBOUND,
        usd_per_hour: float | None = None,
        reset: bool = False,
        folder: Path = Path(),
        listener: Listener | None = None,
    ) -> Experiment:
        """Run the remaining turns within `bounds`, which include restarts; the experiment is stored after each.

        Each arm is asked the experiment's questions once, after its first repeat; a file of them is in `folder`.

        The A/B ends early where more repeats would change nothing: where an engine does not do what its arm declares,
        or where quality fell. The last arm stays deployed; the caller calls `bring_back`. Raise as `Workspace.apply`,
        `Benchmarks.run` and `AccuracyTests.ask_as` do, the error of a failed deployment, and `errors.StalePlan` where
        the deployment was changed meanwhile, or lost its slice.
        """
        request = _AbRequest(
            arms=profiles,
            bounds=bounds,
            usd_per_hour=usd_per_hour,
            reset=reset,
            folder=folder,
            listener=Listener() if listener is None else listener,
        )
        try:
            return self._run_turns(experiment, request)
        except (Interrupted, KeyboardInterrupt) as cause:
            count = len(order(experiment.repeats))
            raise Interrupted(
                f"Interrupted. {count - len(self.remaining_turns(experiment))} of {count} repeats are kept.",
                hint=f"Continue with: tpudeploy compare {experiment.file} --resume {experiment.id}",
            ) from cause

    def _run_turns(self, experiment: Experiment, request: _AbRequest) -> Experiment:
        seconds_before = experiment.seconds
        experiment = self.experiments.keep(replace(experiment, ended=Ended.NOT_YET))

        def remaining() -> tuple[float | None, Ended]:
            return seconds_left(request.bounds, experiment.seconds - seconds_before, request.usd_per_hour)

        for place, side in self.remaining_turns(experiment):
            seconds, ended = remaining()
            if seconds is not None and seconds <= 0:
                return self.experiments.keep(replace(experiment, ended=ended))
            request.listener.on_turn(experiment, place, side)
            experiment = self._deploy(experiment, side, request)
            if experiment.arm(side).in_effect is InEffect.NO:
                return experiment
            seconds, ended = remaining()
            turn = Turn(experiment=experiment.id, place=place, side=side)
            run, measuring_seconds = self._measure(experiment, turn, seconds, request)
            experiment = self.experiments.keep(replace(experiment, seconds=experiment.seconds + measuring_seconds))
            if run.ended is not Ended.COMPLETE:
                return self.experiments.keep(replace(experiment, ended=ended))
            experiment = self._ask(experiment, side, request)
            quality = self._quality(experiment)
            if quality is not None and quality.judgement is Judgement.FELL:
                return experiment
        return self.experiments.keep(replace(experiment, ended=Ended.COMPLETE))

    def bring_back(
        self, profiles: Arms, *, reset: bool = False, on_event: Callable[[Event], None] | None = None
    ) -> bool:
        """Deploy the profile as it is written, and return whether that changed anything.

        Raise as `run` does where it cannot be deployed: the next plan shows what remains to change.
        """
        plan = self._plan(profiles.base)
        arms.check_in_place(plan)
        self._apply(plan, on_event, reset=reset)
        return not plan.is_empty

    def result(self, experiment: Experiment) -> ExperimentResult:
        """Return what the experiment's runs show so far. Raise `errors.RunUnreadable`."""
        return result(experiment, stored_runs(self._workspace.adapters).all(), self._quality(experiment))

    def remaining_turns(self, experiment: Experiment) -> tuple[tuple[int, Side], ...]:
        """Return the turns without a complete run, each with its place."""
        runs = repeats(experiment, stored_runs(self._workspace.adapters).all())
        places = {run.turn.place for run in runs if run.turn is not None}
        return tuple((place, side) for place, side in enumerate(order(experiment.repeats)) if place not in places)

    def _deploy(self, experiment: Experiment, side: Side, request: _AbRequest) -> Experiment:
        """Deploy an arm, and ask its engine once per command whether the value is in effect."""
        began, profile = self._workspace.adapters.clock.now(), request.arms.profile(side)
        plan = self._plan(profile)
        arms.check_in_place(plan)
        self._apply(plan, request.listener.on_event, reset=request.reset)
        arm, other = experiment.arm(side), experiment.arm(side.other)
        if arm.in_effect in {None, InEffect.NO}:
            verification = self._workspace.verification(profile)
            in_effect = arms.in_effect(experiment.path, verification, other.told)
            arm = replace(arm, told=arms.reported_settings(verification), in_effect=in_effect)
        return self._store(experiment, side, arm, began)

    def _ask(self, experiment: Experiment, side: Side, request: _AbRequest) -> Experiment:
        """Ask an arm the questions, in the same way as the other arm, unless it has answered them."""
        arm, other = experiment.arm(side), experiment.arm(side.other)
        if not experiment.questions or arm.sheet:
            return experiment
        began = self._workspace.adapters.clock.now()
        server = self.accuracy.deployment(request.arms.profile(side))
        sheet = self.accuracy.ask_as(
            server,
            QuestionRequest(source=experiment.questions, folder=request.folder, count=experiment.count),
            at_once=server.at_once,
            before=self.accuracy.sheets.read(other.sheet) if other.sheet else None,
            on_message=request.listener.on_message,
        )
        return self._store(experiment, side, replace(arm, sheet=sheet.id), began)

    def _store(self, experiment: Experiment, side: Side, arm: Arm, began: float) -> Experiment:
        """Store an arm, and the time since `began`."""
        seconds = experiment.seconds + self._workspace.adapters.clock.now() - began
        changed = replace(experiment, a=arm) if side is Side.A else replace(experiment, b=arm)
        return self.experiments.keep(replace(changed, seconds=seconds))

    def _quality(self, experiment: Experiment) -> SheetComparison | None:
        """Return the verdict on the answers, or None until both arms have answered."""
        if not experiment.a.sheet or not experiment.b.sheet:
            return None
        sheets = self.accuracy.sheets
        return verdict(sheets.read(experiment.a.sheet), sheets.read(experiment.b.sheet))

    def _deployment(self, profile: Profile) -> Deployment:
        return self._workspace.deployment(profile, script=False)

    def _plan(self, profile: Profile) -> Plan:
        return self._workspace.plan([profile])

    def _apply(self, plan: Plan, on_event: Callable[[Event], None] | None, *, reset: bool) -> None:
        """Apply a plan, and raise its first failure. Whether a setting is in effect is checked separately."""
        report = self._workspace.apply(plan, on_event=on_event, reset=reset)
        for error in report.failures:
            raise error

    def _measure(
        self, experiment: Experiment, turn: Turn, seconds: float | None, request: _AbRequest
    ) -> tuple[Run, float]:
        """Measure a repeat, or the remaining cells of one, and return it with the time that took."""
        started = next((run for run in stored_runs(self._workspace.adapters).all() if run.turn == turn), None)
        profile = request.arms.profile(turn.side)
        try:
            run = self._benchmarks.run(
                self._benchmarks.deployment(profile),
                experiment.sweep if started is None else None,
                resume=None if started is None else started.id,
                bounds=Bounds(seconds=seconds),
                driver=experiment.driver,
                tokenizer=experiment.tokenizer,
                turn=turn,
                on_point=request.listener.on_point,
                on_cell=request.listener.on_cell,
            )
        except (QueryFailed, BenchFailed) as cause:
            if self._is_slice_gone(profile):
                raise _slice_gone(profile, turn) from cause
            raise
        self._check_unchanged(profile, turn, run)
        run = self._benchmarks.with_start(profile, run)
        return run, run.seconds - (0.0 if started is None else started.seconds)

    def _check_unchanged(self, profile: Profile, turn: Turn, run: Run) -> None:
        """Raise `errors.StalePlan` where the server changed while this arm was measured: the run is no repeat then."""
        deployment = self._deployment(profile)
        attempt = serving_attempt(self._workspace.adapters.states.read(deployment.name).state)
        is_gone = self._is_slice_gone(profile)
        if attempt is not None and runs_as_declared(deployment, attempt) and not is_gone:
            return
        stored_runs(self._workspace.adapters).keep(replace(run, turn=None))
        if is_gone:
            raise _slice_gone(profile, turn)
        raise StalePlan(
            f"{deployment.name} was changed while arm {turn.side} was measured: that repeat does not count.",
            hint="Find out who else applies to it, see `tpudeploy status`, then resume the A/B.",
        )

    def _is_slice_gone(self, profile: Profile) -> bool:
        """Return whether an observation finds no slice of the deployment: it was preempted, or deleted."""
        return any(change.action is Action.CREATE for change in self._plan(profile).changes)


def _where(base: Deployment, machine: Attempt, replicas: int) -> str:
    """Return the slices of an A/B: with one replica its place, else how many there are."""
    if replicas > 1:
        return f"{replicas} x {base.accelerator.name}"
    return ", ".join((base.accelerator.name, str(machine.zone), str(machine.provisioning)))


def _slice_gone(profile: Profile, turn: Turn) -> StalePlan:
    return StalePlan(
        f"The slice of {profile.name} was taken away while arm {turn.side} was measured: that repeat does not count.",
        hint="Run `tpudeploy apply` for another slice, then resume the A/B.",
    )


def _current_side(serving: Attempt | None, a: Deployment, b: Deployment) -> Side | None:
    """Return the arm that the server runs as, or None for neither."""
    if serving is None:
        return None
    return next((side for side, arm in zip(Side, (a, b), strict=True) if runs_as_declared(arm, serving)), None)


def _check_same(experiment: Experiment, a: Deployment, b: Deployment) -> None:
    """Raise `errors.UsageError` where the profile was changed since the experiment began."""
    for arm, deployment in ((experiment.a, a), (experiment.b, b)):
        if arm.fingerprint != arms.arm_print(deployment):
            raise UsageError(
                f"{experiment.id} began with another profile, so its repeats cannot be compared with new ones.",
                hint="Use the same profile, -f and --set; or start a new A/B without --resume.",
            )


def _check_arm(plan: Plan, arm: str) -> None:
    """Raise `errors.CheckFailed` or `errors.UsageError` for an arm that cannot be deployed in place."""
    problems = errors_in(plan.diagnostics)
    if problems:
        raise CheckFailed(f"{arm} cannot be deployed: {problems[0].message}", hint=problems[0].hint)
    arms.check_in_place(plan)
