"""Parse the arguments of `tpudeploy state`: addresses and names of deployments."""

from __future__ import annotations

from tpudeploy.domain.errors import StateError, UsageError
from tpudeploy.domain.names import Address
from tpudeploy.domain.state import State
from tpudeploy.ports import StateBackend


def address(text: str) -> Address:
    """Return the parsed address. Raise `errors.UsageError` if it is invalid."""
    try:
        return Address.parse(text)
    except ValueError as cause:
        raise UsageError(f"{cause}.") from cause


def state_of(states: StateBackend, name: str) -> State:
    """Return the state of a deployment. Raise `errors.StateError` if there is none."""
    state = states.read(name).state
    if state is None:
        names = ", ".join(states.names())
        raise StateError(f"{name} has no state here.", hint=f"There are: {names}." if names else "None has one.")
    return state


def deployment(states: StateBackend, words: list[str]) -> str:
    """Return the named deployment, or the only one. Raise `errors.UsageError` otherwise."""
    if words:
        address_ = address(words[0])
        if address_.replica is not None:
            raise UsageError(
                f"`{words[0]}` is one replica, but a state belongs to a whole deployment: {address_.deployment}."
            )
        return address_.deployment
    names = states.names()
    if len(names) != 1:
        hint = f"There are: {', '.join(names)}." if names else "No deployment has one here."
        raise UsageError("Name the deployment whose state you mean.", hint=hint)
    return names[0]
