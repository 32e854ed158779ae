"""The list of replicas that the router on a VM sends requests to: what it should be, and what the VM has loaded.

The list is a value of the VM's metadata. The VM loads it without dropping a stream, and reports its fingerprint.

Why: decision 75 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from dataclasses import replace

from tpudeploy.domain.deployment import DEFAULT_PORT
from tpudeploy.domain.router import RoutedReplica
from tpudeploy.domain.slices import NodeUpdate, Observed, Phase, Slice
from tpudeploy.domain.state import Attempt, State
from tpudeploy.engine.session import Session
from tpudeploy.node.fingerprint import text_print
from tpudeploy.node.router_machine import LIST_KEY, list_text, router_on
from tpudeploy.ports import World
from tpudeploy.reconcile.readiness import ready_slices


class RouterLists:
    """The lists of the VMs of one deployment's router: of the one that serves, and of one that replaces it."""

    def __init__(self, world: World, name: str) -> None:
        self._world = world
        self._name = name
        self._urls: dict[str, str] = {}  # of each slice on the list
        self._sent: dict[str, tuple[str, float]] = {}  # to each VM: the list, and when

    def send(self, session: Session, observed: Observed, leaving: Collection[str]) -> None:
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

    def are_loaded(self, state: State, observed: Observed, leaving: Collection[str] = ()) -> bool:
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
        draining = {a.name for record in state.records for a in record.attempts if a.draining_at is not None}
        if not draining & observed.loads.keys() or self.are_loaded(state, observed):
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
            port = slice_.port or attempt.spec.get("serving.port", DEFAULT_PORT)
            yield attempt.name, f"http://{address}:{port}"
