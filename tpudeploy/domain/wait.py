"""Wait: how far an apply goes before it returns."""

from __future__ import annotations

from enum import StrEnum


class Wait(StrEnum):
    """Each includes what stands above it. What has begun goes on in the cloud; a later apply resumes it."""

    ACCEPTED = "accepted"
    GRANTED = "granted"
    SERVING = "serving"
