"""Event: the closed union of everything that happens during a run. Facts, no prose: views make the words."""

from __future__ import annotations

from typing import TypeAlias

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.plan import Action


@frozen
class _Event:
    """`at` is seconds since the epoch; `address` the replica's, e.g. `gemma[0]`."""

    at: float
    address: str


@frozen
class ChangeStarted(_Event):
    action: Action


@frozen
class Requested(_Event):
    """A slice was asked for; the intent stands in the state."""

    name: str
    zone: str
    provisioning: str
    accelerator_type: str


@frozen
class NotGranted(_Event):
    """Google refused, at once or later. `message` is Google's own text."""

    name: str
    zone: str
    provisioning: str
    kind: str
    message: str
    blocked_seconds: float


@frozen
class PhaseChanged(_Event):
    """The slice, or the machine on it, is at a new point of its life. `detail` is Google's or the machine's word."""

    name: str
    zone: str
    phase: str
    detail: str
    elapsed: float


@frozen
class Waiting(_Event):
    """Still nothing new. Sent seldom, at growing intervals."""

    why: str
    elapsed: float


@frozen
class Retrying(_Event):
    """The cloud did not answer; it is looked at again. `address` is the deployment's name."""

    message: str
    seconds: float


@frozen
class Released(_Event):
    name: str
    zone: str
    reason: str


@frozen
class Gone(_Event):
    """Looked for and not found: nothing of this name is left."""

    name: str
    zone: str
    reason: str


@frozen
class Updated(_Event):
    name: str
    what: str


@frozen
class Serving(_Event):
    """A real completion came back."""

    name: str
    zone: str
    url: str
    door: str
    answer: str
    elapsed: float


@frozen
class Warned(_Event):
    message: str
    hint: str


@frozen
class ChangeDone(_Event):
    action: Action
    elapsed: float


@frozen
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
    | Updated
    | Serving
    | Warned
    | ChangeDone
    | ChangeFailed
)
