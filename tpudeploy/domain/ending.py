"""The end that a profile gives a deployment, and that it has come."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum

from tpudeploy.domain.stored import StoredValue


class EndCause(StrEnum):
    """The key of the profile by which a deployment ends."""

    END = "lifecycle.end"
    IDLE = "lifecycle.idle"
    HOURS = "lifecycle.hours"


@dataclass(frozen=True, slots=True, kw_only=True)
class End:
    """When a deployment ends: `after_seconds` after it first serves, or at the time `at`, in seconds since the epoch.

    One of the two is None. `text` is as the profile writes it.
    """

    text: str
    after_seconds: float | None = None
    at: float | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class IdleLimit:
    """The time without a request after which a deployment ends. `text` is as the profile writes it."""

    text: str
    seconds: float


@dataclass(frozen=True, slots=True, kw_only=True)
class PastEnd(StoredValue):
    """That the end of a deployment has come: since when (`at`, in seconds since the epoch), and by which key.

    `why` is for people. `profile` is a fingerprint of what its file says: a changed profile starts again. `until` is
    when it starts again by itself, in seconds since the epoch, None for an end that stays.
    """

    at: float
    cause: EndCause
    why: str
    profile: str
    until: float | None = None
