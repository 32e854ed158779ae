"""Step: everything `decide` can ask for. Each is safe to stop after."""

from __future__ import annotations

from typing import TypeAlias

from tpudeploy.domain.deployment import Candidate
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.slices import Health, Refusal


@frozen
class Request:
    """Ask for a slice, under the next derived name."""

    replica: int
    candidate: Candidate


@frozen
class Release:
    """`is_spare`: only because another slice is expected to do; it is taken back where that one fails."""

    replica: int
    name: str
    reason: str
    refusal: Refusal | None = None
    is_spare: bool = False


@frozen
class Reclaim:
    """Keep a slice that was released as a spare: Google still has it, and what it was spared for is lost."""

    replica: int
    name: str


@frozen
class Forget:
    """The slice is certainly gone, or was never made."""

    replica: int
    name: str
    reason: str
    refusal: Refusal | None = None


@frozen
class Update:
    """Send the node's labels, tags, and the metadata that its next boot reads. `boot` is the server in it."""

    replica: int
    name: str
    boot: str


@frozen
class Tell:
    """The same, for its watcher to take over: it restarts the container, and the machine stays up."""

    replica: int
    name: str
    boot: str


@frozen
class Restart:
    """Reboot into the server whose fingerprint is `boot`: for a node that has not taken over a change."""

    replica: int
    name: str
    boot: str


@frozen
class Adopt:
    """The slice is what the profile says, as it stands: write that down."""

    replica: int
    name: str


@frozen
class Drain:
    """Write down that clients are sent elsewhere from now on; not `begins`: that they are sent here again."""

    replica: int
    name: str
    begins: bool = True


@frozen
class Renew:
    """Write down that its run ends, and that a successor is to be asked for."""

    replica: int
    name: str


@frozen
class Wait:
    """Nothing to do now. `seconds` is the longest sensible wait; None where only the world can tell.

    `is_rationed`: for one of the project's creates, of which each that waits has its turn.
    """

    replica: int
    why: str
    seconds: float | None = None
    is_rationed: bool = False


@frozen
class Done:
    """The replica is as wanted; `health` is None when what was wanted is absence."""

    replica: int
    name: str = ""
    health: Health | None = None


@frozen
class GiveUp:
    """`name` is the slice whose server failed, "" where there is none.

    `serves`: the change of its server failed, and the server before serves again.
    """

    replica: int
    error: TpudeployError
    name: str = ""
    serves: bool = False


Step: TypeAlias = (
    Request | Release | Reclaim | Forget | Update | Tell | Restart | Adopt | Drain | Renew | Wait | Done | GiveUp
)
