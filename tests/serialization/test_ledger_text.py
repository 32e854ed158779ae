"""The ledger as text: what is written is read, and what is damaged is counted."""

from __future__ import annotations

import pytest

from tpudeploy.domain.deployment import Provisioning
from tpudeploy.domain.ledger import (
    BackendMove,
    EndEvidence,
    LedgerFact,
    MachineEnd,
    NewRequest,
    PricedRequest,
    Sighting,
    StateRemoval,
    StillRuns,
)
from tpudeploy.domain.names import Zone
from tpudeploy.serialization.ledger import format_line, parse_lines

AT = 1.79e9
REQUEST = PricedRequest(
    deployment="gemma",
    name="gemma-0-0",
    zone=Zone.parse("us-east5-a"),
    provisioning=Provisioning.SPOT,
    chips=8,
    labels={"team": "search"},
    usd_per_hour=1.5,
)
FACTS: tuple[LedgerFact, ...] = (
    NewRequest(request=REQUEST, at=AT, ends_by=AT + 9, most_seconds=7.0),
    Sighting(request=REQUEST, at=AT + 1, began=AT, ends_at=AT + 5),
    StateRemoval(request=REQUEST, at=AT + 2),
    MachineEnd(request=REQUEST, at=AT + 3, ended=AT + 2, evidence=EndEvidence.BOUND, reason="its machine is gone"),
    MachineEnd(request=REQUEST, at=AT + 3, ended=AT + 2, evidence=EndEvidence.RECORDED),
    StillRuns(request=REQUEST, at=AT + 4, began=AT),
    MachineEnd(request=REQUEST, at=AT + 5, began=AT, ended=AT + 5),
    BackendMove(request=REQUEST, at=AT + 6),
)
LINE = format_line(FACTS[1])


def test_what_is_written_is_read() -> None:
    ledger = parse_lines("".join(map(format_line, FACTS)))
    assert (ledger.facts, ledger.unreadable_lines) == (FACTS, 0)


def test_a_machine_that_outlived_its_request_is_read_as_earlier_versions_wrote_it() -> None:
    line = LINE.replace('"labels"', '"reason":"its request is gone, and its machine is not","labels"')
    (fact,) = parse_lines(line).facts
    assert fact == StillRuns(request=REQUEST, at=AT + 1, began=AT)


DAMAGED = {
    "a byte that is no ASCII": LINE.replace("gemma-0-0", "gemma-\ufffd-0"),
    "another key": LINE.replace('"at"', '"xt"'),
    "no JSON": LINE.replace("{", "X"),
    "no object": "17\n",
    "an event of a newer version": LINE.replace("running", "paused"),
    "a negative price": LINE.replace(":1.5,", ":-1000,"),
    "a price without end": LINE.replace(":1.5,", ":1e300,"),
    "not a number": LINE.replace(":1.5,", ":NaN,"),
    "a time of 1970": LINE.replace('"began":1790000000.0', '"began":1'),
    "a time of 1e18": LINE.replace('"at":1790000001.0', '"at":1e18'),
    "negative chips": LINE.replace('"chips":8', '"chips":-8'),
    "cut off in the middle": LINE[:40] + "\n",
}


@pytest.mark.parametrize("damage", DAMAGED)
def test_a_damaged_line_is_counted(damage: str) -> None:
    assert DAMAGED[damage] != LINE
    ledger = parse_lines(LINE + DAMAGED[damage] + LINE)
    assert (len(ledger.facts), ledger.unreadable_lines) == (2, 1)


@pytest.mark.parametrize("length", range(0, len(LINE) - 2, 7))
def test_the_incomplete_line_of_a_killed_writer_is_not(length: int) -> None:
    ledger = parse_lines(LINE + LINE[:length])
    assert (len(ledger.facts), ledger.unreadable_lines) == (1, 0)
