"""What compiled programs need is known before a boot dies of it."""

from __future__ import annotations

import pytest
from sizing.vectors import ngram, sized

from tpudeploy.sizing.programs import backbone_bytes, program_room, structured_decode_bytes

MIB = 1024**2


def test_the_boot_that_died_at_95_percent_is_short_of_memory_and_the_one_at_92_is_not() -> None:
    for release in ("0.26.1", "0.31.0", "0.32.0"):
        assert sized("E2B", "v5litepod-1", utilization=0.95, release=release).free_bytes_per_chip < 0
        assert sized("E2B", "v5litepod-1", utilization=0.92, release=release).free_bytes_per_chip > 0


def test_the_utilization_that_is_known_to_boot_is_named() -> None:
    budget = sized("E2B", "v5litepod-1", utilization=0.95)
    room = program_room(budget.model, budget.engine)
    assert room.utilization(budget.hbm_bytes_per_chip) == 0.92


def test_structured_decoding_takes_what_the_failed_boot_asked_for() -> None:
    """`Attempting to reserve 384.11M`, in the log of a boot with libtpu 0.0.44."""
    engine = sized("E2B", "v6e-1", release="0.31.0").engine
    assert structured_decode_bytes(engine, 262_144) / MIB == pytest.approx(384.11, rel=0.001)


@pytest.mark.parametrize("release", ["0.31.0", "0.32.0"])
def test_structured_decoding_of_qwens_vocabulary_is_large_with_every_libtpu(release: str) -> None:
    """256 x 151,936 x 6 B: the smaller logits of libtpu 0.0.47.1 are those of other vocabularies."""
    engine = sized("E2B", "v6e-1", release=release).engine
    assert structured_decode_bytes(engine, 151_936) / MIB == pytest.approx(222.8, rel=0.001)


def test_fewer_requests_may_take_as_much() -> None:
    many, few = (sized("E2B", "v6e-1", release="0.32.0", max_num_seqs=seqs).engine for seqs in (256, 32))
    assert structured_decode_bytes(few, 262_144) >= structured_decode_bytes(many, 262_144)


def test_a_vocabulary_that_was_not_compiled_takes_the_most_of_any() -> None:
    engine = sized("E2B", "v6e-1", release="0.31.0").engine
    known, unknown = (structured_decode_bytes(engine, words) / words for words in (262_144, 200_000))
    assert unknown >= known


def test_beyond_the_largest_bucket_the_bytes_grow_in_proportion() -> None:
    most, more = (sized("E2B", "v6e-1", release="0.31.0", max_num_seqs=seqs).engine for seqs in (1_024, 4_096))
    assert structured_decode_bytes(more, 262_144) == 4 * structured_decode_bytes(most, 262_144)


def test_with_the_libtpu_of_0_32_the_backbone_is_the_largest_program() -> None:
    """The compiler's own figures for Gemma 4 E2B: libtpu 0.0.48, v6e and, with 2,048 tokens, v5e."""
    budget = sized("E2B", "v6e-1", release="0.32.0")
    assert structured_decode_bytes(budget.engine, 262_144) == pytest.approx(134_479_168, rel=0.01)
    assert backbone_bytes(budget.model, budget.engine) == pytest.approx(385_497_600, rel=0.01)
    small = sized("E2B", "v5litepod-1", release="0.32.0", max_num_batched_tokens=2_048)
    assert backbone_bytes(small.model, small.engine) == pytest.approx(222_781_440, rel=0.15)
    assert any("libtpu 0.0.48" in text and "no boot" in text for text in budget.estimates)


@pytest.mark.parametrize("release", ["0.29.0", "0.30.0", "0.31.0"])
def test_with_an_earlier_libtpu_structured_decoding_is(release: str) -> None:
    budget = sized("E2B", "v6e-1", release=release)
    assert backbone_bytes(budget.model, budget.engine) == 0
    assert not any("libtpu" in text for text in budget.estimates)


def test_fewer_requests_leave_room_for_more_cache() -> None:
    old = {"release": "0.31.0"}
    many, few = sized("E2B", "v6e-1", max_num_seqs=256, **old), sized("E2B", "v6e-1", max_num_seqs=64, **old)
    # The compiler's own figures: libtpu 0.0.44, v6e.
    assert many.program_bytes_per_chip - few.program_bytes_per_chip == 402_881_888 - 201_555_296


def test_98_percent_of_v6e_is_too_much_for_e2b() -> None:
    assert sized("E2B", "v6e-1", utilization=0.98).free_bytes_per_chip < 0
    assert sized("E2B", "v6e-1", utilization=0.94, max_num_seqs=64, max_model_len=4_096).free_bytes_per_chip > 0


def test_speculation_takes_gigabytes_and_says_that_nobody_measured_it() -> None:
    plain = sized("26B-A4B", "v6e-4", release="0.31.0")
    proposing = sized("26B-A4B", "v6e-4", release="0.31.0", speculation=ngram(3), is_async=False)
    assert proposing.program_bytes_per_chip - plain.program_bytes_per_chip == 2_560 * MIB - 402_881_888
    assert any("speculation" in estimate for estimate in proposing.estimates)


@pytest.mark.parametrize("name", ["E2B", "12B", "26B-A4B"])
def test_weights_cache_programs_and_the_free_rest_are_all_of_a_chip(name: str) -> None:
    budget = sized(name, "v6e-4")
    parts = (budget.weights_bytes_per_chip, budget.kv_bytes_per_chip, budget.program_bytes_per_chip)
    assert sum(parts) + budget.free_bytes_per_chip == budget.hbm_bytes_per_chip
