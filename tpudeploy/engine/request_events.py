"""The fields that every event of one request begins with."""

from __future__ import annotations

from typing import TypedDict

from tpudeploy.domain import events
from tpudeploy.domain.accelerator import Backend
from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.names import Zone
from tpudeploy.domain.slices import Refusal
from tpudeploy.domain.state import Attempt, RefusalRecord


class About(TypedDict):
    at: float
    address: str
    name: str
    zone: Zone
    provisioning: Provisioning
    backend: Backend


def about(attempt: Attempt, where: str, *, at: float) -> About:
    """`where` is the replica's address; `at` is in seconds since the epoch."""
    return {
        "at": at,
        "address": where,
        "name": attempt.name,
        "zone": attempt.zone,
        "provisioning": attempt.provisioning,
        "backend": attempt.backend,
    }


def not_granted(
    attempt: Attempt, where: str, refusal: Refusal, refused: RefusalRecord, *, at: float
) -> events.NotGranted:
    """Return the event of a refusal, with how long it holds from now on."""
    return events.NotGranted(
        **about(attempt, where, at=at),
        kind=refusal.kind,
        message=refusal.message,
        landed=refused.landed,
        blocked_seconds=refused.until - at,
    )
