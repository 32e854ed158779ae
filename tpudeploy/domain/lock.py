"""The holder of a state lock."""

from __future__ import annotations

from dataclasses import dataclass

BUDGETS = "_budgets"  # the lock of what several deployments share; no deployment has such a name


def lock_subject(name: str) -> str:
    """Return what the lock of this name protects, as the subject of a sentence."""
    if name == BUDGETS:
        return "The shared budget (budgets.yaml, or -max-cost of several deployments)"
    return f"The state of {name}"


def lock_name(name: str) -> str:
    """Return whose lock it is, for the end of a sentence."""
    return "the shared budget" if name == BUDGETS else name


@dataclass(frozen=True, slots=True, kw_only=True)
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


@dataclass(frozen=True, slots=True, kw_only=True)
class Lease:
    """A held lock. `token` is the backend's handle; `expired` is the former holder if the lock was taken over."""

    info: LockInfo
    token: str
    expired: LockInfo | None = None
