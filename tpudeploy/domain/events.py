"""Event: the closed union of everything that happens during a run. Events hold facts; the views write the text.

Why: decision 10 in docs/decisions.md.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, ClassVar, TypeAlias

from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.deployment import describe_place
from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.plan import Action
from tpudeploy.domain.request_table import PlaceStatus
from tpudeploy.domain.slices import Absence
from tpudeploy.domain.status import BootStage
from tpudeploy.domain.verify import VerifiedSetting


@dataclass(frozen=True, slots=True, kw_only=True)
class _Event:
    """The base of all events. `at` is in seconds since the epoch; `address` is the replica's, e.g. `gemma[0]`.

    Every `elapsed` is in seconds since this run began its work on the deployment, whatever earlier runs did for it.
    """

    at: float
    address: str

    def __str__(self) -> str:
        """Return the event as a sentence, once a workspace has been used; else its fields."""
        return Sentences.write(self)


class Sentences:
    """Writes an event as text for `str`. The text is the views' (tpudeploy/wiring.py sets it)."""

    write: ClassVar[Callable[[Any], str]] = staticmethod(repr)


@dataclass(frozen=True, slots=True, kw_only=True)
class _OfRequest(_Event):
    """An event of one request for a slice or of the granted slice; `name` is the name of both.

    `backend` is the API that it was requested from.
    """

    name: str
    zone: str
    provisioning: str
    backend: str = DEFAULT_BACKEND

    @property
    def place(self) -> str:
        """Return the place as text: `us-east5-a, spot`, and the API where it is not the TPU API."""
        return describe_place(self.zone, self.provisioning, self.backend)


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeStarted(_Event):
    action: Action


@dataclass(frozen=True, slots=True, kw_only=True)
class Requested(_OfRequest):
    """A slice was requested. The state records the intent."""

    accelerator_type: str


@dataclass(frozen=True, slots=True, kw_only=True)
class NotGranted(_OfRequest):
    """Google refused, at once or later. `message` is Google's own text.

    `landed`: the refusal came after the grant, which did not last; then the message may be ours.
    """

    kind: str
    message: str
    blocked_seconds: float
    landed: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class PhaseChanged(_OfRequest):
    """The slice or its machine reached a new phase. `detail` is Google's text or the machine's.

    `before` is the phase in this run's previous event, or "" for the first. `stage` is the progress of a boot.
    """

    phase: str
    detail: str
    elapsed: float
    before: str = ""
    stage: BootStage | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Outlook(_Event):
    """The status of this replica's requests in each place. Sent after each event that changes any of it."""

    places: tuple[PlaceStatus, ...]


@dataclass(frozen=True, slots=True, kw_only=True)
class Waiting(_Event):
    """Nothing has changed: no request progressed further than an earlier one. Sent at growing intervals."""

    why: str
    elapsed: float
    places: tuple[PlaceStatus, ...] = ()


@dataclass(frozen=True, slots=True, kw_only=True)
class LockHeld(_Event):
    """Another run holds the state lock of the deployment `address`. See domain/lock.py for the fields.

    `created` and `heartbeat` are None where the lock does not name its holder.
    """

    id: str
    operation: str
    who: str
    host: str
    pid: int | None
    created: float | None
    heartbeat: float | None
    run_url: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Retrying(_Event):
    """The cloud did not answer; the run observes it again. `address` is the deployment's name."""

    message: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class LockWaiting(_Event):
    """Another run holds the lock, as `message` says; this run tries again. `address` is the deployment's name."""

    message: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Draining(_OfRequest):
    """Clients are sent to another slice; this one continues to serve for at least `seconds`."""

    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class Released(_OfRequest):
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaimed(_OfRequest):
    """A slice that was released in favour of another one is kept: it still exists, and is needed or better."""

    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Gone(_OfRequest):
    """The slice no longer exists."""

    reason: Absence


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopted(_OfRequest):
    """The state tracks an existing slice that no state tracked before."""


class UpdateSubject(StrEnum):
    """What was updated on a node: its metadata alone, its server, or the node itself by a restart."""

    NODE = "node"
    CHANGE = "change"
    RESTART = "restart"


@dataclass(frozen=True, slots=True, kw_only=True)
class Updated(_OfRequest):
    what: UpdateSubject


@dataclass(frozen=True, slots=True, kw_only=True)
class Serving(_OfRequest):
    """A real completion came back."""

    url: str
    door: str
    answer: str
    elapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class EndPassed(_Event):
    """The end of the deployment `address` has come, and its slices are deleted. `why` is the key that says so."""

    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HoursBegan(_Event):
    """The hours of the deployment `address` have begun, and its slices are requested.

    `cause` and `why` are those of the end before.
    """

    cause: EndCause
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Scaled(_Event):
    """The number of replicas was changed within the bounds of `scale`. `address` is the deployment's name."""

    before: int
    after: int
    why: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Pinned(_Event):
    """A name was pinned to `to`, whatever it resolves to later. `before` is "" where it was not pinned.

    `kind` is `image` or `model`; `address` is empty, because a pin belongs to the whole project.
    """

    kind: str
    name: str
    to: str
    before: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Verified(_OfRequest):
    """The effective settings of an engine were compared with the declared ones, once, after it began to serve.

    `held` is the number of declared settings in effect. `broken` are those that are not, `off` are wrong predictions.
    `blocks` and `tokens` are those of its KV cache, or "". `silent` says for each source that gave nothing why.
    """

    held: int
    broken: tuple[VerifiedSetting, ...]
    off: tuple[VerifiedSetting, ...]
    blocks: str
    tokens: str
    silent: Mapping[str, str]


@dataclass(frozen=True, slots=True, kw_only=True)
class Warned(_Event):
    """A problem that ends no change. `code` is that of the error that ended the watch over a deployment, or ""."""

    message: str
    hint: str
    code: str = ""


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeDone(_Event):
    """A change is complete. Every `ChangeStarted` has exactly one end: this, `ChangeLeft` or `ChangeFailed`."""

    action: Action
    elapsed: float


@dataclass(frozen=True, slots=True, kw_only=True)
class ChangeLeft(_Event):
    """A change is saved and in progress: the run was not to wait longer, or was interrupted."""

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
    | LockHeld
    | Retrying
    | LockWaiting
    | Draining
    | Released
    | Reclaimed
    | Gone
    | Adopted
    | Updated
    | Serving
    | Scaled
    | EndPassed
    | HoursBegan
    | Pinned
    | Verified
    | Warned
    | ChangeDone
    | ChangeLeft
    | ChangeFailed
)
