"""Inspect the states: list, show, history, pull."""

from __future__ import annotations

import json
from collections.abc import Iterable, Mapping
from typing import Annotated, Any, TypeAlias

from tpudeploy.catalog import guess
from tpudeploy.domain.errors import StateError, UsageError
from tpudeploy.domain.names import Address, address
from tpudeploy.domain.serialization import to_json
from tpudeploy.domain.state import Record, State, StateWriter
from tpudeploy.operations.arguments import Arg, Count
from tpudeploy.operations.declaration import Operation
from tpudeploy.planning.state_edits import records_at, select_addresses
from tpudeploy.results import Result, document, result
from tpudeploy.schemas.documents import state
from tpudeploy.schemas.schema_of import TEXT, As
from tpudeploy.serialization.attempt_row import AttemptRow, attempt_row
from tpudeploy.serialization.statefile import dumps
from tpudeploy.text.paint import Paint
from tpudeploy.views.state import history, state_text
from tpudeploy.workspace import Workspace

_Name: TypeAlias = Annotated[str, Arg("A deployment (default: the only one).", positional=True)]


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
        record = As(adds={"address": TEXT, "attempts": tuple[AttemptRow, ...]}, drops=frozenset({"attempts"}))
        keys = {"deployment": str, "lineage": str, "serial": int, "resources": tuple[Record, ...]}
        return document("state-show", keys, printed_as={Record: record})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
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
        row = {
            "serial": int,
            "lineage": str,
            "is_current": bool,
            "written": StateWriter | None,
            "slices": tuple[str, ...],
        }
        return document("state-history", {"deployment": str, "states": [row]})

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return history(self.current, self.states, width=width)

    def messages(self, paint: Paint) -> str:
        if self.current is None or self.current.serial <= 1 or self.earlier:
            return ""
        return "Earlier states are not kept here: turn on the bucket's object versioning to keep them."


@result
class StateFile(Result):
    """A whole state. Its text, and its document, are what `state_push` accepts."""

    FORMAT = "state"
    IS_VERBATIM = True
    IS_DOCUMENT = False
    state: State

    def to_dict(self) -> dict[str, Any]:
        keys: dict[str, Any] = json.loads(str(self))
        return keys

    @classmethod
    def schema(cls) -> Mapping[str, Any]:
        return state()

    def as_text(self, paint: Paint, width: int | None = None) -> str:
        return dumps(self.state).removesuffix("\n")

    @property
    def summary(self) -> str:
        return f"{self.state.deployment}, serial {self.state.serial}"


def state_list(
    workspace: Workspace,
    addresses: Annotated[
        Iterable[str],
        Arg("NAME, or NAME[0] for one replica (default: all).", metavar="ADDR", positional=True),
    ] = (),
) -> StateAddresses:
    """List the addresses in the states, or those of them that `addresses` name: NAME, or NAME[0] for one replica.

    Raise `errors.StateError` for one that no state tracks, `errors.UsageError` for one that is not an address.
    """
    selection = [parse_address(each) for each in addresses]
    states = {state.deployment: state for state in workspace.states()}
    return StateAddresses(
        addresses={
            address: tuple(attempt.name for attempt in states[address.deployment].record(address.replica or 0).attempts)
            for address in select_addresses(states, selection)
        }
    )


def state_show(
    workspace: Workspace,
    address: Annotated[str, Arg("NAME, or NAME[0] for one replica.", metavar="ADDR", positional=True)],
) -> StateRecords:
    """Show everything that the state records about one address. Raise as `state_list` does."""
    where = parse_address(address)
    state = state_of(workspace, where.deployment)
    return StateRecords(state=state, records=records_at(state, where))


def state_history(workspace: Workspace, name: _Name | None = None) -> StateHistory:
    """List who wrote which state of a deployment and when, for as long as the backend keeps them.

    `name` may be left out where there is only one deployment. Raise `errors.StateError` if there is no state.
    """
    deployment = deployment_of(workspace, name)
    backend = workspace.adapters.states
    current, earlier = backend.read(deployment).state, backend.earlier(deployment)
    if current is None and not earlier:
        raise StateError(f"{deployment} has no state here, and no earlier state is kept.")
    return StateHistory(deployment=deployment, current=current, earlier=tuple(earlier))


def state_pull(
    workspace: Workspace,
    name: _Name | None = None,
    *,
    serial: Annotated[Count | None, Arg("The state with this serial, as `history` lists it.")] = None,
) -> StateFile:
    """Return the current state of a deployment, or the earlier one with this serial, as text that can be pushed.

    `name` may be left out where there is only one deployment. Raise `errors.StateError` if there is no such state.
    """
    deployment = deployment_of(workspace, name)
    if serial is None:
        return StateFile(state=state_of(workspace, deployment))
    return StateFile(state=_earlier_state(workspace, deployment, serial))


def parse_address(text: str) -> Address:
    """Return the address. Raise `errors.UsageError` if it is invalid."""
    try:
        return Address.parse(text)
    except ValueError as cause:
        raise UsageError(f"{cause}.") from cause


def state_of(workspace: Workspace, name: str) -> State:
    """Return the state of a deployment. Raise `errors.StateError` without one."""
    backend = workspace.adapters.states
    state = backend.read(name).state
    if state is None:
        names = backend.names()
        hint = f"There are: {', '.join(names)}." if names else "No deployment has one."
        raise StateError(f"{name} has no state here.", hint=hint, guess=guess(name, names))
    return state


def deployment_of(workspace: Workspace, name: str | None) -> str:
    """Return the named deployment, or the only one. Raise `errors.UsageError` otherwise."""
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
    attempts = [to_json(attempt_row(attempt)) for attempt in record.attempts]
    return {"address": address(deployment, record.index), **to_json(record), "attempts": attempts}


OPERATIONS: Mapping[str, Operation] = {
    "state_list": Operation(
        run=state_list,
        results=(StateAddresses,),
    ),
    "state_show": Operation(
        run=state_show,
        results=(StateRecords,),
    ),
    "state_history": Operation(run=state_history, results=(StateHistory,)),
    "state_pull": Operation(run=state_pull, results=(StateFile,)),
}
