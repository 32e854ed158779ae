"""A fault of the machine under a slice, as a person reports it to Google."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FaultBehavior(StrEnum):
    """What is wrong, by the names of Compute Engine (`behavior` in `instances.reportHostAsFaulty`, v1)."""

    CHIP_ERROR = "chip-error"
    PERFORMANCE = "performance"
    SILENT_DATA_CORRUPTION = "silent-data-corruption"


@dataclass(frozen=True, slots=True, kw_only=True)
class HostFault:
    """`description` is a sentence for Google's technicians. It must hold no secret."""

    behavior: FaultBehavior
    description: str


@dataclass(frozen=True, slots=True, kw_only=True)
class HostReport:
    """What became of a report. Unless it was accepted, the slice was deleted: `refusal` has Google's words.

    `refusal` is "" too where the API has no such call.
    """

    is_accepted: bool
    refusal: str = ""
