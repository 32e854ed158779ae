"""Event: the closed union of everything that happens during a run. Facts, no prose: views make the words."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TypeAlias

from tpudeploy.domain.attestation import Attested
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.outlook import Place
from tpudeploy.domain.plan import Action
from tpudeploy.domain.stage import Stage


@frozen
class _Event:
    """`at` is seconds since the epoch; `address` the replica's, e.g. `gemma[0]`."""

    at: float
    address: str


@frozen
class _OfRequest(_Event):
    """Of one request for a slice, or of the slice that came of it: `name` is the name of both."""

    name: str
    zone: str
    provisioning: str


@frozen
class ChangeStarted(_Event):
    action: Action


@frozen
class Requested(_OfRequest):
    """A slice was asked for; the intent stands in the state."""

    accelerator_type: str


@frozen
class NotGranted(_OfRequest):
    """Google refused, at once or later. `message` is Google's own text.

    `landed`: it came after the grant, which did not last; then the message may be ours.
    """

    kind: str
    message: str
    blocked_seconds: float
    landed: bool = False


@frozen
class PhaseChanged(_OfRequest):
    """The slice, or the machine on it, is at a new point of its life. `detail` is Google's or the machine's word.

    `before` is the phase that this run last told of it, "" where this is the first. `stage`: how far a boot is.
    """

    phase: str
    detail: str
    elapsed: float
    before: str = ""
    stage: Stage | None = None


@frozen
class Outlook(_Event):
    """How this replica stands with each of its places. Sent whenever any of it changed, after what changed it."""

    places: tuple[Place, ...]


@frozen
class Waiting(_Event):
    """Still nothing new: no request came further than one before it. Sent seldom, at growing intervals."""

    why: str
    elapsed: float
    places: tuple[Place, ...] = ()


@frozen
class LockHeld(_Event):
    """Another run holds the state of the deployment `address`: who, what for, since when. See domain/lock.py.

    `created` and `heartbeat` are None where the lock does not say who holds it.
    """

    id: str
    operation: str
    who: str
    host: str
    pid: int | None
    created: float | None
    heartbeat: float | None
    run_url: str


@frozen
class Retrying(_Event):
    """The cloud did not answer; it is looked at again. `address` is the deployment's name."""

    message: str
    seconds: float


@frozen
class LockWaiting(_Event):
    """Somebody holds the lock, as `message` says; it is asked for again. `address` is the deployment's name."""

    message: str
    seconds: float


@frozen
class Draining(_OfRequest):
    """Clients are sent to another slice; this one serves on, for `seconds` at least."""

    seconds: float


@frozen
class Released(_OfRequest):
    reason: str


@frozen
class Reclaimed(_OfRequest):
    """A slice that was given up for another one is kept after all: Google still has it, and the other one failed."""


@frozen
class Gone(_OfRequest):
    """Looked for and not found: nothing of this name is left."""

    reason: str


@frozen
class Adopted(_OfRequest):
    """A slice that no state remembered is remembered from here on."""


@frozen
class Updated(_OfRequest):
    """`what`: the `node` alone, a `change` for it to take over, or a `restart` of the machine."""

    what: str


@frozen
class Serving(_OfRequest):
    """A real completion came back."""

    url: str
    door: str
    answer: str
    elapsed: float


@frozen
class Pinned(_Event):
    """From here on this name means `to`, whatever it comes to mean elsewhere. `before` is "" where it was not pinned.

    `kind` is `image` or `model`; `address` is empty, for it is the whole project's.
    """

    kind: str
    name: str
    to: str
    before: str


@frozen
class Verified(_OfRequest):
    """What the engine of a slice does was held against what was declared: once, when it has come to serve.

    `held` is how many declared settings are in effect. `broken` are those that are not, `off` what was predicted and
    is not so. `blocks` and `tokens` are those of its KV cache, "" where nobody says. `silent`: which witness told
    nothing, and why.
    """

    held: int
    broken: tuple[Attested, ...]
    off: tuple[Attested, ...]
    blocks: str
    tokens: str
    silent: Mapping[str, str]


@frozen
class Warned(_Event):
    message: str
    hint: str


@frozen
class ChangeDone(_Event):
    """Every `ChangeStarted` has one end, and one only: this, `ChangeLeft` or `ChangeFailed`."""

    action: Action
    elapsed: float


@frozen
class ChangeLeft(_Event):
    """Begun and saved, and not at its end: no more was to be waited for, or the run was interrupted."""

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
    | Pinned
    | Verified
    | Warned
    | ChangeDone
    | ChangeLeft
    | ChangeFailed
)
