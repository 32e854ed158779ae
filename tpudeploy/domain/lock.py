"""Who holds the state, for what, since when."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class LockInfo:
    """Written into the lock itself, so that whoever finds it can say who holds it. Times are seconds since the epoch.

    `run_url` is the pipeline's page of the run, where there is one. `heartbeat` is when the holder was last heard of.
    """

    id: str
    operation: str
    who: str
    pid: int
    created: float
    version: str
    run_url: str = ""
    host: str = ""
    heartbeat: float = 0.0


@frozen
class Lease:
    """Proof of holding. `token` is the backend's own handle; `expired` is whose lock this one was taken over from."""

    info: LockInfo
    token: str
    expired: LockInfo | None = None
