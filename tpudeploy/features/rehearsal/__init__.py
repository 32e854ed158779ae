"""The unverified facts about Google Cloud that tpudeploy relies on, and what a rehearsal saw of each."""

from __future__ import annotations

from dataclasses import dataclass
from enum import StrEnum


class FactVerdict(StrEnum):
    AS_BELIEVED = "as-believed"
    DIFFERS = "differs"
    NOT_SEEN = "not-seen"


@dataclass(frozen=True, slots=True, kw_only=True)
class FactFinding:
    """What was seen of the fact with this id. `observation` is a sentence, for a fact that was not seen the reason."""

    fact: str
    verdict: FactVerdict
    observation: str


def compare(fact: str, *, is_as_believed: bool, observation: str) -> FactFinding:
    return FactFinding(
        fact=fact, verdict=FactVerdict.AS_BELIEVED if is_as_believed else FactVerdict.DIFFERS, observation=observation
    )


def not_seen(fact: str, because: str) -> FactFinding:
    return FactFinding(fact=fact, verdict=FactVerdict.NOT_SEEN, observation=because)
