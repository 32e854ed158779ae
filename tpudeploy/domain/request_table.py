"""Request table: the status of one replica's requests in each place. It is for display only; never decide on it."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.accelerator import DEFAULT_BACKEND
from tpudeploy.domain.status import BootStage


class PlaceState(StrEnum):
    """The status in one place, the furthest first. `free`: a request is allowed there, and none exists now."""

    UP = "up"
    PROVISIONING = "provisioning"
    QUEUED = "queued"
    ASKED = "asked"
    LEAVING = "leaving"
    REFUSED = "refused"
    FREE = "free"


@dataclass(frozen=True, slots=True, kw_only=True)
class PlaceStatus:
    """One zone and provisioning model at one API. `why` is the last text of Google or of the machine there.

    `name` is that of the request, if there is one; `kind` is that of a refusal (adapters/google/verdicts.py). `since`
    is when the state began, `until` is when it ends by itself: a request lapses, a limited run ends, or another request
    is allowed. Both are in seconds since the epoch, or None.

    `usd_per_hour` is the list price of the slice there, or None if it is unknown; it may be billed from `billed_since`,
    its grant, until it is gone. `stage` is the progress of its boot at the observation, and `serving` the result of a
    probe.
    """

    zone: str
    provisioning: str
    state: PlaceState
    name: str = ""
    why: str = ""
    kind: str = ""
    since: float | None = None
    until: float | None = None
    backend: str = DEFAULT_BACKEND
    usd_per_hour: float | None = None
    billed_since: float | None = None
    stage: BootStage | None = None
    serving: bool | None = None
