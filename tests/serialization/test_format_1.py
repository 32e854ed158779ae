"""States of format 1 are read and migrated: every combination of flags that a run ever wrote into one.

`data/format_1_attempts.jsonl` was written on 2026-11-22 by the last tree with format 1, in its own stories on its own
emulator: a state a line, and the name of the attempt in it that is like none before. It is never written again.
"""

from __future__ import annotations

import json
from collections import Counter
from dataclasses import fields
from pathlib import Path
from typing import Any

import pytest

from tpudeploy.domain.errors import StateUnreadable
from tpudeploy.domain.life import STATES, Detached
from tpudeploy.serialization import statefile
from tpudeploy.serialization.flat_attempt import FlatAttempt, flat

LINES = (Path(__file__).parent / "data" / "format_1_attempts.jsonl").read_text(encoding="utf-8").splitlines()
ROWS: list[dict[str, Any]] = [json.loads(line) for line in LINES]


def row(attempt: FlatAttempt) -> dict[str, Any]:
    plain: dict[str, Any] = json.loads(json.dumps({each.name: getattr(attempt, each.name) for each in fields(attempt)}))
    return plain


def changed(attempt: dict[str, Any], **changes: Any) -> dict[str, Any]:
    """A state of format 1 whose attempt was changed by hand."""
    state: dict[str, Any] = json.loads(LINES[0])["state"]
    state["records"][0]["attempts"] = [{**attempt, **changes}]
    return state


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_no_fact_of_an_attempt_is_lost(number: int) -> None:
    document = ROWS[number]["state"]
    state = statefile.loads(json.dumps(document), source="old.json")
    for record, record_written in zip(state.records, document["records"], strict=True):
        for attempt, attempt_written in zip(record.attempts, record_written["attempts"], strict=True):
            if not attempt_written["change"]:
                attempt_written["told_at"] = 0.0  # the time of a change that was withdrawn was never read
            assert row(flat(attempt)) == attempt_written


@pytest.mark.parametrize("number", range(len(ROWS)))
def test_it_is_written_in_format_2_and_read_again(number: int) -> None:
    state = statefile.loads(json.dumps(ROWS[number]["state"]), source="old.json")
    text = statefile.dumps(state)
    assert json.loads(text)["format"] == "tpudeploy.state/2"
    assert statefile.loads(text, source="new.json") == state


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
    ("flags", "expected"),
    [
        ({"served": True}, {"state": "serving", "granted_at": 5.0}),
        ({"served": True, "provisioning_at": 7.0}, {"state": "serving", "granted_at": 7.0}),
        ({"is_lost": True}, {"state": "lost"}),
        ({"draining_at": 9.0}, {"state": "detached", "draining_at": 9.0, "granted_at": 5.0}),
        ({"draining_at": 9.0, "served": True}, {"state": "draining", "draining_at": 9.0, "granted_at": 5.0}),
        ({"is_spare": True, "release_reason": "x"}, {"state": "requested"}),
        ({"is_reclaimed": True, "deletion": "d"}, {"state": "reclaimed", "deletion": "d"}),
        ({"is_reclaimed": True, "deletion": "d", "releasing_at": 9.0}, {"state": "releasing", "deletion": "d"}),
    ],
)
def test_flags_that_a_person_put_together_are_read_as_the_state_that_is_nearest(
    flags: dict[str, Any], expected: dict[str, Any]
) -> None:
    bare = {
        "name": "n",
        "project": "p",
        "zone": "us-east5-a",
        "provisioning": "spot",
        "spec": {},
        "asked_at": 5.0,
        "booted": "",
    }
    state = statefile.loads(json.dumps(changed(bare, **flags)), source="old.json")
    life = json.loads(statefile.dumps(state))["records"][0]["attempts"][0]["life"]
    assert expected.items() <= life.items()


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
