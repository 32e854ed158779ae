"""Hold each request against the budgets: of its deployment, of a team, and of the run. A request beyond is not sent.

The limits are checked when a request is decided, and once more between the lock and the save of its intent. The lock of
a deployment suffices for its own budget. A budget of several deployments has a lock of its own, which is held while the
intent is saved, so that no two runs can spend the same dollar.

Why: decision 88 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import replace
from math import inf

from tpudeploy.config.budgets import parse_budgets
from tpudeploy.domain.cost_budget import CostCeiling, TeamBudgets
from tpudeploy.domain.deployment import Candidate, Deployment
from tpudeploy.domain.diagnostics import Diagnostic, Severity
from tpudeploy.domain.errors import BudgetExceeded, CloudError, StateUnreadable, TpudeployError
from tpudeploy.domain.names import address
from tpudeploy.domain.plan import Action, Change, Goal
from tpudeploy.domain.state import Attempt, Boot, State
from tpudeploy.engine.session import holding_budgets, states_by_name
from tpudeploy.ports import StateBackend, World
from tpudeploy.reconcile.cost_wall import (
    UNREADABLE_HINT,
    BudgetUse,
    Shortfall,
    budget_uses,
    month_use,
    shortfall,
    unreadable,
)
from tpudeploy.reconcile.spend import CostSituation, Exposure, account, exposures, situation

_LIFECYCLE = "lifecycle."


class CostWall:
    """The limits of one run."""

    def __init__(
        self, world: World, ceiling: CostCeiling | None = None, planned: Mapping[str, State] | None = None
    ) -> None:
        """For a plan, `planned` are the states of the deployments before it, each with what it would request."""
        self._world = world
        self._ceiling = ceiling
        self._planned = planned

    def opened(self, deployment: Deployment, state: State) -> CostCheck | None:
        """Return a check of requests beside what the state has, or None if no limit holds for this deployment.

        Raise `errors.ConfigError` for budgets.yaml that cannot be used, `errors.StateError` for what is not readable.
        """
        team = _team_budgets(self._world.cost_backend)
        if team is None and self._ceiling is None and deployment.cost_budget is None:
            return None
        return CostCheck(self._world, deployment, state, team, self._ceiling, planned=self._planned)

    def is_shared(self) -> bool:
        """Return whether a limit counts what several deployments cost. Raise as `opened`."""
        return _is_shared(_team_budgets(self._world.cost_backend), self._ceiling)

    @contextmanager
    def admitting(
        self, deployment: Deployment | None, state: State, replica: int, candidate: Candidate
    ) -> Iterator[Callable[[], None]]:
        """Hold what several deployments share while an intent is saved. Call the function after the save.

        It raises `errors.StateConflict` if the lock was lost meanwhile. Raise `NotAdmitted` if the request is no longer
        within the limits, because another run has requested something since it was decided.
        """
        if deployment is None or not self.is_shared():
            yield lambda: None
            return
        with holding_budgets(self._world, deployment.name) as prove:
            check = self.opened(deployment, state)
            if check is not None and check.admit(replica, candidate) is not None:
                raise NotAdmitted
            yield prove

    @contextmanager
    def prolonging(self, deployment: Deployment | None, state: State, replica: int, name: str) -> Iterator[None]:
        """Hold what several deployments share while a slice is given its later end. Raise as `admitting` does."""
        if deployment is None or not self.is_shared():
            yield
            return
        with holding_budgets(self._world, deployment.name):
            check = self.opened(deployment, state)
            if check is not None and check.prolong(replica, name) is not None:
                raise NotAdmitted
            yield


class NotAdmitted(Exception):
    """A request or a later end was decided, and by now it is beyond a limit."""


class CostCheck:
    """Requests of one deployment beside everything else, one by one: each that is admitted counts for the next."""

    def __init__(
        self,
        world: World,
        deployment: Deployment,
        state: State,
        team: TeamBudgets | None,
        ceiling: CostCeiling | None,
        *,
        planned: Mapping[str, State] | None,
    ) -> None:
        self._deployment = deployment
        self._state = state
        self._team = team
        self._ceiling = ceiling
        self._now = world.clock.now()
        is_shared = _is_shared(team, ceiling)
        backend = world.cost_backend
        # Where another backend has the accounts, a deployment of this name there is another one.
        own_name = state.deployment if backend is world.state else None
        names = [name for name in backend.names() if name != own_name] if is_shared else []
        others = states_by_name(backend, names) if names else {}
        ledger = backend.ledger()
        self._unreadable_lines = ledger.unreadable_lines
        self._account = account(ledger, (state, *others.values()), self._now)
        self._requested: frozenset[str] | None = None
        if planned is not None:
            tracked = (state, *others.values())
            self._requested = frozenset(attempt.name for each in tracked for attempt in each.attempts)
            others |= {name: each for name, each in planned.items() if is_shared and name != state.deployment}
        self._others = tuple(others.values())

    @property
    def state(self) -> State:
        """The state with each request that was admitted."""
        return self._state

    def admit(self, replica: int, candidate: Candidate) -> Shortfall | None:
        """Return the limit that a request there would pass, or None: then it counts from now on."""
        target = self._deployment.of_replica(replica)
        if target is None:
            raise TypeError("an ended deployment requests nothing")
        name = str(self._state.slice_name(replica))
        attempt = Attempt(
            name=name,
            project=target.project or "",
            zone=candidate.zone,
            provisioning=candidate.provisioning,
            spec=target.attributes_at(candidate.backend),
            asked_at=self._now,
            expires_at=self._now + target.valid_until_seconds,
            boot=Boot(server=""),
        )
        state = self._state.with_record(self._state.record(replica).with_attempt(attempt))
        short = self._shortfall(state, name)
        if short is None:
            self._state = replace(state, next_attempt=state.next_attempt + 1)
        return short

    def prolong(self, replica: int, name: str) -> Shortfall | None:
        """Return the limit that a slice would pass with its later end, or None: then that end counts from now on.

        An end that is no later passes no limit, whatever it costs until then.
        """
        target, attempt = self._deployment.of_replica(replica), self._state.record(replica).attempt(name)
        if target is None or attempt is None:
            return None
        others = {path: value for path, value in attempt.spec.items() if not path.startswith(_LIFECYCLE)}
        attributes = target.attributes_at(attempt.backend)
        ends = {path: value for path, value in attributes.items() if path.startswith(_LIFECYCLE)}
        record = self._state.record(replica).with_attempt(replace(attempt, spec={**others, **ends}))
        before, state = self._state, self._state.with_record(record)
        current, later = (_exposure_of(each, name, self._now) for each in (before, state))
        short = None
        if later.until > current.until or later.seconds > current.seconds:
            short = self._shortfall(state, name)
        if short is None:
            self._state = state
        return short

    def _shortfall(self, state: State, name: str) -> Shortfall | None:
        """Return the limit that this request of a state would pass beside everything else, or None."""
        request = _exposure_of(state, name, self._now)
        everything = situation(self._account, (state, *self._others), self._now)
        beside = replace(
            everything,
            exposures=[self._marked(each) for each in everything.exposures if each.name != name],
            unreadable_lines=self._unreadable_lines,
        )
        return shortfall(beside, request, own=self._deployment.cost_budget, team=self._team, ceiling=self._ceiling)

    def _marked(self, alive: Exposure) -> Exposure:
        """Return the exposure, marked as planned if nothing was requested for it."""
        is_planned = self._requested is not None and not alive.is_untracked and alive.name not in self._requested
        return replace(alive, is_planned=is_planned)


def _exposure_of(state: State, name: str, now: float) -> Exposure:
    return next(each for each in exposures(state, now) if each.name == name)


def _team_budgets(backend: StateBackend) -> TeamBudgets | None:
    file = backend.budgets()
    return None if file is None else parse_budgets(*file)


def _is_shared(team: TeamBudgets | None, ceiling: CostCeiling | None) -> bool:
    ceilings = () if ceiling is None else ceiling.all
    # Another deployment may come under an outer ceiling at any time.
    return team is not None or len(ceilings) > 1 or any(len(each.deployments) > 1 for each in ceilings)


def budgets_now(
    backend: StateBackend, deployments: Iterable[Deployment], now: float, *, else_month: bool = False
) -> tuple[BudgetUse, ...]:
    """Return the use of each budget of these deployments and of their team.

    Without budgets, return nothing, or with `else_month` the cost of these deployments in this month.

    Raise as `CostWall.opened` does.
    """
    team, some = _team_budgets(backend), tuple(deployments)
    own = {each.name: each.cost_budget for each in some if each.cost_budget is not None}
    is_limited = team is not None or bool(own)
    if not is_limited and not else_month:
        return ()
    everything = current_situation(backend, now)
    if not is_limited:
        return tuple(month_use(everything, {each.name for each in some}))
    return tuple(budget_uses(everything, own, team))


def current_situation(backend: StateBackend, now: float, names: Iterable[str] = ()) -> CostSituation:
    """Return everything that was billed or may be; with names, only of these deployments. Raise as `backend`."""
    own_names = frozenset(names)
    states, ledger = tuple(states_by_name(backend, own_names).values()), backend.ledger()
    everything = situation(account(ledger, states, now), states, now)
    everything = replace(everything, unreadable_lines=ledger.unreadable_lines)
    return everything.part(lambda name, _project: name in own_names) if own_names else everything


def cost_since(backend: StateBackend, names: Iterable[str], since: float, now: float) -> float:
    """Return what these deployments have cost since then, in USD at list price, by the ledger."""
    own_names = tuple(names)
    return current_situation(backend, now, own_names).spent(since, inf) if own_names else 0.0


def ledger_warnings(world: World) -> Iterator[Diagnostic]:
    """Yield a warning if a part of the ledger cannot be read."""
    try:
        lines = world.cost_backend.ledger().unreadable_lines
    except (StateUnreadable, CloudError) as error:
        yield _warning(error)
        return
    if lines:
        yield _warning(StateUnreadable(f"{unreadable(lines)}.", hint=UNREADABLE_HINT))


def planned_shortfalls(world: World, goals: Iterable[Goal]) -> Iterator[Diagnostic]:
    """Yield a warning for each slice of a plan that would not be requested, or given a later end, under a budget.

    Deployments are counted in the order in which `apply` begins them: what one requests, the next has less of a budget
    for. Raise as `CostWall.opened` does.
    """
    planned: dict[str, State] = {}
    wall = CostWall(world, planned=planned)
    for goal in goals:
        new_replicas = [change.replica for change in goal.changes if _requests(goal, change)]
        updates = [change.replica for change in goal.changes if change.action in {Action.UPDATE, Action.RESTART}]
        if goal.deployment is None or not (new_replicas or updates):
            continue
        state = world.state.read(goal.name).state or State(deployment=goal.name, lineage="")
        check = wall.opened(goal.deployment, state)
        if check is None:
            continue
        yield from map(_warning, _planned_errors(check, goal, new_replicas, updates))
        planned[goal.name] = check.state


def _planned_errors(
    check: CostCheck, goal: Goal, new_replicas: Iterable[int], updates: Iterable[int]
) -> Iterator[BudgetExceeded]:
    places = () if goal.deployment is None else goal.deployment.candidates
    for replica in new_replicas:
        short = _least_shortfall(check, replica, places)
        if short is not None:
            yield over_budget(goal.name, replica, short, outcome="would not be requested")
    for replica in updates:
        for attempt in check.state.record(replica).attempts:
            short = check.prolong(replica, attempt.name)
            if short is not None:
                yield later_end_over_budget(goal.name, replica, short)


def _warning(error: TpudeployError) -> Diagnostic:
    return Diagnostic(code=error.code, message=error.message, severity=Severity.WARNING, hint=error.hint)


def _requests(goal: Goal, change: Change) -> bool:
    """Return whether a change requests a slice beside what runs. One that deletes first waits for room."""
    is_beside = goal.deployment is not None and goal.deployment.lifecycle.create_before_destroy
    return change.action is Action.CREATE or (change.action is Action.REPLACE and is_beside)


def _least_shortfall(check: CostCheck, replica: int, candidates: Iterable[Candidate]) -> Shortfall | None:
    """Return the shortfall of the cheapest place, or None if one place is admitted: it then counts for the next."""
    least: Shortfall | None = None
    for candidate in candidates:
        short = check.admit(replica, candidate)
        if short is None:
            return None
        least = short if least is None or short.request < least.request else least
    return least


def over_budget(name: str, replica: int, short: Shortfall, *, outcome: str = "is not requested") -> BudgetExceeded:
    """Return the error of a request that was not sent."""
    return BudgetExceeded(
        f"{address(name, replica)} {outcome}, because it could exceed a budget: {short.arithmetic}.",
        hint=UNREADABLE_HINT
        if short.unreadable_lines
        else "What runs is untouched. `tpudeploy cost` shows what was spent. An earlier lifecycle.end, a cheaper place"
        f" or a higher {short.period.key} makes room.",
    )


def later_end_over_budget(name: str, replica: int, short: Shortfall) -> BudgetExceeded:
    """Return the error of a change that was not made, because it gives a slice a later end."""
    return BudgetExceeded(
        f"{address(name, replica)} keeps its end, because a later one could exceed a budget: {short.arithmetic}.",
        hint=UNREADABLE_HINT
        if short.unreadable_lines
        else f"Nothing of it was changed. An earlier lifecycle.end or a higher {short.period.key} makes room.",
    )
