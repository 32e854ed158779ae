"""States of format 2 are read: every life that an attempt ever had in one.

`data/format_2_states.jsonl` has a state a line, from the stories of 2026-11-22 on their emulator, and the name of the
attempt in it that is like none before. It is never written again.
"""

from __future__ import annotations

import json
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from tpudeploy.domain.ending import EndCause
from tpudeploy.domain.errors import StateUnreadable
from tpudeploy.domain.life import STATES, Detached
from tpudeploy.serialization import statefile

LINES = (Path(__file__).parent / "data" / "format_2_states.jsonl").read_text(encoding="utf-8").splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_a_state_is_read_and_written_again_without_a_change(number: int) -> None:
    document = ROWS[number]["state"]
    assert json.loads(statefile.dumps(statefile.loads(json.dumps(document), source="old.json"))) == document


def test_a_record_and_an_attempt_are_read_alike_wherever_a_state_has_one() -> None:
    document = next(row["state"] for row in ROWS if any(r["attempts"] for r in row["state"]["records"]))
    record = next(record for record in document["records"] if record["attempts"])
    document = {**document, "router": {**record, "index": -1}, "forgotten": record["attempts"], "records": []}
    assert json.loads(statefile.dumps(statefile.loads(json.dumps(document), source="old.json"))) == document


def _with_slice_twice(state: dict[str, Any]) -> None:
    (record,) = [record for record in state["records"] if record["attempts"]][:1]
    record["attempts"].append(record["attempts"][0])


def _with_replica_twice(state: dict[str, Any]) -> None:
    state["records"].append({**state["records"][0], "attempts": []})


@pytest.mark.parametrize(
    ("change", "because"),
    [
        (_with_slice_twice, r"slice \S+ is there twice"),
        (_with_replica_twice, r"replica \d+ is there twice"),
        (lambda state: state.update(serial=-5), "serial is -5"),
        (lambda state: state.update(next_attempt=-1), "next_attempt is -1"),
    ],
)
def test_a_state_that_no_run_writes_is_refused(change: Callable[[dict[str, Any]], None], because: str) -> None:
    document = next(row["state"] for row in ROWS if any(r["attempts"] for r in row["state"]["records"]))
    document = json.loads(json.dumps(document))
    change(document)
    with pytest.raises(StateUnreadable, match=because):
        statefile.loads(json.dumps(document), source="old.json")


@pytest.mark.parametrize("cause", EndCause)
def test_the_cause_of_an_end_is_read_from_a_state_that_has_it_in_words_alone(cause: EndCause) -> None:
    ended = {"at": 1.0, "why": f"{cause}: 30m; idle for 4 min", "profile": "abc", "until": None}
    state = statefile.loads(json.dumps({**ROWS[0]["state"], "ended": ended}), source="old.json")
    assert state.ended is not None
    assert state.ended.cause is cause
    assert statefile.loads(statefile.dumps(state), source="new.json") == state


def test_every_state_of_a_life_is_among_them_but_one_that_no_story_came_to() -> None:
    lives: Counter[type] = Counter()
    for each in ROWS:
        state = statefile.loads(json.dumps(each["state"]), source="old.json")
        life: Any = next(a for a in state.attempts if a.name == each["attempt"]).life
        while life is not None:
            lives[type(life)] += 1
            life = getattr(life, "before", None)
    assert set(STATES) - set(lives) == {Detached}


@pytest.mark.parametrize(
    "life",
    [
        {"state": "unheard of"},
        {"state": "starting"},
        {"state": "starting", "granted_at": "noon"},
        {"state": "queued", "granted_at": 1.0},
        {"state": "lost", "before": {"state": "queued"}},
        {"state": "reclaimed", "before": {"state": "releasing", "releasing_at": 1.0, "before": {"state": "queued"}}},
        {"granted_at": 1.0},
    ],
)
def test_a_life_that_cannot_be_is_refused(life: dict[str, Any]) -> None:
    state = json.loads(statefile.dumps(statefile.loads(json.dumps(ROWS[0]["state"]), source="old.json")))
    state["records"][0]["attempts"][0]["life"] = life
    with pytest.raises(StateUnreadable, match="cannot be read as a state"):
        statefile.loads(json.dumps(state), source="new.json")
