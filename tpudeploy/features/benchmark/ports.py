"""The contacts of a benchmark with the outside: the client that drives the load, and the storage of runs."""

from __future__ import annotations

from typing import Protocol

from tpudeploy.features.benchmark.offer import Offer
from tpudeploy.features.benchmark.run import Measured, Run, Slo


class LoadDriver(Protocol):
    """The client that drives the load of a benchmark."""

    def check(self) -> None:
        """Raise `errors.UsageError` if the client cannot run here, before any request."""
        ...

    def measure(self, offer: Offer, slo: Slo) -> Measured:
        """Measure one cell, warm-up first. Raise `errors.Interrupted` after `stop` was called, from any thread.

        Refusals of the server are part of the result. Raise `errors.UsageError` if the client cannot run here.
        """
        ...

    def stop(self) -> None:
        """End the current cell, and begin no other."""
        ...


class RunStore(Protocol):
    """The storage of benchmark runs. A run is stored from its first cell on."""

    def keep(self, run: Run) -> None:
        """Store a run atomically, in place of its earlier version. Raise `errors.StateError`."""
        ...

    def find(self, id: str) -> Run:  # noqa: A002 - the record's word
        """Return the run with this id, or the only one whose id begins with it.

        Raise `errors.UsageError` where none or several match, and `errors.RunUnreadable`.
        """
        ...

    def all(self) -> tuple[Run, ...]:
        """Return all runs, oldest first. Raise `errors.RunUnreadable` for a file that is not a run or was changed."""
        ...
