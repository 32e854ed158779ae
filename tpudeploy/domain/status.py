"""Define the status of replicas and deployments, and the progress of a boot."""

from __future__ import annotations

from dataclasses import dataclass

from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.ceiling import Ceiling
from tpudeploy.domain.ending import PastEnd
from tpudeploy.domain.errors import TpudeployError
from tpudeploy.domain.serialization import to_json
from tpudeploy.domain.slices import ServerLoad
from tpudeploy.domain.state import ScalingStep

_ON_THEIR_WAY = {"hidden", "refused", "waiting", "leaving", "draining", "up, not serving"}


@dataclass(frozen=True, slots=True, kw_only=True)
class BootStage:
    """The progress of a boot. `done` and `of` count graphs during compilation, else percent; None if unknown.

    `left_seconds` is the estimate until it serves, or None. `is_least`: steps of unknown duration follow.
    """

    name: str
    done: int | None = None
    of: int | None = None
    left_seconds: float | None = None
    is_least: bool = False


@dataclass(frozen=True, slots=True, kw_only=True)
class ReplicaStatus:
    """The status of one replica. `boot` is the last phase that the machine reported, `stage` the progress in it.

    `detail` is the result of a probe. `url` is the address that was probed; where none was, the one that Google reports
    for a slice that has served. `undo` is why the node returns, or returned, to the previous server, or "".
    `waits` is why the change of a run that did not finish waits for other replicas, or "".
    `serving` is None if nothing was probed, or the server was reached and gave no answer. Ages are in seconds;
    `usd_per_hour` is the list price of what is billed.
    For a pending request: it `lapses_in` seconds and costs `usd_per_hour_granted` if granted, at most `usd_most` until
    Google ends its run (None without an end). `load` is what the server reports of its requests; None if it was not
    asked, as where the deployment has one replica.
    """

    address: str
    state: str
    slice_name: str = ""
    zone: str = ""
    provisioning: str = ""
    accelerator_type: str = ""
    model: str = ""
    cloud: str = ""
    boot: str = ""
    boot_detail: str = ""
    stage: BootStage | None = None
    undo: str = ""
    waits: str = ""
    serving: bool | None = None
    detail: str = ""
    url: str = ""
    age: float | None = None
    ends_in: float | None = None
    usd_per_hour: float | None = None
    lapses_in: float | None = None
    usd_per_hour_granted: float | None = None
    usd_most: float | None = None
    backend: str = DEFAULT_BACKEND
    load: ServerLoad | None = None

    @property
    def is_on_its_way(self) -> bool:
        """Whether the status will change by itself."""
        boots = self.state == "up" and self.boot not in {"", "serving"}
        return (boots or self.state in _ON_THEIR_WAY) and self.boot != "failed"


@dataclass(frozen=True, slots=True, kw_only=True)
class ScaleStatus:
    """The number of replicas of a deployment that may be scaled, its bounds, and the last step; None without one.

    `ago` is the seconds since that step.
    """

    replicas: int
    min: int
    max: int
    last: ScalingStep | None = None
    ago: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class LateSlice:
    """A slice whose request the state has forgotten. `cloud` is Google's state of it; `usd_per_hour` its list price."""

    name: str
    zone: str
    cloud: str
    usd_per_hour: float | None


@dataclass(frozen=True, slots=True, kw_only=True)
class DeploymentStatus:
    """The status of one deployment. `underway` names the run that did not finish, or is "".

    `continue_with` is the command that finishes it, without its profiles. `usd_per_hour_at_once` is what may be billed
    at one time if every pending request is granted; None for fewer than two requests, or an unknown price. `ceiling` is
    the same with what is known of it.

    `scale` is None where the number of replicas is fixed, or no profile was given.

    `error` is the reason why the deployment cannot be observed, and it has no replicas then; or why one of its replicas
    is not observed, whose `serving` is None then.

    `late` are slices that appeared after the state had forgotten their requests: they are billed, and no state tracks
    them.

    `ends_in` is the seconds until its end, by the key `ends_by` of its profile; None without one, without its profile,
    or before it starts. `ended` says that its end has come; `unended` is why a machine could not delete its own request
    then, or "".

    `lock` is the holder of the state lock with the command that releases it, if a killed run may have left it behind.
    """

    name: str
    replicas: tuple[ReplicaStatus, ...]
    underway: str = ""
    continue_with: str = ""
    lock: str = ""
    usd_per_hour_at_once: float | None = None
    ceiling: Ceiling | None = None
    error: TpudeployError | None = None
    scale: ScaleStatus | None = None
    late: tuple[LateSlice, ...] = ()
    ends_in: float | None = None
    ends_by: str = ""
    ended: PastEnd | None = None
    unended: str = ""

    @property
    def is_visible(self) -> bool:
        """Whether its machines were observed, if not each of their servers."""
        return self.error is None or bool(self.replicas)

    def to_dict(self) -> dict[str, object]:
        """Return one of the `deployments` of `status --json`."""
        document: dict[str, object] = to_json(self)
        return document | {"error": None if self.error is None else self.error.to_dict()}
