"""Step: every step that `decide` can return. It is safe to stop after each."""

from __future__ import annotations

from dataclasses import dataclass
from typing import TypeAlias

from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Candidate
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.slices import Absence, Health, Refusal
from tpudeploy.domain.state import RefusalRecord


@dataclass(frozen=True, slots=True, kw_only=True)
class Request:
    """Request a slice, under the next derived name."""

    replica: int
    candidate: Candidate


@dataclass(frozen=True, slots=True, kw_only=True)
class Release:
    """Delete a slice. `is_spare`: another slice is expected to replace it; it is kept if that one fails.

    `is_refused`: the request failed, so nothing is there unless it appears after all.
    """

    replica: int
    name: str
    reason: str
    refusal: Refusal | None = None
    is_spare: bool = False
    is_refused: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Reclaim:
    """Keep a slice that was released as a spare: it still exists, and the other slice is lost, or serves later."""

    replica: int
    name: str
    reason: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Forget:
    """Drop an attempt: its slice certainly no longer exists, or was never created."""

    replica: int
    name: str
    absence: Absence
    refusal: Refusal | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class PatchMetadata:
    """Update the node's labels, tags and metadata, which its next boot reads. `boot` is the server in them."""

    replica: int
    name: str
    boot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class PushChange:
    """Update the node so that its watcher applies the change: it restarts the container, and the machine stays up."""

    replica: int
    name: str
    boot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Reset:
    """Reboot into the server whose fingerprint is `boot`, for a node that has not picked up a change."""

    replica: int
    name: str
    boot: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Adopt:
    """Record that the slice already matches the profile."""

    replica: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Drain:
    """Record that clients are sent elsewhere from now on, or, if `begins` is False, that they are sent here again."""

    replica: int
    name: str
    begins: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Renew:
    """Record that its run ends and that a successor is to be requested."""

    replica: int
    name: str


@dataclass(frozen=True, slots=True, kw_only=True)
class Wait:
    """Wait, at most `seconds`; None means until an observation changes.

    `rationed_at` is the API of which it waits for one of the project's creates, which waiting replicas get in turn.
    `is_for_replicas`: it waits for other replicas, and nothing of its own is on its way.
    """

    replica: int
    why: str
    seconds: float | None = None
    rationed_at: Backend | None = None
    is_for_replicas: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class Done:
    """The replica has its desired state; `health` is None if that is absence."""

    replica: int
    name: str = ""
    health: Health | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class GiveUp:
    """Stop with an error. `name` is the slice whose server failed, or "".

    `serves`: the change of its server failed, and the previous server serves again.
    `refusals` are Google's answers that end a hunt, each of a cause with a remedy of its own.
    """

    replica: int
    error: TpudeployError
    name: str = ""
    serves: bool = False
    refusals: tuple[RefusalRecord, ...] = ()


Step: TypeAlias = (
    Request
    | Release
    | Reclaim
    | Forget
    | PatchMetadata
    | PushChange
    | Reset
    | Adopt
    | Drain
    | Renew
    | Wait
    | Done
    | GiveUp
)
