"""What a model is given to draft from: what matters of a log of any length, and nothing that looks like a credential."""

from __future__ import annotations

from pathlib import Path

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from tpudeploy.boot_log.evidence import evidence
from tpudeploy.boot_log.read import read
from tpudeploy.domain.deployment import Json

FAILED = (Path(__file__).parent / "data" / "boot_failed_qwix_int8_v5e1.log").read_text(encoding="utf-8")
PROFILE: dict[str, Json] = {"tpu.type": "v5e-1", "serving.max_model_len": 4096, "secrets.HF_TOKEN": "my-hub-token"}
TOKEN = "hf_" + "aB3" * 12


def test_it_holds_the_finding_its_line_the_remedy_the_phases_and_the_profile() -> None:
    reading = read(FAILED)
    assert reading.cause is not None
    text = evidence(reading, FAILED, PROFILE, characters=20_000)
    for part in (reading.cause.signature, reading.cause.remedy, "serving.max_model_len = 4096", "\nimports: "):
        assert part in text
    assert f"\n{reading.cause.line.number}: {FAILED.splitlines()[reading.cause.line.number - 1]}\n" in text


def test_no_secret_and_no_name_of_one_is_in_it() -> None:
    log = FAILED.replace("RESOURCE_EXHAUSTED", f"RESOURCE_EXHAUSTED {TOKEN}")
    text = evidence(read(log), log, {**PROFILE, "serving.env.NOTE": TOKEN}, characters=20_000)
    assert "RESOURCE_EXHAUSTED ****" in text
    assert TOKEN not in text
    assert "my-hub-token" not in text


@given(ends=st.integers(min_value=800, max_value=9_000))
@settings(max_examples=60)
def test_wherever_it_is_cut_no_part_of_a_secret_is_left(ends: int) -> None:
    log = "\n".join([FAILED, *(f"{n} {TOKEN}" for n in range(200))])
    text = evidence(read(log), log, PROFILE | {"serving.env.NOTE": TOKEN}, characters=ends)
    assert len(text) <= ends
    assert TOKEN[:8] not in text


@pytest.mark.parametrize("many", [0, 20_000])
def test_of_a_long_log_the_lines_around_the_cause_are_kept(many: int) -> None:
    log = "\n".join([FAILED, *(f"line {n} of no interest" for n in range(many))])
    reading = read(log)
    assert reading.cause is not None
    text = evidence(reading, log, {}, characters=4_000)
    assert f"\n{reading.cause.line.number - 1}: " in text
    assert f"\n{reading.cause.line.number + 1}: " in text
    assert len(text) <= 4_000


def test_where_no_rule_knows_why_the_end_of_the_log_is_shown() -> None:
    log = "\n".join(f"step {n}" for n in range(5000))
    text = evidence(read(log), log, {}, characters=3_000)
    assert "no rule of tpudeploy explains why" in text
    assert "\n5000: step 4999" in text
    assert "\n1: step 0" not in text
