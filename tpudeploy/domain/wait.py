"""Wait: the point at which an apply returns."""

from __future__ import annotations

from enum import StrEnum


class Wait(StrEnum):
    """Each value includes those above it. Work in progress continues in the cloud, and a later apply resumes it."""

    ACCEPTED = "accepted"
    GRANTED = "granted"
    SERVING = "serving"
