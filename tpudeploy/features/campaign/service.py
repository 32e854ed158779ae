"""Campaigns of a workspace: propose what a grid asks for, run it lane by lane, and keep what is known after each step.

Why: decision 90 in docs/decisions.md.
"""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Collection, Iterable
from concurrent.futures import Future, ThreadPoolExecutor
from contextvars import copy_context
from dataclasses import dataclass, replace
from math import inf
from pathlib import Path
from threading import Lock, RLock

from tpudeploy.adapters.files import read_file, without_quotes
from tpudeploy.config.reader import MAX_BYTES
from tpudeploy.config.trust import TRUSTED, Trust
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.cost_budget import CostCeiling
from tpudeploy.domain.errors import ConfigError, Interrupted, TpudeployError, UsageError
from tpudeploy.domain.events import Event, Warned
from tpudeploy.domain.facts import ApiFacts, Facts, Unknown
from tpudeploy.engine.cost_wall import cost_since, current_situation
from tpudeploy.engine.session import holding_lock, states_by_name
from tpudeploy.features.benchmark.offer import Point
from tpudeploy.features.benchmark.report.labels import text_of
from tpudeploy.features.benchmark.run import Cell
from tpudeploy.features.benchmark.store import stored_runs
from tpudeploy.features.campaign import lanes
from tpudeploy.features.campaign.chip_limits import ChipLimits
from tpudeploy.features.campaign.grid import CampaignGrid, parse_grid
from tpudeploy.features.campaign.lane_run import LaneOutcome, LaneReport, LaneRun, LaneTask
from tpudeploy.features.campaign.lanes import CampaignLane, LaneTurn
from tpudeploy.features.campaign.measured import Measured, measured_cells, run_prefix
from tpudeploy.features.campaign.progress import Board, CampaignEvent, CellPlace, CellProgress
from tpudeploy.features.campaign.proposal import CampaignPlan, propose
from tpudeploy.features.campaign.record import CampaignAnswers, CampaignRecord, RecordedServer
from tpudeploy.features.campaign.store import StoredCampaigns
from tpudeploy.loading import Profile
from tpudeploy.ports import Workers
from tpudeploy.text import words
from tpudeploy.version import VERSION
from tpudeploy.workspace import Workspace

_SPENT_EVERY = 30.0  # seconds between two reads of the ledger for the display
_RENEWED_EVERY = 120.0  # seconds; the lock of a run that is silent for a quarter of an hour is taken over


@dataclass(frozen=True, slots=True, kw_only=True)
class CampaignListener:
    """The callbacks of a campaign, from several threads: events of its deployments, and its own progress."""

    on_event: Callable[[Event], None] = lambda _event: None
    on_progress: Callable[[CampaignEvent, Board], None] = lambda _event, _board: None


@dataclass(frozen=True, slots=True, kw_only=True)
class _CampaignRequest:
    """The arguments of `Campaigns.run`."""

    plan: CampaignPlan
    folder: Path
    listener: CampaignListener
    prove: Callable[[], None]  # that the campaign's lock is still this run's
    outer: CostCeiling | None


class Campaigns:
    """Proposes and runs campaigns. Their records and runs are where the states are."""

    def __init__(self, workspace: Workspace) -> None:
        self._workspace = workspace
        self.records = StoredCampaigns(workspace.adapters)

    def grid(self, file: str | Path, folder: Path, trust: Trust = TRUSTED) -> CampaignGrid:
        """Return the grid in a file below `folder`. Raise `errors.UsageError` or `errors.ConfigError`."""
        path = folder / file
        try:
            content = read_file(path, MAX_BYTES)
        except (OSError, ValueError) as cause:
            raise UsageError(f"`{file}` cannot be read: {getattr(cause, 'strerror', None) or cause}.") from cause
        try:
            return parse_grid(str(file), content, os.environ, trust)
        except ConfigError as error:
            raise without_quotes(error, path, self._workspace.adapters.folder) from None

    def propose(
        self,
        grid: CampaignGrid,
        folder: Path,
        *,
        retry: bool = False,
        load: Callable[[Path], Profile] = Profile.load,
    ) -> CampaignPlan:
        """Return what a grid asks for, without what is measured, and without what failed unless `retry`.

        Raise as `proposal.propose`, and `errors.UsageError` for a name that another deployment has, and for a base
        profile that makes other servers than those that were measured.
        """
        record = self.records.read(grid.spec.name)
        names = () if record is None else tuple(record.ends)
        spent = 0.0 if record is None else self.spent(names, record.began_at)
        measured = self.measured(grid.spec.name)
        plan = propose(
            grid,
            (folder / grid.file).parent,
            record=record,
            measured=measured,
            spent=spent,
            quota_of=lambda project, backends: self._quota(names, project, backends),
            retries=retry,
            load=load,
        )
        self._check_names(plan, record)
        if record is not None:
            _check_base(plan, record, measured)
        return plan

    def _quota(self, names: Collection[str], project: str | None, backends: Iterable[Backend]) -> Facts:
        """Return the quota of a project, and what others use of it than the deployments of these names."""
        states = states_by_name(self._workspace.adapters.states, names) if names else {}
        own = {attempt.name for state in states.values() for attempt in state.attempts}
        facts = self._workspace.adapters.survey.quota(project or self._workspace.project_or_none(), backends)

        def without_own(api: ApiFacts) -> ApiFacts:
            if isinstance(api.uses, Unknown):
                return api
            return replace(api, uses=tuple(use for use in api.uses if use.name not in own))

        return replace(facts, apis={backend: without_own(api) for backend, api in facts.apis.items()})

    def _check_names(self, plan: CampaignPlan, record: CampaignRecord | None) -> None:
        """Raise `errors.UsageError` if a lane has the name of a deployment that is not this campaign's: it would delete
        that one at its end.
        """
        others = {lane.name for lane in plan.lanes} - set(() if record is None else record.ends)
        states = states_by_name(self._workspace.adapters.states, others) if others else {}
        own = sorted(name for name, state in states.items() if name in others and state.attempts)
        if own:
            raise UsageError(
                f"{own[0]} is deployed, and not by this campaign, which would change it and delete it at the end.",
                hint="Give the grid another name: those of its deployments begin with it.",
            )

    def measured(self, name: str) -> Measured:
        """Return the cells that a campaign has measured. Raise `errors.RunUnreadable`."""
        return measured_cells(name, stored_runs(self._workspace.adapters).beginning_with(run_prefix(name)))

    def spent(self, deployments: Iterable[str], since: float) -> float:
        """Return what these deployments have cost since then, in USD at list price, by the ledger."""
        adapters = self._workspace.adapters
        return cost_since(adapters.states, deployments, since, adapters.clock.now())

    def run(
        self,
        plan: CampaignPlan,
        folder: Path,
        *,
        listener: CampaignListener | None = None,
        outer: CostCeiling | None = None,
    ) -> CampaignRecord:
        """Run what remains of a campaign, and delete its slices. The `outer` ceiling holds beside its budget.

        Its servers are made of the profile that the plan was made of. An edit of that meanwhile is reported.

        One run at a time has a campaign: raise `errors.StateLocked` if another one has it still after `Patience.lock`.
        What that one measured meanwhile is left out. A failure of one server is recorded, and stops nothing.

        Raise `errors.Interrupted` after `Workspace.stop`: then slices keep running until their ends, and the next run
        continues. Raise the error of a slice that cannot be deleted, once all the others are.
        """
        callbacks, name = listener or CampaignListener(), plan.grid.spec.name
        world = self._workspace.adapters.world(callbacks.on_event)
        # No deployment has such a name.
        with holding_lock(world, f"_campaign-{name}", "campaign", what=f"The campaign {name}") as prove:
            rest = self.propose(plan.grid, folder, retry=plan.retries, load=lambda _path: plan.source)
            record = self.records.read(name)
            own = _new_record(rest, world.clock.now()) if record is None else _continued(record, rest)
            self.records.keep(own, prove)
            request = _CampaignRequest(plan=rest, folder=folder, listener=callbacks, prove=prove, outer=outer)
            return _CampaignRun(self._workspace, self, own, request).finish()


def _new_record(plan: CampaignPlan, now: float) -> CampaignRecord:
    empty = CampaignRecord(name=plan.grid.spec.name, began_at=now, version=VERSION, file=plan.grid.file, grid="")
    return _continued(empty, plan)


def _continued(record: CampaignRecord, plan: CampaignPlan) -> CampaignRecord:
    """Return the record with what the grid says now."""
    return replace(
        record,
        version=VERSION,
        file=plan.grid.file,
        grid=plan.grid.text,
        base=plan.base,
        profile=plan.profile,
        budget=plan.grid.spec.budget,
        servers=recorded_servers(plan),
        obstacles={each.label: each.why for each in plan.obstacles},
        failures={} if plan.retries else record.failures,
        ended_at=None,
    )


def _check_base(plan: CampaignPlan, record: CampaignRecord, measured: Measured) -> None:
    """Raise `errors.UsageError` if the base profile makes other servers now than those whose cells are measured."""
    counts = Counter({key: len(cells) for (key, _repeat), cells in measured.items()})
    own = {server.key for server in plan.servers}
    values = [dict(server.values) for server in recorded_servers(plan)]
    former = [each for each in record.servers if each.key not in own and dict(each.values) in values]
    cells = sum(counts[server.key] for server in former)
    if not cells:
        return
    why = f"{plan.base} was edited"
    if plan.profile == record.profile:
        why = f"{plan.base} has another meaning, by a file that it extends or by tpudeploy {VERSION},"
    raise UsageError(
        f"{why} since {record.name} began, and {words.plural(cells, 'cell')} of it were measured before.",
        hint="Undo that to continue the campaign. For one of the profile as it is now, give the grid another name.",
    )


def recorded_servers(plan: CampaignPlan) -> tuple[RecordedServer, ...]:
    """Return the servers of a plan as its record has them."""
    return tuple(
        RecordedServer(
            key=server.key,
            label=server.label,
            values={path: text_of(value) for path, value in server.values.items()},
            lane=server.lane,
            model=server.model,
            type=server.type,
            points=server.points,
            repeats=plan.grid.spec.cells.repeats,
        )
        for server in plan.servers
    )


class _CampaignRun:
    """One run of a campaign: its lanes in threads, as many as chips and budget allow, and the record of all of them."""

    def __init__(
        self, workspace: Workspace, campaigns: Campaigns, record: CampaignRecord, request: _CampaignRequest
    ) -> None:
        plan = request.plan
        self._workspace = workspace
        self._campaigns = campaigns
        self._record = record
        self._plan = plan
        self._folder = request.folder
        self._listener = request.listener
        self._renew = request.prove
        self._outer = request.outer
        self._clock = workspace.adapters.clock
        self._deadline = self._clock.now() + float(plan.grid.spec.end)
        self._lock, self._proof_lock = RLock(), Lock()
        self._board = _board(plan, campaigns.measured(record.name), record)
        self._spent = (-_SPENT_EVERY, 0.0)
        self._names = frozenset((*record.ends, *(lane.name for lane in plan.lanes)))
        self._has_warned = False

    def finish(self) -> CampaignRecord:
        """Run all lanes, and delete what is left of each."""
        busy = list(self._plan.busy_lanes)
        idle = [name for name in self._record.ends if name not in {lane.name for lane in busy}]
        pool = ThreadPoolExecutor(max_workers=max(1, len(busy) + len(idle)))
        try:
            with self._clock.workers() as workers:
                threads = _LaneThreads(pool, workers)
                for name in idle:
                    threads.start(self._lane_run(None, name, None), None)
                waiting = self._run_lanes(busy, threads)
        except KeyboardInterrupt:
            pool.shutdown(wait=False, cancel_futures=True)
            raise
        except BaseException:
            # The other lanes end by themselves: their waits are over, and none begins anything more.
            self._clock.stop()
            pool.shutdown(cancel_futures=True)
            raise
        pool.shutdown()
        for lane in waiting:
            self._leave(lane, "the budget has no room for its slice")
        if threads.problems:
            raise threads.problems[0]
        return self._end()

    def _run_lanes(self, waiting: list[CampaignLane], threads: _LaneThreads) -> list[CampaignLane]:
        """Run lanes until none is left, or none can start. Return those."""
        while waiting or threads.running:
            for each in self._next(waiting, threads.lanes) if waiting else ():
                lane = next(lane for lane in waiting if lane.name == each.name)
                waiting.remove(lane)
                threads.start(self._lane_run(lane, lane.name, each.end_minutes), lane)
            if not threads.running:
                break
            over = threads.wait(_RENEWED_EVERY)
            self._proof()
            self._warn_of_edits()
            for lane, outcome in over:
                if outcome.waits and threads.running:
                    waiting.append(self._remaining(lane))
                elif outcome.why:
                    self._leave(lane, outcome.why)
        return waiting

    def _proof(self) -> None:
        """Renew the lock of the campaign, for one thread at a time. Raise `errors.StateConflict` if it is lost."""
        with self._proof_lock:
            self._renew()

    def _warn_of_edits(self) -> None:
        """Say once that the base profile was edited, which changes nothing here."""
        edited = () if self._has_warned else self._plan.source.edited_files()
        if edited:
            self._has_warned = True
            names = ", ".join(Path(path).name for path in edited)
            message = f"{names} was edited. This campaign continues with the profile as it was when it was planned."
            hint = "Give the grid another name to measure the edited profile, or undo the edit before you continue."
            now = self._clock.now()
            self._listener.on_event(Warned(at=now, address=self._record.name, message=message, hint=hint))

    def _end(self) -> CampaignRecord:
        usd = self._campaigns.spent(self._names, self._record.began_at)
        is_whole = not self._board.count(CellProgress.LEFT, CellProgress.WAITING)
        ended_at = self._clock.now() if is_whole else None
        return self._keep(lambda record: replace(record, usd=usd, ended_at=ended_at))

    def _next(self, waiting: list[CampaignLane], running: list[CampaignLane]) -> tuple[lanes.LaneStart, ...]:
        return lanes.next_lanes(
            waiting,
            self._plan.times,
            running=running,
            limits=self._plan.limits,
            usd_free=self._usd_free(but_of=""),
            seconds_left=self._deadline - self._clock.now(),
        )

    def _usd_free(self, *, but_of: str) -> float | None:
        """Return what the budget has left beside what is alive in other lanes, or None without a budget."""
        budget = self._plan.grid.spec.budget
        if budget is None:
            return None
        everything = current_situation(self._workspace.adapters.states, self._clock.now(), self._names)
        others, since = everything.part(lambda name, _project: name != but_of), self._record.began_at
        return budget - everything.spent(since, inf) - others.alive(since, inf)

    def _lane_run(self, lane: CampaignLane | None, name: str, end_minutes: int | None) -> LaneRun:
        """Return the run of a lane, or of one that has only a slice to delete. Its first slice has this end."""
        spec = self._plan.grid.spec
        first = [end_minutes]

        def end(turns: tuple[LaneTurn, ...]) -> int | None:
            minutes = first.pop() if first else None
            return minutes if minutes is not None or lane is None else self._end_minutes(replace(lane, turns=turns))

        ceiling = self._outer
        if spec.budget is not None:
            since = self._record.began_at
            ceiling = CostCeiling(usd=spec.budget, since=since, deployments=self._names, outer=self._outer)
        task = LaneTask(
            campaign=self._record.name,
            name=name,
            turns=() if lane is None else lane.turns,
            window_seconds=self._plan.times.window,
            is_whole_window=self._plan.times.is_whole,
            accuracy=spec.accuracy,
            folder=(self._folder / self._plan.grid.file).parent,
            deadline=self._deadline,
            ceiling=ceiling,
            end=end,
            prove=self._proof,
        )
        report = LaneReport(
            on_event=self._listener.on_event,
            on_turn=self._turn,
            on_point=lambda turn, point: self._tell(turn, CellProgress.MEASURING, point=point),
            on_cell=self._cell,
            on_failure=self._failure,
            on_end=self._slice_end,
            on_answers=self._answers,
        )
        profiles = self._plan.profiles.__getitem__
        return LaneRun(self._workspace, task, profiles, self._record.ends.get(name), report)

    def _end_minutes(self, lane: CampaignLane) -> int | None:
        """Return the end of another slice of a lane, or None if the budget has no room for it."""
        starts = lanes.next_lanes(
            [lane],
            self._plan.times,
            running=(),
            limits=ChipLimits(),
            usd_free=self._usd_free(but_of=lane.name),
            seconds_left=self._deadline - self._clock.now(),
        )
        return starts[0].end_minutes if starts else None

    def _remaining(self, lane: CampaignLane) -> CampaignLane:
        """Return a lane with the turns that are neither measured nor failed."""
        open_states = {CellProgress.WAITING, CellProgress.STARTING, CellProgress.MEASURING}

        def points(turn: LaneTurn) -> tuple[Point, ...]:
            places = ((turn.server.key, point, turn.repeat) for point in turn.points)
            return tuple(place[1] for place in places if self._board.states.get(place) in open_states)

        turns = (replace(turn, points=points(turn)) for turn in lane.turns)
        return replace(lane, turns=tuple(turn for turn in turns if turn.points))

    def _turn(self, turn: LaneTurn, state: CellProgress, text: str) -> None:
        self._tell(turn, state, text=text)

    def _cell(self, turn: LaneTurn, cell: Cell) -> None:
        state = CellProgress.DOUBTED
        if cell.is_trusted:
            state = CellProgress.MEASURED
        elif cell.status == "failed":
            state = CellProgress.FAILED
        reason = "; ".join(cell.reasons[:1])
        self._tell(turn, state, point=cell.point, text=reason, rate=cell.requests_per_second)

    def _failure(self, turn: LaneTurn, why: str) -> None:
        self._keep(lambda record: replace(record, failures={**record.failures, turn.server.key: why}))
        self._tell(turn, CellProgress.FAILED, text=why)

    def _answers(self, turn: LaneTurn, answers: CampaignAnswers) -> None:
        self._keep(lambda record: replace(record, answers={**record.answers, turn.server.key: answers}))

    def _slice_end(self, lane: str, end: str) -> None:
        self._keep(lambda record: replace(record, ends={**record.ends, lane: end}))

    def _leave(self, lane: CampaignLane, why: str) -> None:
        for turn in self._remaining(lane).turns:
            self._tell(turn, CellProgress.LEFT, text=why)

    def _keep(self, change: Callable[[CampaignRecord], CampaignRecord]) -> CampaignRecord:
        with self._lock:
            self._record = self._campaigns.records.keep(change(self._record), self._proof)
            return self._record

    def _tell(
        self,
        turn: LaneTurn,
        state: CellProgress,
        *,
        point: Point | None = None,
        text: str = "",
        rate: float | None = None,
    ) -> None:
        """Take a change over into the board, and pass it on. Without a point, it is about all open cells of a turn."""
        ended = {CellProgress.MEASURED, CellProgress.DOUBTED, CellProgress.FAILED}
        with self._lock:
            points = turn.points if point is None else (point,)
            places: list[CellPlace] = [(turn.server.key, each, turn.repeat) for each in points]
            states, rates = dict(self._board.states), dict(self._board.rates)
            for place in places:
                if point is not None or states.get(place) not in ended:
                    states[place] = state
                if point is not None:
                    rates[place] = rate
            if state is CellProgress.FAILED and point is None:
                others = [place for place in states if place[0] == turn.server.key and states[place] not in ended]
                states.update(dict.fromkeys(others, state))
            self._board = Board(states=states, rates=rates)
            event = CampaignEvent(
                at=self._clock.now(),
                lane=turn.server.lane,
                label=turn.server.label,
                repeat=turn.repeat,
                state=state,
                point=point,
                text=text,
                requests_per_second=rate,
                spent=self._spent_lately(),
                ended=self._board.count(*ended),
                total=len(states),
                seconds_left=self._seconds_left(),
            )
            self._listener.on_progress(event, self._board)

    def _spent_lately(self) -> float:
        at, spent = self._spent
        now = self._clock.now()
        if now - at >= _SPENT_EVERY:
            spent = self._campaigns.spent(self._names, self._record.began_at)
            self._spent = (now, spent)
        return spent

    def _seconds_left(self) -> float:
        remaining = [self._remaining(lane) for lane in self._plan.busy_lanes]
        return lanes.makespan([lane for lane in remaining if lane.turns], self._plan.times, self._plan.limits)


class _LaneThreads:
    """The threads of lanes. `problems` are the errors of slices that cannot be deleted."""

    def __init__(self, pool: ThreadPoolExecutor, workers: Workers) -> None:
        self._pool = pool
        self._workers = workers
        self.running: dict[Future[LaneOutcome], CampaignLane | None] = {}
        self.problems: list[TpudeployError] = []

    @property
    def lanes(self) -> list[CampaignLane]:
        return [lane for lane in self.running.values() if lane is not None]

    def start(self, run: LaneRun, lane: CampaignLane | None) -> None:
        """Start the run of a lane, or the deletion of a slice that has none."""
        self._workers.start()
        future = self._pool.submit(copy_context().run, run.run)
        self.running[future] = lane
        future.add_done_callback(lambda _: self._workers.finish())

    def wait(self, seconds: float) -> list[tuple[CampaignLane, LaneOutcome]]:
        """Wait until a lane is over, or so long. Return those that are, with outcomes. Raise `errors.Interrupted`."""
        self._workers.wait(seconds, lambda: any(future.done() for future in self.running))
        over = [(self.running.pop(future), future) for future in tuple(self.running) if future.done()]
        outcomes = [(lane, self._outcome(future)) for lane, future in over]
        return [(lane, outcome) for lane, outcome in outcomes if lane is not None]

    def _outcome(self, future: Future[LaneOutcome]) -> LaneOutcome:
        try:
            return future.result()
        except Interrupted:
            raise
        except TpudeployError as error:
            self.problems.append(error)
            return LaneOutcome()


def _board(plan: CampaignPlan, measured: Measured, record: CampaignRecord) -> Board:
    """Return the board at the beginning of a run."""
    states: dict[CellPlace, CellProgress] = {}
    rates: dict[CellPlace, float | None] = {}
    for turn in plan.turns:
        cells = measured.get((turn.server.key, turn.repeat), {})
        for point in turn.points:
            place = (turn.server.key, point, turn.repeat)
            states[place] = CellProgress.FAILED if turn.server.key in record.failures else CellProgress.WAITING
            if point in cells:
                cell = cells[point].cell
                states[place] = CellProgress.MEASURED if cell.is_trusted else CellProgress.DOUBTED
                rates[place] = cell.requests_per_second
    return Board(states=states, rates=rates)
