"""Lines that an earlier version appended are read as they are. `data` holds those of 2026-11-29, from the emulator."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from tpudeploy.serialization.boot_records import format_record, parse_records
from tpudeploy.serialization.capacity_history import format_entry, parse_entries

DATA = Path(__file__).parent / "data"


def test_boots_are_read_and_written_again_without_a_change() -> None:
    text = (DATA / "boots.jsonl").read_text(encoding="utf-8")
    assert list(map(json.loads, map(format_record, parse_records(text)))) == list(map(json.loads, text.splitlines()))


def test_the_capacity_history_is_read_and_written_again_without_a_change() -> None:
    text = (DATA / "zones.jsonl").read_text(encoding="utf-8")
    assert "".join(map(format_entry, parse_entries(text))) == text
    assert parse_entries(text.replace("{", '{"rating":{"stars":4},')) == parse_entries(text), (
        "a newer version adds keys"
    )


@pytest.mark.parametrize("damage", ["", "{", "null", "[]", '{"at": 1e999}', '{"at": NaN}'])
def test_a_boot_that_cannot_be_read_is_left_out(damage: str) -> None:
    text = (DATA / "boots.jsonl").read_text(encoding="utf-8")
    assert parse_records(f"{damage}\n{text}") == parse_records(text)
