"""The capacity history as text: what is written can be read, and what cannot be read is left out."""

from __future__ import annotations

import json
from dataclasses import asdict, replace
from itertools import cycle, islice

import pytest
from reconcile.cases import INSTANCES, NOW, TPU_API, A, entry

from tpudeploy.domain.history import Ending
from tpudeploy.serialization.capacity_history import format_entry, parse_entries

ENTRY = entry(Ending.REFUSED, minutes_ago=5, kind="stockout", text="Two\nlines, and a \u2028.")
FIELDS = asdict(ENTRY)


def line(**fields: object) -> str:
    return json.dumps({**FIELDS, **fields}) + "\n"


def test_an_entry_is_one_line() -> None:
    text = format_entry(ENTRY)
    assert (text.count("\n"), text[-1], text.isascii(), ": " in text) == (1, "\n", True, False)
    assert parse_entries(text) == (ENTRY,)


def test_entries_are_in_the_order_of_time() -> None:
    late, early = entry(Ending.GRANTED, minutes_ago=1), entry(Ending.GRANTED, minutes_ago=9)
    assert parse_entries(format_entry(late) + "\n" + format_entry(early)) == (early, late)


def test_an_entry_has_its_api() -> None:
    instance = entry(Ending.GRANTED, minutes_ago=1, backend=INSTANCES)
    assert parse_entries(format_entry(instance)) == (instance,)


ROOM = 2000 - len(format_entry(replace(ENTRY, text="")))


@pytest.mark.parametrize(
    ("length", "kept"),
    [
        pytest.param(ROOM, ROOM, id="as long as a line may be"),
        pytest.param(ROOM + 1, 400, id="longer by one character"),
        pytest.param(100_000, 400, id="much longer"),
    ],
)
def test_the_text_of_a_long_line_is_cut_off(length: int, kept: int) -> None:
    text = "".join(islice(cycle("abcdefg"), length))
    assert parse_entries(format_entry(replace(ENTRY, text=text))) == (replace(ENTRY, text=text[:kept]),)


def test_what_an_earlier_version_did_not_write_is_empty_or_what_there_was_then() -> None:
    old = {name: value for name, value in FIELDS.items() if name not in {"kind", "text", "backend"}}
    (parsed,) = parse_entries(json.dumps(old))
    assert (parsed.kind, parsed.text, parsed.at, parsed.zone) == ("", "", NOW - 300, A)
    assert parsed.backend is TPU_API


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("", id="an empty line"),
        pytest.param("  ", id="spaces"),
        pytest.param(line()[:40], id="a line of a writer that was killed"),
        pytest.param("[]", id="a list"),
        pytest.param("7", id="a number"),
        pytest.param(line(zone="nowhere"), id="a zone that is none"),
        pytest.param(line(zone=7), id="a zone that is no text"),
        pytest.param(line(outcome="eaten"), id="an outcome of a newer version"),
        pytest.param(line(provisioning="barter"), id="a model of a newer version"),
        pytest.param(line(at="soon"), id="a time that is no number"),
        pytest.param(line(at=float("inf")), id="an infinite time"),
        pytest.param(line(waited=float("nan")), id="a wait that is no number"),
        pytest.param(line(at=10**400), id="a time that is too large"),
        pytest.param(line(chips=None), id="no chips"),
        pytest.param("{}", id="no fields"),
        pytest.param("[" * 100_000, id="a text that is nested without end"),
    ],
)
def test_a_line_that_cannot_be_read_is_left_out(text: str) -> None:
    assert parse_entries(f"{text}\n{format_entry(ENTRY)}") == (ENTRY,)


def test_the_types_of_the_fields() -> None:
    (parsed,) = parse_entries(line(at=1, waited=2, chips="8", type=6, kind=7, text=8))
    assert (parsed.at, parsed.waited, parsed.chips, parsed.type, parsed.kind, parsed.text) == (
        1.0,
        2.0,
        8,
        "6",
        "7",
        "8",
    )
