"""The VM of a router during a run: its steps, and the list of replicas that it sends requests to.

The list is a value of the VM's metadata. The VM loads it without dropping a stream, and reports its fingerprint.

Why: decision 75 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace
from math import inf

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.names import ROUTER
from tpudeploy.domain.plan import Goal
from tpudeploy.domain.router import RoutedReplica
from tpudeploy.domain.slices import NodeUpdate, Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.step import Done, Step, Wait
from tpudeploy.engine.session import StateSession
from tpudeploy.node.fingerprint import text_print
from tpudeploy.node.router_machine import LIST_KEY, list_text, machine_near, router_on
from tpudeploy.ports import World
from tpudeploy.reconcile.attempt_status import DecisionContext
from tpudeploy.reconcile.decide import decide, remove
from tpudeploy.reconcile.readiness import leaving_slices, ready_slices


class RouterMachine:
    """The VM of one deployment's router, and while it is replaced also the VM that replaces it."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._urls: dict[str, str] = {}  # of each slice on the list
        self._sent: dict[str, tuple[str, float]] = {}  # to each VM: the list, and when
        self._replicas_ready_at: float | None = None

    def decide(
        self, goal: Goal, state: State, context: DecisionContext, replica_steps: Collection[Step]
    ) -> tuple[Step, ...]:
        """Return the steps of the VM, after those of the replicas in the same observation."""
        deployment, observed = goal.deployment, context.observed
        leaving = leaving_slices(replica_steps)
        ready = ready_slices(state, observed, leaving)
        context = replace(context, scores={}, others_serve=bool(ready))
        vm = None if deployment is None else deployment.of_replica(ROUTER)
        if vm is None:
            return self._remove(goal, state, context)
        if not state.router.attempts and not any(attempt.holds_slice for attempt in state.slice_attempts):
            # A hunt may take days, and a router without replicas would be billed meanwhile.
            return (Wait(replica=ROUTER, why="until a replica starts", is_for_replicas=True),)
        machine = machine_near(vm, state)
        machine = self._with_start_time(machine, state, observed, has_replicas=bool(ready))
        steps = decide(machine, state.router, context)
        has_reports = any(attempt.name in observed.reports for attempt in state.router.attempts)
        if has_reports and not self._are_loaded(state, observed, leaving):
            # It serves, with an earlier list.
            why = "the router has not loaded the list of replicas yet"
            return tuple(Wait(replica=ROUTER, why=why) if isinstance(step, Done) else step for step in steps)
        return steps

    def _remove(self, goal: Goal, state: State, context: DecisionContext) -> tuple[Step, ...]:
        """Return the steps towards no VM: with the whole deployment it goes after the replicas that it serves."""
        replicas = [record for record in state.records if goal.covers(record.index)]
        if goal.is_removal and any(a.release is None for record in replicas for a in record.attempts):
            return (Wait(replica=ROUTER, why="until no replica serves", is_for_replicas=True),)
        return remove(state.router, context)

    def _with_start_time(
        self, machine: Deployment, state: State, observed: Observed, *, has_replicas: bool
    ) -> Deployment:
        """Return the VM with a time limit that begins once a replica takes requests: before, no completion can pass."""
        if not has_replicas:
            self._replicas_ready_at = None
        elif self._replicas_ready_at is None:
            self._replicas_ready_at = observed.at
        since = inf if self._replicas_ready_at is None else self._replicas_ready_at
        granted_at = min((a.granted_at for a in state.router.attempts if a.granted_at is not None), default=since)
        waited = 0.0 if since == granted_at else max(0.0, since - granted_at)
        health = machine.health
        return replace(machine, health=replace(health, timeout_seconds=health.timeout_seconds + waited))

    def send_list(self, session: StateSession, observed: Observed, leaving: Collection[str]) -> None:
        """Give each VM the list without the slices that are `leaving`. Raise `errors.Fault` or `errors.Denied`."""
        for attempt, slice_ in _machines_up(session.state, observed):
            text = self._text(attempt, session.state, observed, leaving)
            if text is None or slice_.metadata.get(LIST_KEY) == text or self._was_sent_recently(attempt.name, text):
                continue
            node = NodeUpdate(
                metadata={**slice_.metadata, LIST_KEY: text}, labels=slice_.labels, tags=slice_.tags or ()
            )
            with session.asking():
                self._world.cloud.update(attempt.ref, node)
            self._sent[attempt.name] = (text, self._world.clock.now())

    def _are_loaded(self, state: State, observed: Observed, leaving: Collection[str] = ()) -> bool:
        """Return whether each VM that clients may use has loaded the list without the slices that are `leaving`.

        A VM that does not report cannot say so, and counts as one that has not.
        """
        return all(
            self._is_loaded(attempt, self._text(attempt, state, observed, leaving), observed)
            for attempt, _ in _machines_up(state, observed)
            if attempt.is_announced
        )

    def _is_loaded(self, attempt: Attempt, text: str | None, observed: Observed) -> bool:
        """Return whether a VM has this list: by its metadata, and by its own report."""
        report = observed.reports.get(attempt.name)
        if text is None:
            # Nothing takes requests, and the router keeps the list that it has.
            return True
        is_sent = observed.slices[attempt.name].metadata.get(LIST_KEY) == text
        return is_sent and report is not None and report.loaded == text_print(text)

    def without_early_counts(self, state: State, observed: Observed) -> Observed:
        """Return the observation without the requests of draining slices, while a router may still send them more.

        So a slice that is idle for a moment is not interrupted before the routers have the list without it.
        """
        draining = {attempt.name for attempt in state.slice_attempts if attempt.draining_at is not None}
        if not draining & observed.loads.keys() or self._are_loaded(state, observed):
            return observed
        return replace(observed, loads={name: load for name, load in observed.loads.items() if name not in draining})

    def _was_sent_recently(self, name: str, text: str) -> bool:
        """Return whether this list was sent a moment ago: a change of the metadata takes seconds to show."""
        sent_text, sent_at = self._sent.get(name, ("", 0.0))
        return sent_text == text and self._world.clock.now() - sent_at < self._world.patience.update_again

    def _text(self, attempt: Attempt, state: State, observed: Observed, leaving: Collection[str]) -> str | None:
        """Return the list for a VM, or None where no replica takes requests: it keeps the list that it has then."""
        router, ready = router_on(attempt), ready_slices(state, observed, leaving)
        if router is None or not ready:
            return None
        self._urls |= dict(_internal_urls(state, observed))
        names = sorted((name for name in ready if name in self._urls), key=lambda name: (ready[name], name))
        return list_text(router, (RoutedReplica(name=name, url=self._urls[name]) for name in names), self._name)


def _machines_up(state: State, observed: Observed) -> Iterator[tuple[Attempt, Slice]]:
    """Yield the VMs of the router that run and are not being deleted."""
    for attempt in state.router.attempts:
        slice_ = observed.slices.get(attempt.name)
        if attempt.release is None and slice_ is not None and slice_.phase is Phase.UP:
            yield attempt, slice_


def _internal_urls(state: State, observed: Observed) -> Iterator[tuple[str, str]]:
    """Yield the URL of each slice for machines of its network, from which the router reaches it."""
    for attempt in (each for record in state.records for each in record.attempts):
        slice_ = observed.slices.get(attempt.name)
        address = None if slice_ is None else slice_.internal_ip or slice_.external_ip
        if slice_ is not None and address is not None:
            yield attempt.name, f"http://{address}:{slice_.port or attempt.port}"
