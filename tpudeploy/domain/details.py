"""What one engine runs with, planned beside measured: what `status --details` shows."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.tree import tree


@frozen
class Fact:
    """One setting: as the profile means it, and as the engine tells it; "" where nobody says."""

    name: str
    planned: str
    told: str


@frozen
class Share:
    """One part of a chip's HBM, in bytes; None where nobody says."""

    name: str
    planned: int | None
    measured: int | None


@frozen
class Details:
    """Of one replica. `memory` is of one chip, and every chip holds the same.

    `process_bytes`: resident memory of the API server on the machine. `silent`: who told nothing, and why.
    """

    address: str
    slice_name: str
    facts: tuple[Fact, ...]
    memory: tuple[Share, ...]
    process_bytes: int | None
    silent: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        """One of the `details` that `status --details --json` prints."""
        known: dict[str, object] = tree(self)
        return known
