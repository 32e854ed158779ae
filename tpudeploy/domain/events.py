"""Event: the closed union of everything that happens during a run. Facts, no prose: views make the words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tpudeploy.domain.plan import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """`at` is seconds since the epoch; `address` the replica's, e.g. `gemma[0]`."""

    at: float
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStarted(_Event):
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested(_Event):
    """A slice was asked for; the intent stands in the state."""

    name: str
    zone: str
    provisioning: str
    accelerator_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotGranted(_Event):
    """Google refused, at once or later. `message` is Google's own text."""

    name: str
    zone: str
    provisioning: str
    kind: str
    message: str
    blocked_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(_Event):
    """The slice, or the machine on it, is at a new point of its life. `detail` is Google's or the machine's word."""

    name: str
    zone: str
    phase: str
    detail: str
    elapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(_Event):
    """Still nothing new. Sent seldom, at growing intervals."""

    why: str
    elapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying(_Event):
    """The cloud did not answer; it is looked at again. `address` is the deployment's name."""

    message: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(_Event):
    name: str
    zone: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone(_Event):
    """Looked for and not found: nothing of this name is left."""

    name: str
    zone: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted(_Event):
    """A slice that no state remembered is remembered from here on."""

    name: str
    zone: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated(_Event):
    name: str
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(_Event):
    """A real completion came back."""

    name: str
    zone: str
    url: str
    door: str
    answer: str
    elapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(_Event):
    message: str
    hint: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDone(_Event):
    action: Action
    elapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeFailed(_Event):
    action: Action
    code: str
    message: str
    hint: str


Event: TypeAlias = (
    ChangeStarted
    | Requested
    | NotGranted
    | PhaseChanged
    | Waiting
    | Retrying
    | Released
    | Gone
    | Adopted
    | Updated
    | Serving
    | Warned
    | ChangeDone
    | ChangeFailed
)
