"""The life of an attempt: its states, the events that change it, and the one table that says what may follow what.

A combination that cannot happen cannot be built: each state has its own fields. ARCHITECTURE.md draws the table.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, fields, replace
from enum import Enum
from typing import Annotated, Any, TypeAlias, get_args

from tpudeploy.domain.stored import Tagged

# States. Times are in seconds since the epoch.


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested:
    """The request is saved. The cloud has not listed it yet, so a 404 may only mean that it is late."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Queued:
    """The cloud has listed the request. From now on a 404 means that it no longer exists."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Landing:
    """The cloud is creating the machine, which was first observed at `provisioning_at`."""

    provisioning_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Starting:
    """The slice is granted, and its server has not served clients since its last start."""

    granted_at: float
    provisioning_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving:
    """Clients may use the endpoint of the slice."""

    granted_at: float
    provisioning_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Draining:
    """Clients are sent to another slice from `draining_at` on. Some may still use this one."""

    granted_at: float
    draining_at: float
    provisioning_at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Detached:
    """Clients were sent to another slice at `draining_at`, and the server was stopped or started again after that."""

    granted_at: float
    draining_at: float
    provisioning_at: float | None = None


Waiting: TypeAlias = Requested | Queued | Landing
Granted: TypeAlias = Starting | Serving | Draining | Detached


@dataclass(frozen=True, slots=True, kw_only=True)
class Lost:
    """The cloud took the machine away, and the state records the loss, so it is not reported again."""

    before: Annotated[Granted, Tagged()]


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaimed:
    """The slice was released as a spare and is needed after all. `deletion` may still be carried out."""

    before: Annotated[Waiting | Granted | Lost, Tagged()]
    deletion: str | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Releasing:
    """The slice was requested to be deleted at `releasing_at`. `deletion` is the operation, if the cloud named it.

    `is_spare`: it was released only because another slice was expected to replace it.
    """

    before: Annotated[Waiting | Granted | Lost | Reclaimed, Tagged()]
    releasing_at: float
    reason: str = ""
    is_spare: bool = False
    deletion: str | None = None


Life: TypeAlias = Waiting | Granted | Lost | Reclaimed | Releasing


# Events.


@dataclass(frozen=True, slots=True, kw_only=True)
class Listed:
    """The cloud lists the request."""


@dataclass(frozen=True, slots=True, kw_only=True)
class MachineListed:
    """The cloud shows that it creates a machine for the request."""

    provisioning_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class SliceGranted:
    """The machine is up."""

    granted_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerAnswered:
    """A completion arrived, and clients may use the endpoint from now on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ServerStopped:
    """The server was restarted, replaced, or observed not to serve."""


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainBegan:
    """Clients are sent to another slice from now on."""

    draining_at: float


@dataclass(frozen=True, slots=True, kw_only=True)
class DrainEnded:
    """Clients are sent to this slice again."""


@dataclass(frozen=True, slots=True, kw_only=True)
class LossRecorded:
    """The user recorded the loss of the slice with `-refresh-only`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseBegan:
    """The deletion of the slice is about to be requested, for the first time or again."""

    releasing_at: float
    reason: str
    is_spare: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class DeletionNamed:
    """The cloud named the operation that deletes the slice."""

    deletion: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ReleaseWithdrawn:
    """The slice is needed after all."""


Event: TypeAlias = (
    Listed
    | MachineListed
    | SliceGranted
    | ServerAnswered
    | ServerStopped
    | DrainBegan
    | DrainEnded
    | LossRecorded
    | ReleaseBegan
    | DeletionNamed
    | ReleaseWithdrawn
)
STATES: tuple[type[Life], ...] = get_args(Life)


class Rule(Enum):
    """What an event does to a state that it does not end."""

    UNCHANGED = "unchanged"  # the event brings nothing new
    INSIDE = "inside"  # the event changes the state before, which the state wraps


_OBSERVED = {Listed: Rule.UNCHANGED, MachineListed: Rule.UNCHANGED, SliceGranted: Rule.UNCHANGED}
_INSIDE = dict.fromkeys(
    (Listed, MachineListed, SliceGranted, ServerAnswered, ServerStopped, DrainBegan, DrainEnded), Rule.INSIDE
)

# One row for each state: the event, and the state that follows. An event that is not in the row is refused.
TRANSITIONS: Mapping[type[Life], Mapping[type[Event], type[Life] | Rule]] = {
    Requested: {
        Listed: Queued,
        MachineListed: Landing,
        SliceGranted: Starting,
        ReleaseBegan: Releasing,
    },
    Queued: {
        Listed: Rule.UNCHANGED,
        MachineListed: Landing,
        SliceGranted: Starting,
        ReleaseBegan: Releasing,
    },
    Landing: {
        Listed: Rule.UNCHANGED,
        MachineListed: Rule.UNCHANGED,
        SliceGranted: Starting,
        ReleaseBegan: Releasing,
    },
    Starting: {
        **_OBSERVED,
        ServerAnswered: Serving,
        ServerStopped: Rule.UNCHANGED,
        LossRecorded: Lost,
        ReleaseBegan: Releasing,
    },
    Serving: {
        **_OBSERVED,
        ServerAnswered: Rule.UNCHANGED,
        ServerStopped: Starting,
        DrainBegan: Draining,
        LossRecorded: Lost,
        ReleaseBegan: Releasing,
    },
    Draining: {
        **_OBSERVED,
        ServerAnswered: Rule.UNCHANGED,
        ServerStopped: Detached,
        DrainEnded: Serving,
        LossRecorded: Lost,
        ReleaseBegan: Releasing,
    },
    Detached: {
        **_OBSERVED,
        ServerAnswered: Draining,
        ServerStopped: Rule.UNCHANGED,
        DrainEnded: Starting,
        LossRecorded: Lost,
        ReleaseBegan: Releasing,
    },
    Lost: {
        **_INSIDE,
        ReleaseBegan: Releasing,
    },
    Reclaimed: {
        **_INSIDE,
        LossRecorded: Rule.INSIDE,
        ReleaseBegan: Releasing,
    },
    Releasing: {
        **_INSIDE,
        ReleaseBegan: Releasing,
        DeletionNamed: Releasing,
        ReleaseWithdrawn: Reclaimed,
    },
}


class IllegalTransition(Exception):
    """An event arrived in a state in which it cannot happen: a bug of ours, never the user's or the cloud's doing."""


def transition(life: Life, event: Event) -> Life:
    """Return the state that follows. Raise `IllegalTransition` for an event that the state does not allow."""
    rule = TRANSITIONS[type(life)].get(type(event))
    match rule:
        case None:
            raise IllegalTransition(f"{type(event).__name__} in the state {type(life).__name__}")
        case Rule.UNCHANGED:
            return life
        case Rule.INSIDE:
            # What is learned while a slice leaves, or after its loss, is still recorded: it may be billed meanwhile.
            wrapper: Any = life
            changed: Life = replace(wrapper, before=transition(wrapper.before, event))
            return changed
        case _:
            return _enter(rule, life, event)


def _enter(state: type[Life], life: Life, event: Event) -> Life:
    """Build the next state: its fields come from the event first, then from the state before."""
    values: dict[str, Any] = {**_values(life), **_values(event)}
    if isinstance(life, Releasing) and isinstance(life.before, Reclaimed) and state is Reclaimed:
        # It is reclaimed a second time. The deletion that may still be carried out is the latest one with a name.
        values = {"before": life.before.before, "deletion": life.deletion or life.before.deletion}
    elif state in {Lost, Releasing} and not isinstance(life, Releasing):
        values["before"] = life
        values.pop("deletion", None)  # that of an earlier release stays with the state before
    entered: Life = state(**{each.name: values[each.name] for each in fields(state) if each.name in values})
    return entered


def _values(thing: Life | Event) -> dict[str, Any]:
    return {each.name: getattr(thing, each.name) for each in fields(thing)}


def progress(life: Life) -> Waiting | Granted:
    """Return how far the request came: the state without its release, its reclaim and its loss."""
    while isinstance(life, Releasing | Reclaimed | Lost):
        life = life.before
    return life


def not_later_than(life: Life, now: float) -> Life:
    """Return the state with no time after `now`: the clock went back, so every wait begins again."""
    changes: dict[str, Any] = {}
    for name, value in _values(life).items():
        if isinstance(value, float | int) and not isinstance(value, bool) and value > now:
            changes[name] = now
        elif name == "before":
            before = not_later_than(value, now)
            if before is not value:
                changes[name] = before
    return replace(life, **changes) if changes else life
