"""What is known of the cost of each request: when it may have begun to be billed, when it ran, and when it was gone."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from enum import StrEnum

from tpudeploy.domain.accelerator import DEFAULT_BACKEND, Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone


class LedgerEvent(StrEnum):
    """What a line of the ledger records of one request.

    requested: it may be granted from now on.  running: Google showed its machine.  gone: it is proven to be gone.
    untracked: a person removed it from the state, and it may run on.  moved: another backend's ledger continues.
    """

    REQUESTED = "requested"
    RUNNING = "running"
    GONE = "gone"
    UNTRACKED = "untracked"
    MOVED = "moved"


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerLine:
    """One fact about a request. Times are in seconds since the epoch; `at` is when it was recorded.

    `began` is the creation of its machine by Google's time, or when it was first seen; `ended` is when its deletion was
    requested, or when it was found to be gone: then `is_bound`, for it may have ended at another time;
    `is_recorded`: by the record that Google keeps of it. `ends_at` is when Google ends its run, None for a run without
    an end.
    A line of a request has what bounds it while it waits: if it is granted, it runs for `most_seconds` at most, until
    `ends_by` at the latest. None is no bound.
    `usd_per_hour` is the price of all its chips, None where it is unknown, and `price_as_of` the date of the price.
    `price_source` is where the price is from. `reason` is why it was deleted; of a line that says that it runs, why it
    still does although a line said before that it was gone.
    """

    at: float
    event: LedgerEvent
    deployment: str
    name: str
    zone: Zone
    provisioning: Provisioning
    replica: int = 0
    project: str = ""
    backend: Backend = DEFAULT_BACKEND
    type: str = ""
    chips: int = 0
    model: str = ""
    labels: Mapping[str, str] = field(default_factory=dict)
    usd_per_hour: float | None = None
    price_as_of: str = ""
    price_source: str = ""
    began: float | None = None
    ended: float | None = None
    ends_at: float | None = None
    ends_by: float | None = None
    most_seconds: float | None = None
    is_bound: bool = False
    is_recorded: bool = False
    reason: str = ""
