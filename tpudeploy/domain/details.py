"""The settings and the memory of one engine, planned and measured, as `status --details` shows them."""

from __future__ import annotations

from collections.abc import Mapping

from tpudeploy.domain.frozen import frozen
from tpudeploy.domain.serialization import to_json


@frozen
class Fact:
    """One setting: the value by the profile and the value that the engine reports, or ""."""

    name: str
    planned: str
    told: str


@frozen
class Share:
    """One part of a chip's HBM, in bytes; None where it is unknown."""

    name: str
    planned: int | None
    measured: int | None


@frozen
class Details:
    """The details of one replica. `memory` is that of one chip; all chips hold the same.

    `process_bytes` is the resident memory of the API server on the machine. `silent` says for each source that gave
    nothing why.
    """

    address: str
    slice_name: str
    facts: tuple[Fact, ...]
    memory: tuple[Share, ...]
    process_bytes: int | None
    silent: Mapping[str, str]

    def to_dict(self) -> dict[str, object]:
        """Return one of the `details` of `status --details --json`."""
        document: dict[str, object] = to_json(self)
        return document
