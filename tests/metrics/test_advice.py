"""The advice of `metrics`: what it computes from the figures of a server and the budget of its deployment."""

from __future__ import annotations

import pytest
from sizing.profiles import budget

from tpudeploy.domain.metrics import EngineFigures
from tpudeploy.metrics.advice import Budget, is_full, preemption_advice, waiting_advice

BUDGET = budget()
ENGINE = BUDGET.engine
PLACES = ENGINE.max_num_seqs
# So many tokens on average that the cache holds forty of these requests at once.
MEAN = BUDGET.kv_cache_tokens / 40


@pytest.mark.parametrize(("used", "full"), [(None, False), (0.85, False), (0.851, True)])
def test_a_cache_is_full_above_its_threshold(used: float | None, full: bool) -> None:
    assert is_full(EngineFigures(kv_cache_used=used)) is full


@pytest.mark.parametrize(
    ("figures", "sized", "words"),
    [
        pytest.param(
            EngineFigures(kv_cache_used=0.9), None, "More chips or another replica", id="full, without a profile"
        ),
        pytest.param(EngineFigures(kv_cache_used=0.9), BUDGET, "The KV cache holds", id="full"),
        pytest.param(EngineFigures(kv_cache_used=0.5), None, "There is KV cache left", id="room, without a profile"),
        pytest.param(
            EngineFigures(kv_cache_used=0.5, running=PLACES - 1),
            BUDGET,
            f"Neither all {PLACES} places nor the KV cache are taken",
            id="one place is free",
        ),
        pytest.param(
            EngineFigures(kv_cache_used=0.5, running=PLACES),
            BUDGET,
            f"50% of the KV cache is free: max_num_seqs: {int(PLACES * 0.85 / 0.5)} would use about 85% of it",
            id="all places are taken",
        ),
        pytest.param(
            EngineFigures(kv_cache_used=0.8, running=PLACES),
            BUDGET,
            "the KV cache has no room for more requests",
            id="a gain of less than a tenth is none",
        ),
    ],
)
def test_what_lets_waiting_requests_in(figures: EngineFigures, sized: Budget, words: str) -> None:
    assert words in waiting_advice(figures, sized)


@pytest.mark.parametrize(
    ("figures", "words"),
    [
        pytest.param(EngineFigures(), "Lower max_num_seqs", id="no request has ended"),
        pytest.param(
            EngineFigures(prompt_tokens=9 * MEAN, generation_tokens=MEAN, finished={"stop": 6.0, "length": 4.0}),
            f"took {MEAN:,.0f} tokens on average, and the KV cache holds 40 of these at once: max_num_seqs: 34 leaves",
            id="as many as fit into the cache below its threshold",
        ),
        pytest.param(
            EngineFigures(prompt_tokens=1.0, finished={"stop": 1.0}),
            "The KV cache holds",
            id="more fit than are let in",
        ),
    ],
)
def test_where_requests_are_preempted_as_many_are_let_in_as_fit(figures: EngineFigures, words: str) -> None:
    assert preemption_advice(figures, BUDGET).startswith(words) or words in preemption_advice(figures, BUDGET)
