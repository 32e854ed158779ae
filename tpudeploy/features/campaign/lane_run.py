"""Run one lane: deploy each of its servers in turn on one slice, measure its loads, and delete the slice at the end."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, replace
from pathlib import Path

from tpudeploy.domain import errors
from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.events import Event
from tpudeploy.domain.plan import Action
from tpudeploy.features.accuracy.service import AccuracyTests, QuestionRequest
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.run import Bounds, Cell, CellStatus, Run, Sweep
from tpudeploy.features.benchmark.service import Benchmarks
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.features.campaign.lanes import LaneTurn
from tpudeploy.features.campaign.measured import measured_cells, next_run_id, run_prefix
from tpudeploy.features.campaign.progress import CellProgress
from tpudeploy.features.campaign.proposal import lane_profile
from tpudeploy.features.campaign.record import CampaignAnswers
from tpudeploy.loading import Profile
from tpudeploy.plans import Plan
from tpudeploy.workspace import Workspace

# A server has failed after this number of deployments or measurements without a figure, if its slice is still there.
_ATTEMPTS = 3
# Errors that end a lane, and say nothing about a server: the next run continues it.
_STOPS_LANE = (
    errors.BudgetExceeded,
    errors.CapacityTimeout,
    errors.StillStarting,
    errors.StateError,
    errors.CloudError,
    errors.ChangeNotAcknowledged,
)
_NEW_SLICE = {Action.CREATE, Action.REPLACE}


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneReport:
    """What a lane tells its campaign, from the lane's own thread."""

    on_event: Callable[[Event], None]
    on_turn: Callable[[LaneTurn, CellProgress, str], None]
    on_point: Callable[[LaneTurn, Point], None]
    on_cell: Callable[[LaneTurn, Cell], None]
    on_failure: Callable[[LaneTurn, str], None]
    on_end: Callable[[str, str], None]
    on_answers: Callable[[LaneTurn, CampaignAnswers], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneTask:
    """A lane to run. `end` gives the minutes of a new slice, or None if the budget has no room for it any more.

    `prove` raises `errors.StateConflict` if another run has taken over the campaign: this one changes nothing then.
    """

    campaign: str
    name: str
    turns: tuple[LaneTurn, ...]
    window_seconds: float
    is_whole_window: bool
    accuracy: str | None
    folder: Path
    deadline: float
    ceiling: CostCeiling | None
    end: Callable[[tuple[LaneTurn, ...]], int | None]
    prove: Callable[[], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class LaneOutcome:
    """Why turns of a lane are left, or "". `waits`: the budget may have room once other slices are gone."""

    why: str = ""
    waits: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class _Problem:
    """Why a server has no figures. `may_pass`: another try can succeed."""

    why: str
    may_pass: bool = False


class _Left(Exception):
    """The lane ends before its turns are over, for a reason that is not a server's."""

    def __init__(self, why: str, *, waits: bool = False) -> None:
        super().__init__(why)
        self.outcome = LaneOutcome(why=why, waits=waits)


def _left_by(error: TpudeployError) -> _Left:
    return _Left(error.message, waits=isinstance(error, errors.BudgetExceeded))


class LaneRun:
    """One lane, from its first request to the deletion of its slice."""

    def __init__(
        self,
        workspace: Workspace,
        task: LaneTask,
        profiles: Callable[[str], Profile],
        end: str | None,
        report: LaneReport,
    ) -> None:
        self._workspace = workspace
        self._task = task
        self._profiles = profiles
        self._end = end
        self._report = report
        self._benchmarks = Benchmarks(workspace, task.prove)
        self._accuracy = AccuracyTests(workspace)
        self._misses: dict[tuple[str, int], int] = {}

    def run(self) -> LaneOutcome:
        """Run the turns that remain, and delete the slice.

        Raise `errors.Interrupted` after `stop`; the slice is kept then, until its end.
        """
        outcome = LaneOutcome()
        failed: set[str] = set()
        for turn in self._task.turns:
            if turn.server.key in failed:
                continue
            try:
                if not self._finish(turn):
                    failed.add(turn.server.key)
            except _Left as reason:
                outcome = reason.outcome
                break
        self.delete()
        return outcome

    def delete(self) -> None:
        """Delete the slice of the lane, and wait until it is gone. Raise the error by which it is not."""
        state = self._workspace.adapters.states.read(self._task.name).state
        if state is None:
            return
        self._task.prove()
        profile = self._workspace.recorded_profile(self._task.name, ["lifecycle.prevent_destroy=false"])
        report = self._workspace.apply(self._workspace.plan([profile], destroy=True), on_event=self._report.on_event)
        for error in report.failures:
            raise error

    def _finish(self, turn: LaneTurn) -> bool:
        """Measure what remains of a turn, on one slice or on several. Return False if its server has failed."""
        while points := self._remaining(turn):
            problem = self._deploy(turn) or self._measure(turn, points)
            if problem is not None and self._is_failed(turn, problem):
                return False
        return True

    def _is_failed(self, turn: LaneTurn, problem: _Problem) -> bool:
        """Record the failure of a server that has had its chances. A lost slice does not count."""
        if self._is_slice_gone(turn):
            return False
        place = (turn.server.key, turn.repeat)
        self._misses[place] = self._misses.get(place, 0) + 1
        if self._misses[place] < _ATTEMPTS and problem.may_pass:
            return False
        self._report.on_failure(turn, problem.why)
        return True

    def _deploy(self, turn: LaneTurn) -> _Problem | None:
        """Deploy a server. Return why it does not serve, or None. Raise _Left."""
        adapters = self._workspace.adapters
        seconds = self._task.deadline - adapters.clock.now()
        if seconds <= 0:
            raise _Left("the end of the campaign has come")
        self._report.on_turn(turn, CellProgress.STARTING, "")
        self._task.prove()
        try:
            plan = self._plan(turn)
            if any(change.action in _NEW_SLICE for change in plan.changes):
                minutes = self._task.end(self._turns_from(turn))
                if minutes is None:
                    raise _Left("the budget has no room for another slice", waits=True)
                # An end counts from the first answer of a deployment, and no lost slice moves it: without a state, it
                # counts again.
                self.delete()
                self._end = f"{minutes}m"
                self._report.on_end(self._task.name, self._end)
                plan = self._plan(turn)
            if plan.worst_error is not None:
                return _Problem(why=plan.worst_error.message)
            report = self._workspace.apply(
                plan, on_event=self._report.on_event, timeout=seconds, reset=True, max_cost=self._task.ceiling
            )
        except _STOPS_LANE as error:
            raise _left_by(error) from error
        except errors.StalePlan as error:
            return _Problem(why=error.message, may_pass=True)
        for failure in report.failures:
            if isinstance(failure, errors.Interrupted):
                raise failure
            if isinstance(failure, _STOPS_LANE):
                raise _left_by(failure)
            return _Problem(why=failure.message)
        return next((_Problem(why=error.message) for error in report.not_in_effect), None)

    def _measure(self, turn: LaneTurn, points: tuple[Point, ...]) -> _Problem | None:
        """Measure the loads that remain, and ask the questions. Return why there are no figures, or None."""
        profile, runs = self._profile(turn), stored_runs(self._workspace.adapters)
        id_ = next_run_id(
            self._task.campaign, turn.server.key, turn.repeat, runs.beginning_with(run_prefix(self._task.campaign))
        )
        try:
            target = self._benchmarks.deployment(profile)
            run = self._benchmarks.run(
                target,
                Sweep(
                    points=points,
                    window_seconds=self._task.window_seconds,
                    is_whole_window=self._task.is_whole_window,
                ),
                id=id_,
                bounds=Bounds(seconds=max(1.0, self._task.deadline - self._workspace.adapters.clock.now())),
                on_point=lambda _, point: self._report.on_point(turn, point),
                on_cell=lambda _, cell: self._report.on_cell(turn, cell),
            )
            run = self._benchmarks.with_start(profile, run)
            if self._drops_cells_of_a_lost_slice(turn, run):
                return None
            self._ask(turn, profile)
        except errors.Interrupted:
            raise
        except (errors.QueryFailed, errors.BenchFailed, errors.UsageError) as error:
            return _Problem(why=error.message, may_pass=True)
        except (errors.StateError, errors.CloudError) as error:
            raise _Left(error.message) from error
        return None

    def _drops_cells_of_a_lost_slice(self, turn: LaneTurn, run: Run) -> bool:
        """Return whether the slice was lost while its last cells were measured; these are measured again then."""
        if not any(cell.status is CellStatus.FAILED for cell in run.cells) or not self._is_slice_gone(turn):
            return False
        remaining_cells = tuple(cell for cell in run.cells if cell.status is not CellStatus.FAILED)
        stored_runs(self._workspace.adapters, self._task.prove).keep(replace(run, cells=remaining_cells))
        return True

    def _ask(self, turn: LaneTurn, profile: Profile) -> None:
        """Ask a server the questions of the campaign, once."""
        if self._task.accuracy is None or turn.repeat != 1:
            return
        server = self._accuracy.deployment(profile)
        sheet = self._accuracy.ask_as(
            server,
            QuestionRequest(source=self._task.accuracy, folder=self._task.folder),
            at_once=server.at_once,
            before=None,
            on_message=lambda text: self._report.on_turn(turn, CellProgress.MEASURING, text),
        )
        self._report.on_answers(turn, CampaignAnswers.from_sheet(sheet, self._task.accuracy))

    def _remaining(self, turn: LaneTurn) -> tuple[Point, ...]:
        runs = stored_runs(self._workspace.adapters).beginning_with(run_prefix(self._task.campaign))
        cells = measured_cells(self._task.campaign, runs).get((turn.server.key, turn.repeat), {})
        return tuple(point for point in turn.points if point not in cells)

    def _turns_from(self, turn: LaneTurn) -> tuple[LaneTurn, ...]:
        place = self._task.turns.index(turn)
        return self._task.turns[place:]

    def _profile(self, turn: LaneTurn) -> Profile:
        profile = self._profiles(turn.server.key)
        return profile if self._end is None else lane_profile(profile, self._end)

    def _plan(self, turn: LaneTurn) -> Plan:
        return self._workspace.plan([self._profile(turn)], start=True)

    def _is_slice_gone(self, turn: LaneTurn) -> bool:
        """Return whether an observation finds no slice of the lane: Google took it, or it has ended."""
        try:
            return any(change.action is Action.CREATE for change in self._plan(turn).changes)
        except TpudeployError:
            return False
