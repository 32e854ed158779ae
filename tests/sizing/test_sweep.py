"""A sweep keeps what nothing beats, and says why the rest fails."""

from __future__ import annotations

from itertools import pairwise

from sizing.vectors import sized

from tpudeploy.sizing.sweep import Option, sweep


def test_no_option_beats_another() -> None:
    best = sweep(sized("E4B", "v6e-4"), usd_per_chip_hour=1.35).best
    assert len(best) > 3
    for one in best:
        assert not [other for other in best if other is not one and _beats(other, one)]


def test_e2b_is_best_served_in_copies() -> None:
    best = sweep(sized("E2B", "v6e-4"), usd_per_chip_hour=1.35).best
    assert {option.budget.engine.tensor_parallel for option in best} == {1}
    assert {option.budget.engine.kv_dtype for option in best} == {"auto"}


def test_prices_follow_the_chips() -> None:
    for option in sweep(sized("E2B", "v6e-4"), usd_per_chip_hour=2.0).best:
        assert option.usd_per_hour == 2.0 * option.budget.accelerator.chips
    assert all(option.usd_per_hour is None for option in sweep(sized("E2B", "v6e-4"), usd_per_chip_hour=None).best)


def test_what_fails_says_why() -> None:
    failures = sweep(sized("31B", "v6e-8"), usd_per_chip_hour=None).failures
    reasons = {(f.accelerator_type, f.because) for f in failures}
    assert ("v6e-1", "the weights do not fit") in reasons
    assert ("v6e-4", "one request does not fit") in reasons


def test_a_utilization_that_leaves_no_room_for_programs_is_not_recommended() -> None:
    rows = sweep(sized("E2B", "v5litepod-1"), usd_per_chip_hour=None)
    assert all(option.budget.engine.utilization < 0.95 for option in rows.best)
    assert any("programs" in failure.because for failure in rows.failures)


def test_every_setting_is_either_counted_or_told() -> None:
    rows = sweep(sized("E2B", "v6e-1"), usd_per_chip_hour=None)
    assert rows.tried == (1 + 3 + 4) * 2 * 4 * 5


def test_the_best_come_with_the_most_tokens_first() -> None:
    tokens = [option.budget.kv_cache_tokens for option in sweep(sized("E4B", "v6e-4"), usd_per_chip_hour=None).best]
    assert all(more >= less for more, less in pairwise(tokens))


def _beats(one: Option, other: Option) -> bool:
    a, b = one.to_dict(), other.to_dict()
    more = [float(str(a[key])) >= float(str(b[key])) for key in ("kv_cache_tokens", "max_model_len")]
    less = [float(str(a[key])) <= float(str(b[key])) for key in ("usd_per_hour", "cold_start_seconds")]
    return all((*more, *less))
