"""What compiled programs need is known before a boot dies of it."""

from __future__ import annotations

import pytest
from sizing.vectors import ngram, sized

from tpudeploy.sizing.programs import program_room, structured_decode_bytes

MIB = 1024**2


def test_the_boot_that_died_at_95_percent_is_short_of_memory_and_the_one_at_92_is_not() -> None:
    assert sized("E2B", "v5litepod-1", utilization=0.95).free_bytes_per_chip < 0
    assert sized("E2B", "v5litepod-1", utilization=0.92).free_bytes_per_chip > 0


def test_the_utilization_that_is_known_to_boot_is_named() -> None:
    budget = sized("E2B", "v5litepod-1", utilization=0.95)
    room = program_room(budget.model, budget.engine)
    assert room.utilization(budget.hbm_bytes_per_chip) == 0.92


def test_structured_decoding_takes_what_the_failed_boot_asked_for() -> None:
    engine = sized("E2B", "v6e-1").engine
    assert structured_decode_bytes(engine, 262_144) / MIB == 384.0


def test_fewer_requests_leave_room_for_more_cache() -> None:
    many, few = sized("E2B", "v6e-1", max_num_seqs=256), sized("E2B", "v6e-1", max_num_seqs=64)
    assert many.program_bytes_per_chip - few.program_bytes_per_chip == (256 - 64) * 262_144 * 6


def test_98_percent_of_v6e_is_too_much_for_e2b() -> None:
    assert sized("E2B", "v6e-1", utilization=0.98).free_bytes_per_chip < 0
    assert sized("E2B", "v6e-1", utilization=0.94, max_num_seqs=64, max_model_len=4_096).free_bytes_per_chip > 0


def test_speculation_takes_gigabytes_and_says_that_nobody_measured_it() -> None:
    plain, proposing = sized("26B-A4B", "v6e-4"), sized("26B-A4B", "v6e-4", speculation=ngram(3), is_async=False)
    assert proposing.program_bytes_per_chip - plain.program_bytes_per_chip == (2_560 - 384) * MIB
    assert any("speculation" in estimate for estimate in proposing.estimates)


@pytest.mark.parametrize("name", ["E2B", "12B", "26B-A4B"])
def test_weights_cache_programs_and_the_free_rest_are_all_of_a_chip(name: str) -> None:
    budget = sized(name, "v6e-4")
    parts = (budget.weights_bytes_per_chip, budget.kv_bytes_per_chip, budget.program_bytes_per_chip)
    assert sum(parts) + budget.free_bytes_per_chip == budget.hbm_bytes_per_chip
