"""Every contact with the world, as a Protocol. Nobody inherits; adapters satisfy them, contract tests check them."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from contextlib import AbstractContextManager
from typing import Protocol

from tpudeploy.domain import errors
from tpudeploy.domain.attestation import Told
from tpudeploy.domain.benchmark import Measured, Run, Slo
from tpudeploy.domain.deployment import Deployment, Json
from tpudeploy.domain.events import Event
from tpudeploy.domain.facts import Facts, Unknown
from tpudeploy.domain.forge import Comment, Issue, PullRequest, Status
from tpudeploy.domain.found import Listing
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.history import Tried
from tpudeploy.domain.load import Offer
from tpudeploy.domain.lock import Lease, LockInfo
from tpudeploy.domain.metrics import Figures
from tpudeploy.domain.names import Zone
from tpudeploy.domain.patience import Patience
from tpudeploy.domain.pins import Name, Pins
from tpudeploy.domain.slices import BootReport, Health, NodeUpdate, Slice, SliceRef, SliceRequest
from tpudeploy.domain.state import State
from tpudeploy.domain.surroundings import Surroundings
from tpudeploy.domain.together import PARALLELISM


class TpuCloud(Protocol):
    """The TPUs. No call waits for hardware; absent is an answer, not an error.

    Every method may raise `errors.Fault` (effect unknown, look again) or `errors.Denied`.
    """

    def slices(self, refs: Iterable[SliceRef]) -> tuple[Slice, ...]:
        """The slices that exist, or whose request is known to have failed (`Phase.REFUSED`). 404s are left out.

        Of many in one zone the answer may come from that zone's lists, which can lag behind by moments. What a list
        does not show is asked for by name before it counts as gone.
        """
        ...

    def list_marked(self, project: str, zones: Iterable[Zone], *, machines: bool = True) -> Listing:
        """Everything in the project that carries our mark, whether or not any state remembers it.

        `zones`, and all that the catalogue knows, are looked through one by one where not all can be listed at once.
        With `machines`, nodes too whose queued resource is gone.
        """
        ...

    def list_named(self, project: str, name: str, zones: Iterable[Zone], *, zone: Zone | None = None) -> Listing:
        """The queued resources of this name, whoever made them; in `zone`, or wherever they may be.

        A resource without a mark has `UNMARKED`. Zones are searched as in `list_marked`.
        """
        ...

    def request(self, request: SliceRequest) -> str | None:
        """Ask for a slice; the name of the create operation, where one is given.

        Raise `errors.Refused` when Google says no at once. An already existing name is success.
        """
        ...

    def release(self, ref: SliceRef) -> str | None:
        """Ask for deletion, machines included; the name of the delete operation, where one is given.

        Absent is success; a refusal shows at a later look.
        """
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

    def guarded(self, check: Callable[[], None]) -> AbstractContextManager[None]:
        """Call `check` at the last moment before each request is sent within this context; what it raises stops it.

        A process may be stopped anywhere, for any time, and go on as if nothing had happened.
        """
        ...


class Logs(Protocol):
    """What machines printed while they booted."""

    def lines(self, ref: SliceRef) -> tuple[str, ...]:
        """The startup script's own lines, oldest first, of every boot that is kept; none where nothing came yet.

        Raise `errors.Fault` or `errors.Denied`.
        """
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
        """Write if the stored version is still `over`; the new version.

        Raise `errors.StateConflict` where it is not, or where this run had the lock and it was taken away.
        """
        ...

    def delete(self, name: str, *, over: str) -> None:
        """Forget the state if it is still `over`; absent is success. Raise as `write` does."""
        ...

    def earlier(self, name: str) -> tuple[State, ...]:
        """The states that stood here before the one that does, newest first, as far back as this place keeps them.

        Raise `errors.StateError` where the place cannot be read. A state that cannot be is left out.
        """
        ...

    def lock(self, name: str, operation: str) -> Lease:
        """Raise `errors.StateLocked`, which names the holder. `operation` says what for.

        A lock whose holder has been silent for longer than any step lasts is taken over: `Lease.expired` says whose.
        """
        ...

    def prove(self, lease: Lease) -> None:
        """Raise `errors.StateConflict` where this run no longer holds its lock."""
        ...

    def unlock(self, lease: Lease) -> None:
        """Gone already is success: somebody took it away by force, or an earlier call did it."""
        ...

    def force_unlock(self, lock_id: str) -> str:
        """Take away the lock with this id, whoever holds it; the deployment's name.

        Raise `errors.StateError` where there is none, or where its holder is known to live.
        """
        ...

    def holder(self, name: str) -> LockInfo | None:
        """Who holds the lock this very moment; None where nobody does. The lock is left as it is."""
        ...

    def left_locks(self, names: Iterable[str]) -> Mapping[str, errors.StateLocked]:
        """Return, for each of these deployments whose lock is held and may outlive its holder, the error that says so.

        Its hint names the command that frees the lock. Raise `errors.StateError`.
        """
        ...

    def names(self) -> tuple[str, ...]:
        """Deployments that have a state here."""
        ...

    def publish(self, name: str, body: Mapping[str, object] | None) -> None:
        """Write `endpoints/NAME.json` atomically, or remove it."""
        ...

    def published(self, name: str) -> Mapping[str, object] | None:
        """What was last published. Raise `errors.StateUnreadable` for what names no `url`."""
        ...

    def history(self) -> tuple[Tried, ...]:
        """Every request whose end was recorded here lately, by whichever deployment, oldest first: a thousand at least.

        Raise `errors.StateUnreadable` where the log cannot be read; a line that cannot be is left out.
        """
        ...

    def record(self, tried: Tried) -> None:
        """Add one end to the history, whoever else adds at the same time. Raise `errors.StateError`."""
        ...

    def close(self) -> None:
        """Free what an interrupted call may have left locked."""
        ...


class Probe(Protocol):
    """Is vLLM answering? Never raises: what failed is in the answer."""

    def health(self, deployment: Deployment, slice_: Slice, report: BootReport | None) -> Health: ...

    def running(self, deployment: Deployment, slice_: Slice) -> int | None:
        """The requests it works at or has waiting; None where it does not tell."""
        ...


class Witness(Protocol):
    """What a serving engine says of itself, by its API and its metrics. Never raises: what is silent says why."""

    def read_facts(self, deployment: Deployment, slice_: Slice, health: Health) -> Told: ...


@frozen
class Witnesses:
    """Whom an attestation asks. `applied`: the deployment as a slice with these attributes was given it, or None."""

    engine: Witness
    logs: Logs
    applied: Callable[[Deployment, Mapping[str, Json]], Deployment | None]


class Meter(Protocol):
    """What an engine says of itself in /metrics. Never raises: what failed is in the answer."""

    def figures(self, deployment: Deployment, slice_: Slice) -> tuple[str, Figures | Unknown]:
        """With the URL that it was read from, "" where nothing answered."""
        ...


class Survey(Protocol):
    """What can be told before anything is asked for. Creates nothing and never raises: what failed is in the answer."""

    def lacking(self, project: str | None) -> Unknown | None:
        """Why nothing of a project can be read at all: no credentials, no project. None where it may be tried."""
        ...

    def facts(self, project: str | None, *, refresh: bool = False) -> Facts:
        """What the gates are judged by. `refresh`: what is kept for a while is read anew."""
        ...

    def quota(self, project: str | None) -> Facts:
        """Limits and what is held alone: sooner than all the facts."""
        ...

    def surroundings(self, deployment: Deployment) -> Surroundings:
        """What a deployment needs around it in its project."""
        ...


class Sources(Protocol):
    """Where images and models come from. Never raises: what failed is in the answer."""

    def look_up(self, name: Name) -> str | Unknown:
        """The digest or the commit that a name means today."""
        ...


class PinStore(Protocol):
    """Where pins are kept, for people to commit. Both raise `errors.PinsUnreadable` or `errors.PinsTooNew`."""

    def read(self) -> Pins:
        """None are held where there is no file."""
        ...

    def update(self, change: Callable[[Pins], Pins]) -> Pins:
        """Put in its place what `change` makes of it, one writer at a time; what was held before.

        Raise `errors.StateError` where it cannot be written.
        """
        ...


class LoadDriver(Protocol):
    """Whose client drives the load of a benchmark."""

    def check(self) -> None:
        """Raise `errors.UsageError` where the client cannot run here, before anything is asked of anybody."""
        ...

    def measure(self, offer: Offer, slo: Slo) -> Measured:
        """One cell, warm-up first. Raise `errors.Interrupted` once `stop` was called, from whichever thread.

        What the server refuses is in the answer. Raise `errors.UsageError` where the client cannot run here.
        """
        ...

    def stop(self) -> None:
        """End the cell that is under way, and begin none."""
        ...


class Runs(Protocol):
    """Where runs of benchmarks are kept. A run stands there from its first cell on."""

    def keep(self, run: Run) -> None:
        """Whole or not at all, in the place of what was kept of it before. Raise `errors.StateError`."""
        ...

    def find(self, id: str) -> Run:  # noqa: A002 - the record's word
        """By its id, or by a beginning of it that no other has.

        Raise `errors.UsageError` where there is none, or are several; `errors.RunUnreadable`.
        """
        ...

    def all(self) -> tuple[Run, ...]:
        """Oldest first. Raise `errors.RunUnreadable` for what is no run, or was changed."""
        ...


class Forge(Protocol):
    """Where pull requests are. Every method may raise `errors.ForgeError`; each may be repeated.

    `is_it` tells a text of ours from all others; only what we wrote ourselves is ever asked about.
    """

    def merged_pulls(self, commit: str) -> tuple[PullRequest, ...]:
        """The pull requests of this repository whose merge made this very commit, whatever branch it was merged into.

        None for a commit that was pushed without one.
        """
        ...

    def statuses(self, commit: str, context: str) -> tuple[Status, ...]:
        """All that was ever said of the commit under this context, by whomever, the latest first."""
        ...

    def history(self, commit: str) -> tuple[str, ...]:
        """The commit and those before it, the latest first; the last few dozen."""
        ...

    def comment(self, pull: int, is_it: Callable[[str], bool]) -> Comment | None:
        """The one of ours on a pull request, the oldest where there are several."""
        ...

    def tell(self, pull: int, is_it: Callable[[str], bool], body: str) -> Comment:
        """Write it, or put `body` in the place of the one that is there; return it as it was read back, with `body`.

        Raise `errors.ForgeError` where it reads otherwise: somebody edits it meanwhile.
        """
        ...

    def issues(self, label: str) -> tuple[Issue, ...]:
        """The open ones of ours with that label."""
        ...

    def report(self, is_it: Callable[[str], bool], label: str, title: str, body: str) -> Issue:
        """Open it, or put `title` and `body` in the place of those of the open one."""
        ...

    def settle(self, issue: Issue, because: str) -> None:
        """Close it with a last word. Closed already is success."""
        ...

    def judge(self, commit: str, status: Status) -> None:
        """Set a commit's status; the last one said of a context holds."""
        ...

    def note(self, commit: str, status: Status) -> None:
        """A check that is neither good nor bad."""
        ...


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

    def workers(self) -> AbstractContextManager[Workers]:
        """Let the caller wait for threads that work side by side."""
        ...


class Workers(Protocol):
    """Threads at work beside the one that waits for them.

    They are counted, because time that is simulated may pass only while every one of them waits for it.
    """

    def start(self) -> None:
        """Count one more thread; called before it begins its work."""
        ...

    def finish(self) -> None:
        """Count one thread less, from whichever thread, and let `wait` look again."""
        ...

    def wait(self, seconds: float | None, until: Callable[[], bool]) -> None:
        """Return once `until` holds, or after `seconds` (None: no limit).

        Raise `errors.Interrupted` once the clock was stopped, from whichever thread.
        """
        ...


class Allowance(Protocol):
    """How many slices the project may still ask for just now, over all runs of this process."""

    def left(self) -> int: ...

    def opens_in(self) -> float:
        """Seconds until there is one left; 0 where there is."""
        ...

    def turn(self) -> float:
        """Seconds until it is the caller's turn to ask: each that waits has one of its own, one create after another.

        Else all would wake for each create that falls due, which grows with the square of their number.
        """
        ...

    def spend(self) -> None: ...

    def pause(self, seconds: float) -> None:
        """None is left for so long: Google said that they were too many."""
        ...


Emit = Callable[[Event], None]


@frozen
class World:
    """The ports in one bundle: no globals, no container.

    `threads` is how many calls, or deployments, may be under way at once.

    `who` names this run in locks and goals; `mint` gives a new lineage (random, so it is handed in).
    """

    cloud: TpuCloud
    state: StateBackend
    probe: Probe
    clock: Clock
    emit: Emit
    patience: Patience
    creates: Allowance
    who: str
    mint: Callable[[], str]
    threads: int = PARALLELISM
