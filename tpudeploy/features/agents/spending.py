"""Keep in a server's memory what its runs have requested, so that its ceiling and its first budgets hold.

An agent may write the project's files: the states, the ledger and the budgets. None of them makes the sum smaller.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import replace
from math import inf
from threading import Lock
from typing import Any, cast

from tpudeploy.domain.errors import BudgetExceeded
from tpudeploy.domain.ledger import Ledger, LedgerFact, MachineEnd
from tpudeploy.domain.state import State
from tpudeploy.ports import Clock, Snapshot, StateBackend
from tpudeploy.reconcile.spend import exposures, interval

_ROUNDING = 1e-6
_HOUR = 3600.0
_Slice = tuple[str, str, str, str]  # deployment, project, zone, name


class ServerSpending:
    """The most that each slice costs which a server's runs requested, or gave a later end. Threads may share it."""

    def __init__(self, limit: float | None, clock: Clock) -> None:
        """`limit` is in USD; None: a person approves each purchase."""
        self._limit = limit
        self._clock = clock
        self._began = clock.now()
        self._lock = Lock()
        self._most: dict[_Slice, float] = {}
        self._promises: dict[str, float] = {}
        self._facts: list[LedgerFact] = []
        self._last_states: dict[str, State] = {}

    @property
    def facts(self) -> tuple[LedgerFact, ...]:
        """Return what the runs have entered into the ledger."""
        with self._lock:
            return tuple(self._facts)

    def promise(self, most: Mapping[str, float]) -> None:
        """Count deployments with the most that each may cost until its end, whichever run requests its slices."""
        with self._lock:
            self._promises |= most

    def usd(self, *, beside: Collection[str] = ()) -> float:
        """Return the most that everything costs, without the deployments of these names."""
        with self._lock:
            return self._sum(self._most, beside)

    def guard(
        self, states: StateBackend, budgets: tuple[str, bytes] | None, *, is_limited: bool = True
    ) -> StateBackend:
        """Return states that count what is written. `budgets` are those that hold, None for the present ones.

        A run that is not `is_limited` was approved by a person, whatever it costs.
        """
        return cast("StateBackend", _GuardedStates(states, self, budgets, is_limited=is_limited))

    def note_state(self, state: State, previous: State | None, *, is_limited: bool) -> None:
        """Count the slices of a state before it is written over `previous`.

        Raise `errors.BudgetExceeded` for a new request beyond the limit. Everything else is written, such as deletions.
        """
        now, name = self._clock.now(), state.deployment
        with self._lock:
            is_own = previous is not None and previous == self._last_states.get(name)
            most = {**self._most, **self._most_of(state, previous, now)}
            # This run read what another process wrote. That may not be so, and makes no slice cheaper.
            if not is_own:
                most = {key: max(usd, self._most.get(key, 0.0)) for key, usd in most.items()}
            total = self._sum(most)
            is_request = bool(most.keys() - self._most.keys())
            if is_limited and is_request and self._limit is not None and total > self._limit + _ROUNDING:
                raise BudgetExceeded(
                    f"{name} gets no other slice, because all that this server requested could cost ${total:.2f} then, "
                    f"and its -max-cost is ${self._limit:.2f}.",
                    hint="The server counts what it requested, whatever the files of the project say. Let the person "
                    "start it with a higher --max-cost.",
                )
            self._most = most
            self._last_states[name] = state

    def note_fact(self, fact: LedgerFact) -> None:
        """Count a slice that is proven to be gone with what it cost."""
        request = fact.request
        with self._lock:
            self._facts.append(fact)
            key = (request.deployment, request.project, request.zone, request.name)
            if not isinstance(fact, MachineEnd) or key not in self._most:
                return
            facts = (each for each in self._facts if each.request.name == request.name)
            own = [
                each for each in facts if (each.request.project, each.request.zone) == (request.project, request.zone)
            ]
            billed = interval(own, self._clock.now())
            usd = 0.0 if billed is None else billed.most_usd(0.0, inf)
            if usd < inf:
                self._most[key] = usd

    def _most_of(self, state: State, previous: State | None, now: float) -> Mapping[_Slice, float]:
        """Return the most that each slice costs if it was requested since the server began, or ends later now."""
        ends = {} if previous is None else {each.name: each.until for each in exposures(previous, now)}
        attempts = {attempt.name: attempt for attempt in state.attempts}
        most: dict[_Slice, float] = {}
        for each in exposures(state, now):
            attempt = attempts[each.name]
            key = (state.deployment, each.project, attempt.zone, each.name)
            if (
                attempt.asked_at < self._began
                and each.until <= ends.get(each.name, each.until)
                and key not in self._most
            ):
                continue  # a person requested it, and it ends no later
            hours = 0.0 if attempt.granted_at is None else max(0.0, now - attempt.granted_at) / _HOUR
            most[key] = each.usd(0.0, inf) + hours * (each.usd_per_hour or 0.0)
        return most

    def _sum(self, most: Mapping[_Slice, float], beside: Collection[str] = ()) -> float:
        by_name: dict[str, float] = {}
        for (name, *_), usd in most.items():
            by_name[name] = by_name.get(name, 0.0) + usd
        names = (by_name.keys() | self._promises.keys()) - set(beside)
        return sum(max(by_name.get(name, 0.0), self._promises.get(name, 0.0)) for name in names)


class _GuardedStates:
    """The states of a project, each write of which a server counts. Everything else is as it is there."""

    def __init__(
        self, states: StateBackend, spending: ServerSpending, budgets: tuple[str, bytes] | None, *, is_limited: bool
    ) -> None:
        self._states = states
        self._spending = spending
        self._budgets = budgets
        self._is_limited = is_limited
        self._previous: dict[str, State | None] = {}

    def __getattr__(self, name: str) -> Any:
        return getattr(self._states, name)

    def read(self, name: str) -> Snapshot:
        snapshot = self._states.read(name)
        self._previous[name] = snapshot.state
        return snapshot

    def write(self, name: str, state: State, *, over: str) -> str:
        self._spending.note_state(state, self._previous.get(name), is_limited=self._is_limited)
        version = self._states.write(name, state, over=over)
        self._previous[name] = state
        return version

    def enter(self, fact: LedgerFact) -> None:
        self._spending.note_fact(fact)
        self._states.enter(fact)

    def ledger(self) -> Ledger:
        ledger = self._states.ledger()
        keys = {(fact.request.name, type(fact), fact.at) for fact in ledger.facts}
        own = self._spending.facts
        others = [fact for fact in own if (fact.request.name, type(fact), fact.at) not in keys]
        return replace(ledger, facts=(*ledger.facts, *others))

    def budgets(self) -> tuple[str, bytes] | None:
        return self._budgets or self._states.budgets()
