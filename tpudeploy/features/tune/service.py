"""Tunings of a workspace: what one will do, its measurements one by one, and the deployment as it was at the end."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass, replace
from enum import Enum, auto
from math import exp, log
from pathlib import Path

from tpudeploy import loading
from tpudeploy.config.profile import Profile as CheckedProfile
from tpudeploy.domain.budget import HbmBudget
from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.diagnostics import errors_in
from tpudeploy.domain.errors import (
    BenchFailed,
    CheckFailed,
    ConfigError,
    Interrupted,
    QueryFailed,
    ServingError,
    StalePlan,
    TpudeployError,
    UsageError,
)
from tpudeploy.domain.events import Event, Warned
from tpudeploy.domain.plan import Action, Plan
from tpudeploy.domain.state import Attempt
from tpudeploy.engine.session import holding_lock
from tpudeploy.features.ab_test import arms
from tpudeploy.features.ab_test.turns import start_seconds
from tpudeploy.features.accuracy.judgement import Judgement
from tpudeploy.features.accuracy.service import AccuracyTests, QuestionRequest, check_questions
from tpudeploy.features.accuracy.verdict import verdict as quality_verdict
from tpudeploy.features.benchmark.comparison import Measure
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Bounds, Cell, Ended, Run, Side, Sweep, Turn
from tpudeploy.features.benchmark.service import Benchmarks
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.features.tune.funds import END, TuneFunds, check_money
from tpudeploy.features.tune.search import (
    Axis,
    ClaimFinding,
    SearchBudget,
    Settings,
    Trial,
    TuneStep,
    TuneVerdict,
    decide,
)
from tpudeploy.features.tune.space import DroppedAxis, default_axes, without, written_axes
from tpudeploy.features.tune.store import LocalTunings
from tpudeploy.features.tune.tuning import Pending, TuneLimits, Tuning
from tpudeploy.loading import Profile
from tpudeploy.node.fingerprint import server_print, slice_print
from tpudeploy.operations.endpoint import require_completions, runs_as_declared, serving_attempt
from tpudeploy.ports import Clock
from tpudeploy.reconcile import prices
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace

PREFIX = "tune-"
_HOUR = 3600.0
_RENEWED_EVERY = 120.0  # seconds; the lock of a run that is silent for a quarter of an hour is taken over
_UNKNOWN_START = (300.0, 1500.0)  # seconds, warm and cold, where a start cannot be predicted
_WARM_UP = 1.5  # times the window: a cell with its warm-up and the answers that end it


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneRequest:
    """What is to be tuned: see `tune`."""

    sweep: Sweep
    by: Measure
    limits: TuneLimits
    max_cost: float | None
    axes: Sequence[str] = ()
    questions: str = ""
    count: int | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class TuneListener:
    """The callbacks of a tuning: before each measurement, for each event, and as in `Benchmarks.run`."""

    on_step: Callable[[Tuning, TuneStep], None] = lambda _tuning, _step: None
    on_event: Callable[[Event], None] = lambda _event: None
    on_point: Callable[[Run, Point], None] = lambda _run, _point: None
    on_cell: Callable[[Run, Cell], None] = lambda _run, _cell: None
    on_message: Callable[[str], None] = lambda _text: None

    def renewing(self, lock: TuneLock) -> TuneListener:
        """Return these callbacks, each of which renews the lock before."""

        def event(event: Event) -> None:
            lock.renew()
            self.on_event(event)

        def point(run: Run, point: Point) -> None:
            lock.renew()
            self.on_point(run, point)

        def cell(run: Run, cell: Cell) -> None:
            lock.renew()
            self.on_cell(run, cell)

        return replace(self, on_event=event, on_point=point, on_cell=cell)


class TuneLock:
    """The lock of a tuning, which `renew` keeps from being taken over by another run, and `check` proves."""

    def __init__(self, prove: Callable[[], None], clock: Clock) -> None:
        self._prove = prove
        self._clock = clock
        self._proven_at = clock.now()

    def renew(self) -> None:
        """Renew the lock if that was some minutes ago. `check` finds out what goes wrong."""
        if self._clock.now() - self._proven_at > _RENEWED_EVERY:
            with suppress(TpudeployError):
                self.check()

    def check(self) -> None:
        """Raise `errors.StateConflict` if another run has taken over the lock, or the error that hides it."""
        self._prove()
        self._proven_at = self._clock.now()

    @property
    def is_held(self) -> bool:
        try:
            self.check()
        except TpudeployError:
            return False
        return True


class Tunings:
    """Runs tunings. They are kept in `store`, their runs as all others."""

    def __init__(self, workspace: Workspace, outer: CostCeiling | None = None) -> None:
        """The `outer` ceiling holds for each slice, beside the money of the tuning."""
        self._workspace = workspace
        self._outer = outer
        self._benchmarks = Benchmarks(workspace)
        self._accuracy = AccuracyTests(workspace)
        self.store = LocalTunings(workspace.adapters.own_folder("runs").sub("tune"))

    @contextmanager
    def holding(self, name: str, on_event: Callable[[Event], None] | None = None) -> Iterator[TuneLock]:
        """Hold the lock of the tunings of a deployment, of which one runs at a time.

        Raise `errors.StateLocked` if another one has it still after `Patience.lock`.
        """
        world = self._workspace.adapters.world(on_event or (lambda _event: None))
        # No deployment has such a name.
        with holding_lock(world, f"_tune-{name}", "tune", what=f"A tuning of {name}") as prove:
            yield TuneLock(prove, world.clock)

    def tuning(self, profile: Profile, request: TuneRequest) -> Tuning:
        """Return the tuning of a request: a new one, or the one that began with it. It is not stored.

        Raise `errors.UsageError` where nothing can be tuned or another tuning has the slice, and `errors.CheckFailed`
        for a profile that cannot start.
        """
        base = self._workspace.deployment(profile, script=False)
        require_completions(base, "there are no tokens per second to tune for")
        self._check(profile)
        if request.questions:
            check_questions(self._questions(request.questions, request.count))
        axes, dropped = self._axes(profile, base, request)
        id_ = _id_of(base, axes, request)
        stored = self.store.read(id_)
        attempt = serving_attempt(self._workspace.adapters.states.read(base.name).state)
        self._check_other(base, attempt, id_)
        price = self._price(base) if attempt is None else prices.usd_per_hour(attempt)
        budget = _search_budget(base, self._workspace, request, price)
        check_money(base, budget, price, has_slice=attempt is not None or stored is not None)
        if stored is not None:
            if stored.is_released:
                stored = replace(stored, was_there=attempt is not None, is_released=False)
            return replace(stored, budget=replace(budget, warm=stored.budget.warm, cold=stored.budget.cold))
        if not axes:
            why = "; ".join(f"{each.name}: {each.why}" for each in dropped)
            raise UsageError(f"Nothing can be tuned: {why}.", hint="Name the values to try: --try PATH=A,B.")
        where = "a new slice" if attempt is None else f"{attempt.zone}, {attempt.provisioning}"
        return Tuning(
            id=id_,
            began_at=self._workspace.adapters.clock.now(),
            version=VERSION,
            deployment=base.name,
            file=loading.name_of(profile)
            if profile.source is None
            else str(getattr(profile.source, "path", base.name)),
            axes=axes,
            dropped=dropped,
            sweep=request.sweep,
            by=request.by,
            limits=request.limits,
            budget=budget,
            where=f"{base.accelerator.name}, {where}",
            was_there=attempt is not None,
            usd_per_hour=price,
            questions=request.questions,
            count=request.count,
        )

    def _check_other(self, base: Deployment, attempt: Attempt | None, id_: str) -> None:
        """Raise `errors.UsageError` for the slice of an unfinished tuning of something else, which that one deletes."""
        for other in self.store.all():
            is_open = other.id != id_ and other.deployment == base.name and not (other.was_there or other.is_released)
            if attempt is None or not is_open or attempt.asked_at < other.began_at:
                continue
            # A tuning with a limit gives its slice an end of its own.
            if other.budget.limit is None or attempt.spec.get(END) != base.attributes.get(END):
                raise UsageError(
                    f"{base.name} is on the slice of {other.id}, which isn't finished. The profile was edited since, "
                    "or the load, the limits or the keys are others.",
                    hint=f"Undo that to continue it, or delete its slice: tpudeploy destroy {base.name}",
                )

    def is_deployed(self, name: str) -> bool:
        """Return whether a deployment has a slice or a request, which a tuning would change or delete."""
        state = self._workspace.adapters.states.read(name).state
        return state is not None and bool(state.attempts)

    def tune(
        self, profile: Profile, request: TuneRequest, *, reset: bool = False, listener: TuneListener | None = None
    ) -> Tuning:
        """Run the tuning of a request to its end, and bring the deployment back, also after an error.

        Not after `errors.Interrupted`: this workspace is stopped then, and another one has to call `bring_back`. And
        not if another run has taken over the lock: the deployment is that one's. Raise as `holding`, `tuning` and
        `Workspace.apply` do; the same call continues.
        """
        callbacks = listener or TuneListener()
        with self.holding(profile.name, callbacks.on_event) as lock:
            tuning = self.tuning(profile, request)
            try:
                tuning = self._run(tuning, profile, lock, callbacks.renewing(lock), reset=reset)
            except Interrupted:
                raise
            except Exception:
                if lock.is_held:
                    self.bring_back(tuning, profile, on_event=callbacks.on_event)
                raise
            lock.check()
            self.bring_back(tuning, profile, on_event=callbacks.on_event)
            return tuning

    def _run(self, tuning: Tuning, profile: Profile, lock: TuneLock, listener: TuneListener, *, reset: bool) -> Tuning:
        """Measure until the search has ended, and store the tuning after each measurement."""
        session = _TuneSession(funds=TuneFunds(self._workspace, profile), reset=reset, listener=listener)
        tuning = self.store.keep(replace(tuning, verdict=None))
        has_warned = False
        while True:
            lock.check()
            has_warned = has_warned or self._warn_of_edits(profile, listener)
            decision = decide(_axes_left(tuning), tuning.trials, session.funds.search_budget(tuning))
            if isinstance(decision, TuneStep):
                tuning = self._measure(tuning, session, decision)
                continue
            fell, tuning = self._quality_falls(tuning, session, decision)
            if not fell:
                return self.store.keep(replace(tuning, verdict=decision))

    def _warn_of_edits(self, profile: Profile, listener: TuneListener) -> bool:
        """Say that the profile was edited, which changes nothing here. Return whether it was."""
        names = ", ".join(Path(path).name for path in profile.edited_files())
        if names:
            message = f"{names} was edited. This tuning continues with the profile as it was when it began."
            hint = "Undo the edit before you continue it: the edited profile has a tuning of its own."
            now = self._workspace.adapters.clock.now()
            listener.on_event(Warned(at=now, address=profile.name, message=message, hint=hint))
        return bool(names)

    def bring_back(self, tuning: Tuning, profile: Profile, *, on_event: Callable[[Event], None] | None = None) -> None:
        """Deploy the profile as it is written, or delete what was not there before. Raise as `Workspace.apply` does."""
        if not tuning.was_there:
            self._apply(self._workspace.plan([profile], destroy=True), on_event)
            stored = self.store.read(tuning.id)
            if stored is not None:
                self.store.keep(replace(stored, is_released=True))
            return
        plan = self._workspace.plan([profile])
        if not any(change.action is Action.CREATE for change in plan.changes):
            self._apply(plan, on_event)

    def _axes(
        self, profile: Profile, base: Deployment, request: TuneRequest
    ) -> tuple[tuple[Axis, ...], tuple[DroppedAxis, ...]]:
        """Return the axes with the choices that can start, and what was left out."""
        axes, left_out = default_axes(base, request.sweep.points)
        if request.axes:
            axes, left_out = written_axes(request.axes), ()
        dropped, remaining = list(left_out), []
        for axis in axes:
            verdicts = {c: self._judge(profile, base, c, is_default=not request.axes) for c in axis.choices[1:]}
            dropped += [verdict for verdict in verdicts.values() if isinstance(verdict, DroppedAxis)]
            usable = without(axis, [choice for choice, verdict in verdicts.items() if verdict is not _Fate.MEASURED])
            if len(usable.choices) > 1:
                remaining.append(usable)
        return tuple(remaining), tuple(dropped)

    def _judge(self, profile: Profile, base: Deployment, choice: Settings, *, is_default: bool) -> _Fate | DroppedAxis:
        """Return whether a choice is measured, and why it cannot be."""
        try:
            changed = with_settings(profile, choice)
            deployment = self._workspace.deployment(changed, script=False)
        except ConfigError as problem:
            return DroppedAxis(name=text_of(choice), why=problem.message)
        if server_print(deployment.attributes) == server_print(base.attributes):
            return _Fate.ALREADY_SO
        is_sized = isinstance(base.budget, HbmBudget)
        if is_default and is_sized and deployment.budget == base.budget:
            return _Fate.ALREADY_SO  # the value that the engine takes by itself
        if slice_print(deployment.attributes) != slice_print(base.attributes):
            return DroppedAxis(name=text_of(choice), why="it needs another slice")
        refusal = self._refusal(changed)
        return _Fate.MEASURED if refusal is None else DroppedAxis(name=text_of(choice), why=refusal)

    def _refusal(self, profile: CheckedProfile) -> str | None:
        """Return why sizing says that a server cannot start, or None."""
        deployment, diagnostics = loading.checked(profile, self._workspace.adapters.pins.read())
        problems = errors_in(diagnostics)
        if problems:
            return problems[0].message
        return "it would not fit into the memory" if deployment.budget.fits is False else None

    def _check(self, profile: Profile) -> None:
        """Raise `errors.CheckFailed` for a profile that cannot start itself."""
        refusal = self._refusal(profile)
        if refusal is not None:
            raise CheckFailed(f"The profile itself cannot be deployed: {refusal}", hint="See `tpudeploy plan`.")

    def _price(self, base: Deployment) -> float | None:
        """Return the price of a slice that is still to be requested: the highest of all places."""
        prices_per_chip = [c.usd_per_chip_hour for c in base.candidates if c.usd_per_chip_hour is not None]
        return max(prices_per_chip) * base.accelerator.chips if prices_per_chip else None

    def _measure(self, tuning: Tuning, session: _TuneSession, step: TuneStep) -> Tuning:
        """Measure one step, unless that was done before a kill, and store its trial."""
        profile = with_settings(session.funds.with_end(tuning), step.settings)
        refusal = self._refusal(profile)
        place = len(tuning.trials)
        if refusal is not None:
            return self._with_trial(tuning, step, place, None, why=refusal)
        server = server_print(self._workspace.deployment(profile, script=False).attributes)
        tuning = self.store.keep(replace(tuning, pending=Pending(place=place, step=step, server=server)))
        session.listener.on_step(tuning, step)
        began = self._workspace.adapters.clock.now()
        try:
            self._deploy(tuning, profile, session)
        except ServingError as failure:
            seconds = self._workspace.adapters.clock.now() - began
            return self._with_trial(tuning, step, place, None, why=failure.message, seconds=seconds)
        run = self._bench(tuning, profile, place, step, session)
        seconds = self._workspace.adapters.clock.now() - began
        value, why = objective(run, tuning.by, tuning.limits)
        tuning = replace(tuning, is_emulated=tuning.is_emulated or run.subject.is_emulated)
        return self._with_trial(tuning, step, place, value, why=why, seconds=seconds, run=run.id)

    def _with_trial(
        self,
        tuning: Tuning,
        step: TuneStep,
        place: int,
        value: float | None,
        *,
        why: str,
        seconds: float = 0.0,
        run: str = "",
    ) -> Tuning:
        usd = seconds * (tuning.usd_per_hour or 0.0) / _HOUR
        trial = Trial(
            place=place,
            stage=step.stage,
            settings=step.settings,
            number=step.number,
            value=value,
            usd=usd,
            why=why,
            run=run,
        )
        total = tuning.seconds + seconds
        return self.store.keep(replace(tuning, trials=(*tuning.trials, trial), pending=None, seconds=total))

    def _deploy(self, tuning: Tuning, profile: Profile, session: _TuneSession) -> None:
        """Deploy settings in place; a slice that is not there yet, or was lost, is requested within the money."""
        plan = self._workspace.plan([profile])
        if any(change.action is Action.CREATE for change in plan.changes):
            own = session.funds.ceiling(tuning)
            ceiling = self._outer if own is None else replace(own, outer=self._outer)
            self._apply(plan, session.listener.on_event, reset=session.reset, ceiling=ceiling)
            return
        arms.check_in_place(plan)
        self._apply(plan, session.listener.on_event, reset=session.reset)

    def _apply(
        self,
        plan: Plan,
        on_event: Callable[[Event], None] | None,
        *,
        reset: bool = False,
        ceiling: CostCeiling | None = None,
    ) -> None:
        report = self._workspace.apply(plan, on_event=on_event, reset=reset, max_cost=ceiling)
        for error in report.failures:
            raise error

    def _bench(self, tuning: Tuning, profile: Profile, place: int, step: TuneStep, session: _TuneSession) -> Run:
        """Measure one run, or what is left of it after a kill."""
        turn = Turn(experiment=tuning.id, place=place, side=Side.B if step.settings else Side.A)
        runs = stored_runs(self._workspace.adapters).all()
        started = next((run for run in runs if run.turn == turn), None)
        if started is not None and started.ended is Ended.COMPLETE:
            return started
        budget, price = session.funds.remaining_usd(tuning), tuning.usd_per_hour
        bounds = Bounds(seconds=budget / price * _HOUR) if budget is not None and price else Bounds()
        try:
            run = self._benchmarks.run(
                self._benchmarks.deployment(profile),
                tuning.sweep if started is None else None,
                resume=None if started is None else started.id,
                bounds=bounds,
                turn=turn,
                on_point=session.listener.on_point,
                on_cell=session.listener.on_cell,
            )
        except (QueryFailed, BenchFailed) as cause:
            if self._is_slice_gone(profile):
                raise _slice_gone(tuning) from cause
            raise
        attempt = serving_attempt(self._workspace.adapters.states.read(tuning.deployment).state)
        deployment = self._workspace.deployment(profile, script=False)
        if attempt is None or not runs_as_declared(deployment, attempt) or self._is_slice_gone(profile):
            stored_runs(self._workspace.adapters).keep(replace(run, turn=None))
            raise _slice_gone(tuning)
        return run

    def _is_slice_gone(self, profile: Profile) -> bool:
        return any(change.action is Action.CREATE for change in self._workspace.plan([profile]).changes)

    def _questions(self, source: str, count: int | None) -> QuestionRequest:
        return QuestionRequest(source=source, folder=self._workspace.adapters.folder, count=count)

    def _quality_falls(self, tuning: Tuning, session: _TuneSession, decision: TuneVerdict) -> tuple[bool, Tuning]:
        """Ask the winner and the profile the questions; where quality fell, leave out what may have cost it."""
        risky = tuple(pair for pair in decision.winner if arms.is_risky(pair[0]))
        is_claimed = decision.finding in {ClaimFinding.BETTER, ClaimFinding.MEETS}
        if not tuning.questions or not decision.winner or not is_claimed:
            return False, tuning
        for settings in ((), decision.winner):
            tuning = self._ask(tuning, session, settings)
        comparison = quality_verdict(
            *(self._accuracy.sheets.read(tuning.sheets[text_of(each)]) for each in ((), decision.winner))
        )
        if comparison.judgement is not Judgement.FELL:
            return False, tuning
        losses = (*tuning.quality_losses, *(risky or decision.winner))
        return True, self.store.keep(replace(tuning, quality_losses=losses))

    def _ask(self, tuning: Tuning, session: _TuneSession, settings: Settings) -> Tuning:
        name = text_of(settings)
        if name in tuning.sheets:
            return tuning
        profile = with_settings(session.funds.with_end(tuning), settings)
        began = self._workspace.adapters.clock.now()
        self._deploy(tuning, profile, session)
        server = self._accuracy.deployment(profile)
        before = tuning.sheets.get(text_of(()))
        sheet = self._accuracy.ask_as(
            server,
            self._questions(tuning.questions, tuning.count),
            at_once=server.at_once,
            before=None if before is None else self._accuracy.sheets.read(before),
            on_message=session.listener.on_message,
        )
        seconds = tuning.seconds + self._workspace.adapters.clock.now() - began
        return self.store.keep(replace(tuning, sheets={**tuning.sheets, name: sheet.id}, seconds=seconds))


class _Fate(Enum):
    """What becomes of a choice of an axis."""

    MEASURED = auto()
    ALREADY_SO = auto()  # it is what the profile has


@dataclass(frozen=True, slots=True, kw_only=True)
class _TuneSession:
    """What the steps of one run share."""

    funds: TuneFunds
    reset: bool
    listener: TuneListener


def objective(run: Run, by: Measure, limits: TuneLimits) -> tuple[float | None, str]:
    """Return the objective of a run, the more the better: over its trusted cells, their geometric mean; or why none."""
    trusted = [cell for cell in run.cells if cell.is_trusted]
    if not trusted or run.ended is not Ended.COMPLETE:
        reasons = [reason for cell in run.cells for reason in cell.reasons]
        return None, reasons[0] if reasons else "it was not measured to its end"
    broken = _broken_limit(run, trusted, limits)
    if broken:
        return None, broken
    figures = [value for value in (by.value_in(cell, run.subject) for cell in trusted) if value]
    if len(figures) < len(trusted):
        return None, f"{by} is unknown"
    mean = exp(sum(map(log, figures)) / len(figures))
    return (1 / mean if by.is_better_low else mean), ""


def _broken_limit(run: Run, cells: Sequence[Cell], limits: TuneLimits) -> str:
    """Return which limit the worst cell breaks, or ""."""
    for measure, limit in ((Measure.TTFT_P99, limits.ttft_p99_seconds), (Measure.TPOT, limits.tpot_seconds)):
        if limit is None:
            continue
        figures = [value for value in (measure.value_in(cell, run.subject) for cell in cells) if value is not None]
        if len(figures) < len(cells):
            return f"{measure} is unknown"
        if max(figures) > limit:
            return f"{measure} is {max(figures):.3g} s, above {limit:.3g} s"
    return ""


def with_settings(profile: Profile, settings: Settings) -> Profile:
    return profile.with_settings([f"{path}={value}" for path, value in settings]) if settings else profile


def text_of(settings: Settings) -> str:
    """Return settings as text: "as written" for the profile itself."""
    return ", ".join(f"{path}={value}" for path, value in settings) or "as written"


def _axes_left(tuning: Tuning) -> tuple[Axis, ...]:
    """Return the axes without the choices that cost quality."""
    losses = set(tuning.quality_losses)
    return tuple(without(axis, (choice for choice in axis.choices if losses & set(choice))) for axis in tuning.axes)


def _search_budget(base: Deployment, workspace: Workspace, request: TuneRequest, price: float | None) -> SearchBudget:
    warm, cold = start_seconds((base,), workspace.adapters.patience) or _UNKNOWN_START
    window = len(request.sweep.points) * request.sweep.window_seconds * _WARM_UP
    usd_per_second = (price or 0.0) / _HOUR
    return SearchBudget(
        limit=request.max_cost, cold=(cold + window) * usd_per_second, warm=(warm + window) * usd_per_second
    )


def _id_of(base: Deployment, axes: Iterable[Axis], request: TuneRequest) -> str:
    """Return the id of a request: a hash of the server, the load, the axes, the objective and the limits."""
    key = [
        arms.arm_print(base),
        [[axis.name, axis.choices] for axis in axes],
        [point.sizes for point in request.sweep.points],
        [request.sweep.window_seconds, request.sweep.is_whole_window, request.by],
        [request.limits.ttft_p99_seconds, request.limits.tpot_seconds, request.questions, request.count],
    ]
    return PREFIX + hashlib.sha256(json.dumps(key).encode()).hexdigest()[:12]


def _slice_gone(tuning: Tuning) -> StalePlan:
    return StalePlan(
        f"The slice of {tuning.deployment} was taken away, or changed, during a measurement: that one does not count.",
        hint="Run the same command again: it continues on another slice.",
    )
