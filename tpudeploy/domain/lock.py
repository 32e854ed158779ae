"""The holder of a state lock."""

from __future__ import annotations

from tpudeploy.domain.frozen import frozen


@frozen
class LockInfo:
    """The content of a lock, so that another run can name the holder. Times are in seconds since the epoch.

    `run_url` is the pipeline's page of the run, or "". `heartbeat` is when the holder last renewed the lock.
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
    """A held lock. `token` is the backend's handle; `expired` is the former holder if the lock was taken over."""

    info: LockInfo
    token: str
    expired: LockInfo | None = None
