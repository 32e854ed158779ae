"""The ports: every contact with the outside as a Protocol. Adapters satisfy them, and contract tests check that.

Why: decision 7 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Protocol

from tpudeploy.domain import errors
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.boots import BootRecord
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.events import Event
from tpudeploy.domain.facts import Facts, Unknown
from tpudeploy.domain.history import HistoryEntry
from tpudeploy.domain.host_fault import HostFault
from tpudeploy.domain.ledger import Ledger, LedgerFact
from tpudeploy.domain.lock import Lease, LockInfo
from tpudeploy.domain.metrics import EngineFigures
from tpudeploy.domain.model import Checkpoint
from tpudeploy.domain.names import Zone
from tpudeploy.domain.orphans import Listing
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.pins import Name, Pins
from tpudeploy.domain.project_facts import ProjectFacts
from tpudeploy.domain.router import Router
from tpudeploy.domain.slices import BootReport, Health, NodeUpdate, ServerLoad, Slice, SliceEnd, SliceRef, SliceRequest
from tpudeploy.domain.state import Attempt, State
from tpudeploy.domain.together import PARALLELISM
from tpudeploy.domain.verify import EngineReport


class TpuCloud(Protocol):
    """The TPUs. No call waits for hardware; absent is an answer, not an error.

    Every method may raise `errors.Fault` (the effect is unknown: observe again) or `errors.Denied`.
    """

    def slices(self, refs: Iterable[SliceRef]) -> tuple[Slice, ...]:
        """Return the slices that exist, or whose request is known to have failed (`Phase.REFUSED`). 404s are left out.

        For many slices in one zone, the answer may come from that zone's lists, which can lag slightly. A slice that a
        list does not show is looked up by name before it counts as gone.
        """
        ...

    def list_marked(
        self, project: str, zones: Iterable[Zone], *, machines: bool = True, backends: Collection[Backend]
    ) -> Listing:
        """Return all resources at these backends that carry our mark, whether or not a state tracks them.

        `zones` and all zones of the catalogue are searched one by one if they cannot all be listed at once. With
        `machines`, the result includes nodes whose queued resource no longer exists. A queued resource also carries
        our mark if its node does: one that was imported was requested without it.
        """
        ...

    def list_named(
        self,
        project: str,
        name: str,
        zones: Iterable[Zone],
        *,
        zone: Zone | None = None,
        backends: Collection[Backend],
    ) -> Listing:
        """Return all queued resources or instances of this name, ours or not, in `zone` or in any zone.

        Without one, return the nodes of this name. A resource without a mark has `UNMARKED`. Zones are searched
        as in `list_marked`.
        """
        ...

    def request(self, request: SliceRequest) -> str | None:
        """Request a slice, and return the name of the create operation, if there is one.

        Raise `errors.Refused` if Google refuses at once. An existing name is success.
        """
        ...

    def release(self, ref: SliceRef) -> str | None:
        """Request the deletion of a slice with its machines, and return the name of the operation, if there is one.

        An absent slice is success. A refusal shows at a later observation.
        """
        ...

    def end(self, ref: SliceRef) -> SliceEnd | None:
        """Return how a slice ended that is gone, by Google's operations; None where these do not tell."""
        ...

    def update(self, ref: SliceRef, node: NodeUpdate) -> None:
        """Replace the node's metadata, labels and tags. Metadata without a startup script keep that of the node."""
        ...

    def restart(self, ref: SliceRef) -> None:
        """Reboot the slice's machines; disks stay, the startup script runs again."""
        ...

    def remedy(self, kind: str, message: str) -> str:
        """Return what a person can do about a refusal, or "" for a kind that is not Google's."""
        ...

    def report_host(self, ref: SliceRef, fault: HostFault) -> str | None:
        """Report the host of a slice as faulty, and return the name of the operation: Google stops the machine.

        Return None at the API that has no such call: nothing was done there. Raise `errors.Refused` or `errors.Denied`
        where Google does not accept the report.
        """
        ...

    def report(self, ref: SliceRef) -> BootReport | None:
        """Return the machine's last report, or None if it has none (yet)."""
        ...

    def guarded(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `check` at the last moment before each request in this context. Its exception stops the request.

        The reason is that a process can be stopped anywhere, for any time, and then continue.
        """
        ...


class Logs(Protocol):
    """The boot logs of machines."""

    def lines(self, ref: SliceRef) -> tuple[str, ...]:
        """Return the lines of the startup script, oldest first, of every stored boot.

        Raise `errors.Fault` or `errors.Denied`.
        """
        ...


@dataclass(frozen=True, slots=True, kw_only=True)
class Snapshot:
    """A state with the version at which it was read; both are empty without one."""

    state: State | None
    version: str


class StateBackend(Protocol):
    """The storage of states, one object per deployment. `is_shared`: other computers can reach it."""

    @property
    def is_shared(self) -> bool: ...

    def read(self, name: str) -> Snapshot:
        """Return a state, or an empty snapshot.

        Raise `errors.StateUnreadable` or `errors.StateTooNew`, and `errors.StateElsewhere` if it was moved away.
        """
        ...

    def write(self, name: str, state: State, *, over: str) -> str:
        """Write the state if the stored version is still `over`, and return the new version.

        Raise `errors.StateConflict` if it is not, or if this run has lost its lock.
        """
        ...

    def delete(self, name: str, *, over: str) -> None:
        """Delete the state if its version is still `over`. An absent state is success. Raise as `write` does."""
        ...

    def earlier(self, name: str) -> tuple[State, ...]:
        """Return the earlier states that the backend keeps, newest first.

        Raise `errors.StateError` if the backend cannot be read. Unreadable states are left out.
        """
        ...

    def lock(self, name: str, operation: str) -> Lease:
        """Take the lock for an operation. Raise `errors.StateLocked`, which names the holder.

        A lock that its holder has not renewed for longer than any step lasts is taken over; `Lease.expired` is its
        former holder.
        """
        ...

    def prove(self, lease: Lease) -> None:
        """Raise `errors.StateConflict` if this run no longer holds its lock."""
        ...

    def unlock(self, lease: Lease) -> None:
        """Release the lock. A lock that was already released, by force or by an earlier call, is success."""
        ...

    def find_lock(self, word: str) -> str:
        """Return the id of the lock that has this id, or that is a deployment's of this name.

        Raise `errors.StateError` without one.
        """
        ...

    def force_unlock(self, lock_id: str) -> str:
        """Release the lock with this id, and return the deployment's name.

        Raise `errors.StateError` if there is no such lock, or its holder is known to be alive.
        """
        ...

    def holder(self, name: str) -> LockInfo | None:
        """Return the present holder of the lock, or None. The lock is not changed."""
        ...

    def left_locks(self, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:
        """Return an error for each of these deployments whose lock is held and may outlive its holder.

        Its hint names the command that releases the lock. Raise `errors.StateError`.
        """
        ...

    def names(self) -> tuple[str, ...]:
        """Return the names of the deployments that have a state here."""
        ...

    def publish(self, name: str, body: Mapping[str, object] | None) -> None:
        """Write `endpoints/NAME.json` atomically, or remove it."""
        ...

    def published(self, name: str) -> Mapping[str, object] | None:
        """Return the last published endpoint. Raise `errors.StateUnreadable` if it has no `url`."""
        ...

    def history(self) -> tuple[HistoryEntry, ...]:
        """Return the latest finished requests of all deployments, oldest first: a thousand or more.

        Their number does not grow with the history, so that reading it costs the same.
        Raise `errors.StateUnreadable` if the log cannot be read. Unreadable lines are left out.
        """
        ...

    def record(self, tried: HistoryEntry) -> None:
        """Add one finished request to the history; parallel additions are safe. Raise `errors.StateError`."""
        ...

    def ledger(self) -> Ledger:
        """Return all facts of the ledger. Raise `errors.StateUnreadable` if it cannot be read."""
        ...

    def budgets(self) -> tuple[str, bytes] | None:
        """Return the name and the content of budgets.yaml beside the states, or None without one.

        Raise `errors.StateUnreadable` if it cannot be read, `errors.Fault` if its store does not answer.
        """
        ...

    def outbox(self) -> tuple[str, str]:
        """Return what runs have still to notify, as text, and its version; both are "" where nothing was written.

        Raise `errors.StateUnreadable` if it cannot be read.
        """
        ...

    def replace_outbox(self, text: str, *, over: str) -> str:
        """Write it if its version is still `over`, and return the new one. Raise `errors.StateConflict` if it is not.

        Raise `errors.StateError` if it cannot be written.
        """
        ...

    def enter(self, fact: LedgerFact) -> None:
        """Add one fact to the ledger; parallel additions are safe. Raise `errors.StateError`."""
        ...

    def close(self) -> None:
        """Release locks that an interrupted call may have left behind."""
        ...


class Probe(Protocol):
    """The probe of a vLLM server. It never raises: an error is part of the answer."""

    def health(
        self,
        deployment: Deployment,
        slice_: Slice,
        report: Callable[[], BootReport | None],
        *,
        is_settled: bool = False,
    ) -> Health:
        """Return whether an answer of its task comes back. `report` is called where only the machine's can show that.

        A server that `is_settled` serves, and no run changes it. Then an answer counts for ten minutes, in which
        /health and the metrics suffice: each answer takes the chip from users, and counts as a request.
        What `report` raises is raised here too.
        """
        ...

    def load(self, attempt: Attempt, slice_: Slice) -> ServerLoad:
        """Return the load by the metrics that the first route reaches, without what the server does not report.

        The server has the routes and the port that its slice was given: the profile may name others, or be gone.
        """
        ...

    def health_at(self, deployment: Deployment, url: str) -> Health:
        """Return whether an answer of its task comes back from a URL, for example that of the deployment's router."""
        ...


class EngineSource(Protocol):
    """The facts that a serving engine reports by its API and its metrics. It never raises: failed sources say why."""

    def read_facts(self, deployment: Deployment, slice_: Slice, health: Health) -> EngineReport: ...


class BootStore(Protocol):
    """The boots that were verified here, or where the states are. It never raises: a run is worth more than that."""

    def read(self) -> tuple[BootRecord, ...]:
        """Return the boots, oldest first."""
        ...

    def add(self, record: BootRecord) -> None: ...


@dataclass(frozen=True, slots=True, kw_only=True)
class VerifySources:
    """The sources of a verification, and where its results are kept.

    `applied` returns the deployment as applied with these attributes, or None.
    """

    engine: EngineSource
    logs: Logs
    applied: Callable[[Deployment, Mapping[str, Json]], Deployment | None]
    boots: BootStore


class Meter(Protocol):
    """The figures in an engine's /metrics. It never raises: an error is part of the answer."""

    def figures(self, deployment: Deployment, slice_: Slice) -> tuple[str, EngineFigures | Unknown]:
        """Return the URL and the figures read from it; the URL is "" if nothing answered."""
        ...


class Survey(Protocol):
    """The facts available before any request. It creates nothing and never raises: an error is part of the answer."""

    def lacking(self, project: str | None) -> Unknown | None:
        """Return why no fact of a project can be read (no credentials, no project), or None."""
        ...

    def facts(self, project: str | None, backends: Iterable[Backend], *, refresh: bool = False) -> Facts:
        """Return the facts about availability at these APIs. With `refresh`, cached facts are read again."""
        ...

    def quota(self, project: str | None, backends: Iterable[Backend]) -> Facts:
        """Return the quota at these APIs and its use alone, which is faster than all facts."""
        ...

    def project_facts(self, deployment: Deployment) -> ProjectFacts:
        """Return the facts around a deployment in its project."""
        ...


class Sources(Protocol):
    """The sources of images and models. It never raises: an error is part of the answer."""

    def look_up(self, name: Name) -> str | Unknown:
        """Return the digest, the commit or the image that a name means now."""
        ...

    def describe(self, name: Name, commit: str) -> Checkpoint | Unknown:
        """Return what the hub says of a commit of a model: its shapes and its elements, no weights."""
        ...

    def labels(self, image: str, digest: str) -> str | Unknown:
        """Return what the labels of an image say of its engine (`engines.words_of_labels`), "" for nothing."""
        ...


class PinStore(Protocol):
    """The storage of pins, for users to commit. Both methods raise `errors.PinsUnreadable` or `errors.PinsTooNew`."""

    def read(self) -> Pins:
        """Return the pins; none without a file."""
        ...

    def update(self, change: Callable[[Pins], Pins]) -> Pins:
        """Replace the pins by the result of `change`, one writer at a time, and return the earlier ones.

        Raise `errors.StateError` if they cannot be written.
        """
        ...


class Routers(Protocol):
    """The routers of this machine. Each is a process that follows the endpoint document, and ends when that is gone."""

    def keep(self, name: str) -> str:
        """Start the router of a deployment unless it runs.

        Return what went wrong with it since the last call, or "". Raise `errors.StateError` if its folder cannot be
        written.
        """
        ...

    def turns(self, name: str, router: Router) -> Iterator[str | None]:
        """Yield as often as it may be asked whether it answers, for about a minute of real time.

        Each value is None while the program that clients reach is `router`, else why it is not.
        """
        ...

    def is_running(self, name: str, router: Router) -> bool:
        """Return whether the program that clients reach is `router`, supervised by a process of this machine."""
        ...


class Clock(Protocol):
    def now(self) -> float:
        """Seconds since the epoch."""
        ...

    def sleep(self, seconds: float) -> None:
        """Sleep. Raise `errors.Interrupted` after `stop` was called, from any thread."""
        ...

    def stop(self) -> None:
        """End every present and future sleep, because the run was interrupted."""
        ...

    def workers(self) -> AbstractContextManager[Workers]:
        """Let the caller wait for parallel threads."""
        ...


class Workers(Protocol):
    """The threads that another thread waits for.

    They are counted, because simulated time may pass only while all of them wait for it.
    """

    def start(self) -> None:
        """Count one more thread. It is called before the thread begins its work."""
        ...

    def finish(self) -> None:
        """Count one thread less, from any thread, and let `wait` test its condition again."""
        ...

    def wait(self, seconds: float | None, until: Callable[[], bool]) -> None:
        """Return as soon as `until` is true, or after `seconds` (None: no limit).

        Raise `errors.Interrupted` after the clock was stopped, from any thread.
        """
        ...


class RecordStore(Protocol):
    """The storage of what features keep of their own: one JSON document each, by its id, beside the states."""

    def ids(self) -> list[str]:
        """Return all ids, in their order. Raise as `read`."""
        ...

    def read(self, id: str) -> str:  # noqa: A002 - the record's word
        """Return the text of a document. Raise `errors.RunUnreadable`, `errors.Fault` or `errors.Denied`."""
        ...

    def keep(self, id: str, text: str, *, prove: Callable[[], None] = lambda: None) -> None:  # noqa: A002 - the record's word
        """Write a document atomically, over its earlier version. Raise `errors.StateError`, or as `read`.

        `prove` raises if this run has lost the lock of what it writes. It is called late enough that the write of
        another run after that makes this one fail.
        """
        ...

    def place(self, id: str) -> str:  # noqa: A002 - the record's word
        """Return where a document is: its file, or its URL."""
        ...


class Allowance(Protocol):
    """The number of creates that the project may still send to one API now, over all runs of this process."""

    def available(self) -> int: ...

    def opens_in(self) -> float:
        """Return the seconds until a create is available; 0 if one is."""
        ...

    def seconds_to_turn(self) -> float:
        """Return the seconds until it is the caller's turn. Waiting callers are woken one at a time.

        Waking all of them for each free create would be quadratic in their number.
        """
        ...

    def spend(self) -> None: ...

    def pause(self, seconds: float) -> None:
        """Allow no create for this time, because Google reported too many."""
        ...


Emit = Callable[[Event], None]


@dataclass(frozen=True, slots=True, kw_only=True)
class World:
    """The ports in one bundle, without globals or a container.

    `threads` is the maximum number of parallel calls or deployments.

    `who` names this run in locks and approvals; `mint` returns a new lineage (it is random, so it is injected).

    `accounts` has the ledger and the budgets of what is requested, None if `state` has them.
    """

    cloud: TpuCloud
    state: StateBackend
    probe: Probe
    routers: Routers
    clock: Clock
    emit: Emit
    patience: Patience
    creates: Mapping[Backend, Allowance]
    who: str
    mint: Callable[[], str]
    threads: int = PARALLELISM
    accounts: StateBackend | None = None

    @property
    def cost_backend(self) -> StateBackend:
        """Return the backend whose ledger and budgets count what is requested."""
        return self.state if self.accounts is None else self.accounts
