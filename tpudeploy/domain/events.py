"""Event: the closed union of everything that happens during a run. Facts, no prose: views make the words."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tpudeploy.domain.outlook import Place
from tpudeploy.domain.plan import Action


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """`at` is seconds since the epoch; `address` the replica's, e.g. `gemma[0]`."""

    at: float
    address: str


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfRequest(_Event):
    """Of one request for a slice, or of the slice that came of it: `name` is the name of both."""

    name: str
    zone: str
    provisioning: str


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStarted(_Event):
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested(_OfRequest):
    """A slice was asked for; the intent stands in the state."""

    accelerator_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotGranted(_OfRequest):
    """Google refused, at once or later. `message` is Google's own text."""

    kind: str
    message: str
    blocked_seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(_OfRequest):
    """The slice, or the machine on it, is at a new point of its life. `detail` is Google's or the machine's word."""

    phase: str
    detail: str
    elapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook(_Event):
    """How this replica stands with each of its places. Sent whenever any of it changed, after what changed it."""

    places: tuple[Place, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(_Event):
    """Still nothing new: no request came further than one before it. Sent seldom, at growing intervals."""

    why: str
    elapsed: float
    places: tuple[Place, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying(_Event):
    """The cloud did not answer; it is looked at again. `address` is the deployment's name."""

    message: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(_OfRequest):
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone(_OfRequest):
    """Looked for and not found: nothing of this name is left."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted(_OfRequest):
    """A slice that no state remembered is remembered from here on."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated(_OfRequest):
    what: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(_OfRequest):
    """A real completion came back."""

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
    | Outlook
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
