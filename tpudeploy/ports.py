"""Every contact with the world, as a Protocol. Nobody inherits; adapters satisfy them, contract tests check them."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from typing import Protocol

from tpudeploy.domain.deployment import Deployment
from tpudeploy.domain.events import Event
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.lock import Lease
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.slices import BootReport, Health, NodeUpdate, Slice, SliceRef, SliceRequest
from tpudeploy.domain.state import State


class TpuCloud(Protocol):
    """The TPUs. No call waits for hardware; absent is an answer, not an error.

    Every method may raise `errors.Fault` (effect unknown, look again) or `errors.Denied`.
    """

    def slices(self, refs: Iterable[SliceRef]) -> tuple[Slice, ...]:
        """The slices that exist, or whose request is known to have failed (`Phase.REFUSED`). 404s are left out."""
        ...

    def request(self, request: SliceRequest) -> str | None:
        """Ask for a slice; the name of the create operation, where one is given.

        Raise `errors.Refused` when Google says no at once. An already existing name is success.
        """
        ...

    def release(self, ref: SliceRef) -> None:
        """Ask for deletion, machines included. Absent is success; a refusal shows at a later look."""
        ...

    def update(self, ref: SliceRef, node: NodeUpdate) -> None:
        """Replace the node's whole metadata, labels and tags."""
        ...

    def restart(self, ref: SliceRef) -> None:
        """Reboot the slice's machines; disks stay, the startup script runs again."""
        ...

    def report(self, ref: SliceRef) -> BootReport | None:
        """What the machine last said of itself, or None where it says nothing (yet)."""
        ...


@frozen
class Snapshot:
    """A state with the version it was read at; both empty where there is none."""

    state: State | None
    version: str


class StateBackend(Protocol):
    """Where states live, one object a deployment."""

    def read(self, name: str) -> Snapshot:
        """Raise `errors.StateUnreadable` or `errors.StateTooNew`; an absent state is an empty snapshot."""
        ...

    def write(self, name: str, state: State, *, over: str) -> str:
        """Write if the stored version is still `over`; the new version. Raise `errors.StateConflict`."""
        ...

    def lock(self, name: str, operation: str) -> Lease:
        """Raise `errors.StateLocked`, which names the holder. `operation` says what for."""
        ...

    def unlock(self, lease: Lease) -> None: ...

    def names(self) -> tuple[str, ...]:
        """Deployments that have a state here."""
        ...

    def publish(self, name: str, endpoint: dict[str, object] | None) -> None:
        """Write `endpoints/NAME.json` atomically, or remove it."""
        ...


class Probe(Protocol):
    """Is vLLM answering? Never raises: what failed is in the answer."""

    def health(self, deployment: Deployment, found: Slice, report: BootReport | None) -> Health: ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Raise `errors.Interrupted` once `stop` was called, from whichever thread."""
        ...

    def stop(self) -> None:
        """End every sleep, now and from now on: the run was interrupted."""
        ...


Emit = Callable[[Event], None]


@frozen
class World:
    """The ports in one bundle: no globals, no container.

    `who` names this run in locks and goals; `mint` gives a new lineage (random, so it is handed in).
    """

    cloud: TpuCloud
    state: StateBackend
    probe: Probe
    clock: Clock
    emit: Emit
    patience: Patience
    who: str
    mint: Callable[[], str]
