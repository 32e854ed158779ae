"""Outlook: how one replica stands with each place that it asked or may ask. To be shown; nothing is decided by it."""

from __future__ import annotations

from enum import StrEnum

from tpudeploy.domain.frozen import frozen


class PlaceState(StrEnum):
    """The furthest first. `free`: it may be asked there, and is not for now."""

    UP = "up"
    PROVISIONING = "provisioning"
    QUEUED = "queued"
    ASKED = "asked"
    LEAVING = "leaving"
    REFUSED = "refused"
    FREE = "free"


@frozen
class Place:
    """One pair of zone and provisioning model. `why` is what Google, or the machine, last said there.

    `name` is the request's, where there is one; `kind` that of a refusal (adapters/google/verdicts.py). `since` is when
    the state began, `until` when it ends by itself: a request lapses, a limited run is over, or it may be asked there
    (again) once there is room for it. Seconds since the epoch, None where that is unknown or there is no such end.
    """

    zone: str
    provisioning: str
    state: PlaceState
    name: str = ""
    why: str = ""
    kind: str = ""
    since: float | None = None
    until: float | None = None
