"""Inspect and edit the state: list, show, mv, rm, pull, push, history, and release a lock. No slice is touched."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterable, Iterator, Mapping
from typing import TYPE_CHECKING, Any

from tpudeploy.domain.state import Attempt, Record, State, Written
from tpudeploy.operations.declaration import Access, Argument, Kind, Operation, flag
from tpudeploy.results import Result, document, result

if TYPE_CHECKING:
    from tpudeploy.domain.events import Event
    from tpudeploy.domain.names import Address
    from tpudeploy.text.paint import Paint
    from tpudeploy.workspace import Workspace

    OnEvent = Callable[[Event], None]


@result
class StateAddresses(Result):
    """The addresses in the states, each with its slices by name."""

    FORMAT = "state-list"
    addresses: Mapping[Address, tuple[str, ...]]

    def values(self) -> dict[str, Any]:
        rows = self.addresses.items()
        return {"resources": [{"address": str(address), "slices": list(names)} for address, names in rows]}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return document("state-list", {"resources": [{"address": str, "slices": tuple[str, ...]}]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del paint, width
        return "\n".join(map(str, self.addresses))


@result
class StateRecords(Result):
    """Everything that a state records about one address."""

    FORMAT = "state-show"
    state: State
    records: tuple[Record, ...]

    def values(self) -> dict[str, Any]:
        state = self.state
        resources = [_record_values(state.deployment, record) for record in self.records]
        head = {"deployment": state.deployment, "lineage": state.lineage, "serial": state.serial}
        return {**head, "resources": resources}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        from tpudeploy.schemas.schema_of import TEXT, As
        from tpudeploy.serialization.flat_attempt import FlatAttempt

        record = As(adds={"address": TEXT, "attempts": tuple[FlatAttempt, ...]}, drops=frozenset({"attempts"}))
        keys = {"deployment": str, "lineage": str, "serial": int, "resources": tuple[Record, ...]}
        return document("state-show", keys, printed_as={Record: record})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        from tpudeploy.views.state import state_text

        del paint, width
        return state_text(self.state, self.records)


@result
class StateHistory(Result):
    """The present state of a deployment, and the earlier ones that the backend keeps, newest first."""

    FORMAT = "state-history"
    deployment: str
    current: State | None
    earlier: tuple[State, ...]

    @property
    def states(self) -> tuple[State, ...]:
        return self.earlier if self.current is None else (self.current, *self.earlier)

    def values(self) -> dict[str, Any]:
        from tpudeploy.domain.serialization import to_json

        rows = [
            {
                "serial": state.serial,
                "lineage": state.lineage,
                "is_current": state is self.current,
                "written": to_json(state.written),
                "slices": [attempt.name for attempt in state.attempts],
            }
            for state in self.states
        ]
        return {"deployment": self.deployment, "states": rows}

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        row = {"serial": int, "lineage": str, "is_current": bool, "written": Written | None, "slices": tuple[str, ...]}
        return document("state-history", {"deployment": str, "states": [row]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        from tpudeploy.views.state import history

        del paint, width
        return history(self.current, self.states)

    def messages(self, paint: Paint) -> str:
        del paint
        if self.current is None or self.current.serial <= 1 or self.earlier:
            return ""
        return "Earlier states are not kept here: turn on the bucket's object versioning to keep them."


@result
class StateFile(Result):
    """A whole state. Its text, and its document, are what `state_push` accepts."""

    FORMAT = "state"
    IS_DOCUMENT = False
    state: State

    def to_dict(self) -> dict[str, Any]:
        keys: dict[str, Any] = json.loads(str(self))
        return keys

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        from tpudeploy.schemas.documents import state

        return state()

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        from tpudeploy.serialization.statefile import dumps

        del paint, width
        return dumps(self.state).removesuffix("\n")

    @property
    def summary(self) -> str:
        return f"{self.state.deployment}, serial {self.state.serial}"


class StateChange(Result):
    """The base of what changes a state. The document has a `type` for each of them."""

    __slots__ = ()
    FORMAT = "state-change"

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        from tpudeploy.schemas.schema_of import TEXT, TEXTS, TRUTH, list_of, object_of

        removed = list_of(object_of({"deployment": TEXT, "forgotten": TEXTS}))
        keys_by_type = {
            "mv": {"source": TEXT, "target": TEXT},
            "rm": {"changes": removed, "is_dry_run": TRUTH},
            "push": {"deployment": TEXT, "is_changed": TRUTH, "forgotten": TEXTS},
        }
        head = {"format": {"const": "tpudeploy.state-change/1"}}
        choices = [object_of({**head, "type": {"const": type_}, **keys}) for type_, keys in keys_by_type.items()]
        return document("state-change", {}, choices=choices)


@result
class StateMoved(StateChange):
    """A deployment was renamed, or a slice has another index."""

    source: Address
    target: Address

    def values(self) -> dict[str, Any]:
        return {"type": "mv", "source": str(self.source), "target": str(self.target)}

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del paint, width
        return f"Moved {self.source} to {self.target}."

    def messages(self, paint: Paint) -> str:
        del paint
        if self.source.replica is not None:
            return ""
        target = self.target
        return (
            f"Now write `name: {target}` into the profile. Nothing restarts: its container is called {target} from its"
            " next change on."
        )


@result
class StatePushed(StateChange):
    """A state was written at the time `at`, unless it was the same. `untracked` are slices that it does not track."""

    deployment: str
    is_changed: bool
    untracked: tuple[Attempt, ...]
    at: float

    def values(self) -> dict[str, Any]:
        names = [attempt.name for attempt in self.untracked]
        return {"type": "push", "deployment": self.deployment, "is_changed": self.is_changed, "forgotten": names}

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del paint, width
        return (
            f"The state of {self.deployment} was written."
            if self.is_changed
            else (f"The state of {self.deployment} is already the same.")
        )

    def messages(self, paint: Paint) -> str:
        from tpudeploy.reconcile.request_table import describe_request

        del paint
        if not self.untracked:
            return ""
        attempts = "".join(f"\n  {describe_request(attempt, self.at)}" for attempt in self.untracked)
        return f"The previous state tracked more slices, which are now untracked:{attempts}\n`tpudeploy gc` finds them."


@result
class StateRemoved(StateChange):
    """The slices that a state no longer tracks, or would not after a dry run. They continue to run and to be billed."""

    changes: Mapping[str, tuple[str, ...]]  # the names of slices by deployment
    lines: tuple[str, ...]  # one for each slice: its address, its age and its price
    remaining: Mapping[str, State]  # the states afterwards
    is_dry_run: bool

    def values(self) -> dict[str, Any]:
        rows = [{"deployment": deployment, "forgotten": list(names)} for deployment, names in self.changes.items()]
        return {"type": "rm", "changes": rows, "is_dry_run": self.is_dry_run}

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del paint, width
        if not self.is_dry_run:
            return "\n".join(_removed_text(state, len(self.changes[name])) for name, state in self.remaining.items())
        warning = "These slices will be removed from the state, not deleted. They continue to run and to be billed:"
        return "\n".join([warning, "", *self.lines])


@result
class Unlocked(Result):
    """A lock that was released: the deployment that it held, and its id."""

    FORMAT = "unlock"
    name: str
    id: str

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        del paint, width
        return f"Released the lock of {self.name}."


def state_list(workspace: Workspace, addresses: Iterable[str] = ()) -> StateAddresses:
    """List the addresses in the states, or those of them that `addresses` name: NAME, or NAME[0] for one replica.

    Raise `errors.StateError` for one that no state tracks, `errors.UsageError` for one that is not an address.
    """
    from tpudeploy.planning.state_edits import select_addresses

    selection = [parse_address(each) for each in addresses]
    states = {state.deployment: state for state in workspace.states()}
    return StateAddresses(
        addresses={
            address: tuple(attempt.name for attempt in states[address.deployment].record(address.replica or 0).attempts)
            for address in select_addresses(states, selection)
        }
    )


def state_show(workspace: Workspace, address: str) -> StateRecords:
    """Show everything that the state records about one address. Raise as `state_list` does."""
    from tpudeploy.planning.state_edits import records_at

    where = parse_address(address)
    state = _state_of(workspace, where.deployment)
    return StateRecords(state=state, records=records_at(state, where))


def state_history(workspace: Workspace, name: str | None = None) -> StateHistory:
    """List who wrote which state of a deployment and when, for as long as the backend keeps them.

    `name` may be left out where there is only one deployment. Raise `errors.StateError` if there is no state.
    """
    from tpudeploy.domain.errors import StateError

    deployment = _deployment(workspace, name)
    backend = workspace.adapters.states
    current, earlier = backend.read(deployment).state, backend.earlier(deployment)
    if current is None and not earlier:
        raise StateError(f"{deployment} has no state here, and no earlier state is kept.")
    return StateHistory(deployment=deployment, current=current, earlier=tuple(earlier))


def state_pull(workspace: Workspace, name: str | None = None, *, serial: int | None = None) -> StateFile:
    """Return the current state of a deployment, or the earlier one with this serial, as text that can be pushed.

    `name` may be left out where there is only one deployment. Raise `errors.StateError` if there is no such state.
    """
    deployment = _deployment(workspace, name)
    if serial is None:
        return StateFile(state=_state_of(workspace, deployment))
    return StateFile(state=_earlier_state(workspace, deployment, serial))


def state_push(
    workspace: Workspace, state: State | str, *, force: bool = False, on_event: OnEvent | None = None
) -> StatePushed:
    """Write a state, or the text of one. Without `force`, a later state and one of another lineage are not replaced.

    Raise `errors.StateError` for those, and `errors.StateUnreadable` for a text that is not a state.
    """
    from tpudeploy.engine.state_ops import push
    from tpudeploy.serialization import statefile

    new = statefile.loads(state, source="the text") if isinstance(state, str) else state
    untracked = push(workspace.adapters.world(on_event), new, force=force)
    return StatePushed(
        deployment=new.deployment,
        is_changed=untracked is not None,
        untracked=untracked or (),
        at=workspace.adapters.clock.now(),
    )


def state_mv(
    workspace: Workspace, source: str, target: str, *, force: bool = False, on_event: OnEvent | None = None
) -> StateMoved:
    """Rename a deployment (`gemma`, `chat`), or move a slice to another index (`gemma[1]`, `gemma[0]`).

    Raise `errors.StateError` if the state does not allow it, `errors.UsageError` for an invalid address.
    """
    from tpudeploy.engine.state_ops import move

    one, other = parse_address(source), parse_address(target)
    move(workspace.adapters.world(on_event), one, other, force=force)
    return StateMoved(source=one, target=other)


def state_rm(
    workspace: Workspace,
    addresses: Iterable[str],
    *,
    dry_run: bool = False,
    force: bool = False,
    on_event: OnEvent | None = None,
) -> StateRemoved:
    """Remove slices from the state without deleting them: they continue to run and to be billed, untracked.

    With `dry_run`, only list them. Raise as `state_list` does, before anything is removed.
    """
    listed = _removal(workspace, addresses, force=force)
    return listed if dry_run else remove_listed(workspace, listed, force=force, on_event=on_event)


def remove_listed(
    workspace: Workspace, listed: StateRemoved, *, force: bool, on_event: OnEvent | None = None
) -> StateRemoved:
    """Remove exactly the slices that a dry run listed."""
    from dataclasses import replace

    from tpudeploy.engine.state_ops import forget

    world = workspace.adapters.world(on_event)
    remaining = {name: forget(world, name, slices, force=force) for name, slices in listed.changes.items()}
    return replace(listed, remaining=remaining, is_dry_run=False)


def force_unlock(workspace: Workspace, id: str) -> Unlocked:  # noqa: A002 - the command line's word
    """Release a lock left behind by a crashed run. If that run is still alive, it cannot save anything afterwards.

    Raise `errors.StateError` if there is no such lock, or its holder is known to be alive.
    """
    return Unlocked(name=workspace.adapters.states.force_unlock(id), id=id)


def parse_address(text: str) -> Address:
    """Return the address. Raise `errors.UsageError` if it is invalid."""
    from tpudeploy.domain.errors import UsageError
    from tpudeploy.domain.names import Address

    try:
        return Address.parse(text)
    except ValueError as cause:
        raise UsageError(f"{cause}.") from cause


def _state_of(workspace: Workspace, name: str) -> State:
    """Return the state of a deployment. Raise `errors.StateError` without one."""
    from tpudeploy.domain.errors import StateError

    backend = workspace.adapters.states
    state = backend.read(name).state
    if state is None:
        names = ", ".join(backend.names())
        raise StateError(
            f"{name} has no state here.", hint=f"There are: {names}." if names else "No deployment has one."
        )
    return state


def _deployment(workspace: Workspace, name: str | None) -> str:
    """Return the named deployment, or the only one. Raise `errors.UsageError` otherwise."""
    from tpudeploy.domain.errors import UsageError

    if name is not None:
        address = parse_address(name)
        if address.replica is not None:
            raise UsageError(
                f"`{name}` is one replica, but a state belongs to a whole deployment: {address.deployment}."
            )
        return address.deployment
    names = workspace.adapters.states.names()
    if len(names) != 1:
        hint = f"There are: {', '.join(names)}." if names else "No deployment has a state here."
        raise UsageError("Name the deployment whose state you mean.", hint=hint)
    return names[0]


def _earlier_state(workspace: Workspace, name: str, serial: int) -> State:
    """Return the latest state of that serial. Raise `errors.StateError` if it is not kept."""
    from tpudeploy.domain.errors import StateError

    backend = workspace.adapters.states
    current = backend.read(name).state
    candidates = (*([current] if current is not None else []), *backend.earlier(name))
    match = next((state for state in candidates if state.serial == serial), None)
    if match is None:
        serials = ", ".join(str(state.serial) for state in candidates)
        hint = f"There are: {serials}." if serials else "No state of it is kept."
        raise StateError(f"No state of {name} with the serial {serial} is kept.", hint=hint)
    return match


def _record_values(deployment: str, record: Record) -> dict[str, Any]:
    from tpudeploy.domain.names import address
    from tpudeploy.domain.serialization import to_json
    from tpudeploy.serialization.flat_attempt import flat

    attempts = [to_json(flat(attempt)) for attempt in record.attempts]
    return {"address": address(deployment, record.index), **to_json(record), "attempts": attempts}


def _removal(workspace: Workspace, addresses: Iterable[str], *, force: bool) -> StateRemoved:
    """Return what would be removed, each slice once. Raise `errors.StateError` for an address in no state."""
    from tpudeploy.reconcile.request_table import describe_request

    now = workspace.adapters.clock.now()
    changes: dict[str, tuple[str, ...]] = {}
    lines = []
    selection = [parse_address(each) for each in addresses]
    for deployment, where, attempt in _attempts_at(workspace, selection, force=force):
        names = changes.get(deployment, ())
        if attempt.name not in names:
            changes[deployment] = (*names, attempt.name)
            lines.append(f"  {where}: {describe_request(attempt, now)}")
    return StateRemoved(changes=changes, lines=tuple(lines), remaining={}, is_dry_run=True)


def _attempts_at(
    workspace: Workspace, addresses: Iterable[Address], *, force: bool
) -> Iterator[tuple[str, str, Attempt]]:
    """Yield every slice at these addresses, after its deployment and the address of its replica."""
    from tpudeploy.domain.names import address
    from tpudeploy.planning.state_edits import check_no_run, records_at

    for where in addresses:
        state = _state_of(workspace, where.deployment)
        check_no_run(state, force=force)
        for record in records_at(state, where):
            for attempt in record.attempts:
                yield state.deployment, address(state.deployment, record.index), attempt


def _removed_text(state: State, count: int) -> str:
    name = state.deployment
    sentence = f"Removed {count} slice{'' if count == 1 else 's'} of {name} from the state."
    if state.attempts:
        return f"{sentence} `tpudeploy gc` would delete them, because the state of {name} still has their lineage."
    return f"{sentence} {name} has no state any more; `tpudeploy apply -adopt` or `import` tracks its slices again."


_NAME = Argument(name="name", metavar="NAME", positional=True)
_FORCE = flag("force", "Even while a run is in progress; push: over another lineage or a later state.")
_SERIAL = Argument(name="serial", help="The state with this serial, as `history` lists it.", kind=Kind.COUNT)

OPERATIONS: Mapping[str, Operation] = {
    "state_list": Operation(
        run=state_list,
        arguments=(Argument(name="addresses", kind=Kind.TEXTS, metavar="ADDR", default=(), positional=True),),
        results=(StateAddresses,),
    ),
    "state_show": Operation(
        run=state_show,
        arguments=(Argument(name="address", metavar="ADDR", is_required=True, positional=True),),
        results=(StateRecords,),
    ),
    "state_mv": Operation(
        run=state_mv,
        arguments=(
            Argument(name="source", metavar="SRC", is_required=True, positional=True),
            Argument(name="target", metavar="DST", is_required=True, positional=True),
            _FORCE,
        ),
        results=(StateMoved,),
        access=Access.CHANGE,
        takes_events=True,
    ),
    "state_rm": Operation(
        run=state_rm,
        arguments=(
            Argument(name="addresses", kind=Kind.TEXTS, metavar="ADDR", is_required=True, positional=True),
            flag("dry_run", "Show what would be removed from the state, and change nothing."),
            _FORCE,
        ),
        results=(StateRemoved,),
        access=Access.CHANGE,
        takes_events=True,
    ),
    "state_pull": Operation(run=state_pull, arguments=(_NAME, _SERIAL), results=(StateFile,)),
    "state_push": Operation(
        run=state_push,
        arguments=(Argument(name="state", metavar="FILE", is_required=True, positional=True), _FORCE),
        results=(StatePushed,),
        access=Access.CHANGE,
        takes_events=True,
    ),
    "state_history": Operation(run=state_history, arguments=(_NAME,), results=(StateHistory,)),
    "force_unlock": Operation(
        run=force_unlock,
        arguments=(
            Argument(
                name="id",
                help="The id of the lock, as the message of the blocked command shows it.",
                is_required=True,
                positional=True,
            ),
        ),
        results=(Unlocked,),
        access=Access.CHANGE,
    ),
}
