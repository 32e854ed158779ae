"""Define the status of replicas and deployments, the progress of a boot, and the timeline of a start."""

from __future__ import annotations

from tpudeploy.domain.boot_log import Phase, Reading
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.serialization import to_json

_ON_THEIR_WAY = {"hidden", "refused", "waiting", "leaving", "draining", "up, not serving"}


@frozen
class Stage:
    """The progress of a boot. `done` and `of` count graphs during compilation, else percent; None if unknown.

    `left_seconds` is the estimate until it serves, or None. `is_least`: steps of unknown duration follow.
    """

    name: str
    done: int | None = None
    of: int | None = None
    left_seconds: float | None = None
    is_least: bool = False


@frozen
class ReplicaStatus:
    """`boot` is the phase that the machine last reported, `stage` how far in it, `detail` what a probe met.

    `undo` is why the node goes back, or has gone back, from a change to the previous server, "" where it does not.

    `serving` None: not known, because nothing was probed. Ages in seconds; `usd_per_hour` at list price, of what is
    billed. Of a request that still waits: when it `lapses_in`, what it costs an hour `usd_per_hour_granted`, and
    `usd_most` until Google ends its run, where something but a person does.
    """

    address: str
    state: str
    slice_name: str = ""
    zone: str = ""
    provisioning: str = ""
    accelerator_type: str = ""
    cloud: str = ""
    boot: str = ""
    boot_detail: str = ""
    stage: Stage | None = None
    undo: str = ""
    serving: bool | None = None
    detail: str = ""
    url: str = ""
    age: float | None = None
    ends_in: float | None = None
    usd_per_hour: float | None = None
    lapses_in: float | None = None
    usd_per_hour_granted: float | None = None
    usd_most: float | None = None

    @property
    def is_on_its_way(self) -> bool:
        """Whether it will change by itself."""
        boots = self.state == "up" and self.boot not in {"", "serving"}
        return (boots or self.state in _ON_THEIR_WAY) and self.boot != "failed"


@frozen
class DeploymentStatus:
    """`underway`: who began what has not reached its end, "" where nothing is unfinished.

    `continue_with` is the command that finishes it, without its profiles. `usd_per_hour_at_once` is what may be billed
    at one time if every request that is out is granted; None where none is out beside another, or a price is unknown.

    `error`: why nothing can be known of it; it has no replicas then. None where it was looked at.

    `lock`: who holds the lock of its state, and the command that frees it, where a run that was killed may have left
    it.
    """

    name: str
    replicas: tuple[ReplicaStatus, ...]
    underway: str = ""
    continue_with: str = ""
    lock: str = ""
    usd_per_hour_at_once: float | None = None
    error: TpudeployError | None = None

    def to_dict(self) -> dict[str, object]:
        """Return one of the `deployments` of `status --json`."""
        document: dict[str, object] = to_json(self)
        return document | {"error": None if self.error is None else self.error.to_dict()}


@frozen
class Timeline:
    """One start. `reading` holds the parts; `critical` are those on the critical path, first to last.

    `cache` is the machine's report of its compile cache, or "". `is_whole` False: its log could not be read, so the
    work of the server in its container is one part.
    """

    address: str
    slice_name: str
    reading: Reading
    critical: tuple[Phase, ...]
    cache: str = ""
    is_whole: bool = True

    def to_dict(self) -> dict[str, object]:
        """Return one of the `timelines` of `status --timeline --json`."""
        reading = self.reading.to_dict()
        return {
            "address": self.address,
            "slice": self.slice_name,
            "serving": reading["serving"],
            "seconds": reading["seconds"],
            "phases": reading["phases"],
            "critical": [phase.name for phase in self.critical],
            "cache": self.cache,
            "whole": self.is_whole,
        }
