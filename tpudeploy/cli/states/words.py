"""The words that people give to `tpudeploy state`: addresses, and names of deployments."""

from __future__ import annotations

from tpudeploy.domain.address import Address
from tpudeploy.domain.errors import StateError, UsageError
from tpudeploy.domain.state import State
from tpudeploy.ports import StateBackend


def address(text: str) -> Address:
    """Raise `errors.UsageError`."""
    try:
        return Address.parse(text)
    except ValueError as cause:
        raise UsageError(f"{cause}.") from cause


def state_of(states: StateBackend, name: str) -> State:
    """Raise `errors.StateError` where there is none."""
    found = states.read(name).state
    if found is None:
        there = ", ".join(states.names())
        raise StateError(f"{name} has no state here.", hint=f"There are: {there}." if there else "None has one.")
    return found


def deployment(states: StateBackend, words: list[str]) -> str:
    """The one that is named, or the only one there is. Raise `errors.UsageError`."""
    if words:
        named = address(words[0])
        if named.replica is not None:
            raise UsageError(f"`{words[0]}` is one replica; a state is of a whole deployment: {named.deployment}.")
        return named.deployment
    there = states.names()
    if len(there) != 1:
        hint = f"There are: {', '.join(there)}." if there else "No deployment has one here."
        raise UsageError("Name the deployment whose state you mean.", hint=hint)
    return there[0]
