"""The arithmetic of a benchmark: figures from samples, bounds that no chip passes, prompts that are their own."""

from __future__ import annotations

import json
from dataclasses import replace

import pytest

from tpudeploy import catalog
from tpudeploy.catalog import families
from tpudeploy.features.benchmark.cells import feasible, grid
from tpudeploy.features.benchmark.compare import compare
from tpudeploy.features.benchmark.measure import figures, of_client
from tpudeploy.features.benchmark.offer import Observation, Point, RequestRecord
from tpudeploy.features.benchmark.prompts import ids_within, prompts
from tpudeploy.features.benchmark.published import published
from tpudeploy.features.benchmark.roofline import Roofline
from tpudeploy.features.benchmark.run import Figures, Slo
from tpudeploy.operations.argument_types import counts
from tpudeploy.sizing.serve import ServingAnswer


def answer(sent_at: float, first: float, *later: float, turn: int = 1, tokens: int | None = None) -> RequestRecord:
    arrivals = (first, *later)
    return RequestRecord(
        turn=turn,
        sent_at=sent_at,
        ended_at=arrivals[-1],
        arrivals=arrivals,
        prompt_tokens=100,
        output_tokens=len(arrivals) if tokens is None else tokens,
    )


def observed(*answers: RequestRecord, window: tuple[float, float]) -> Observation:
    return Observation(answers=answers, window=window, lags=(0.001,), cpu_share=0.1, seconds=window[1])


def test_a_rate_is_right_though_requests_are_as_long_as_a_third_of_the_window() -> None:
    """64 streams of 6.8 s requests, in step: 9.41 a second, of which a 20 s window sees the ends of 6.4 a second."""
    waves = [answer(6.8 * n, 6.8 * n + 0.8, 6.8 * (n + 1), turn=n) for n in range(6) for _ in range(64)]
    measured = figures(observed(*waves, window=(6.8, 26.8)), Slo())
    assert measured.requests_per_second == pytest.approx(64 / 6.8)
    assert of_client(observed(*waves, window=(6.8, 26.8))).streams_mean == pytest.approx(64)


def test_latencies_are_those_of_every_request_but_the_warm_up() -> None:
    measured = figures(
        observed(answer(0, 90, turn=0), answer(90, 91, 93, 97), answer(91, 93, 94, 95), window=(90, 100)), Slo()
    )
    assert measured.requests == 2
    assert measured.ttft_seconds is not None
    assert (measured.ttft_seconds.count, measured.ttft_seconds.mean, measured.ttft_seconds.most) == (2, 1.5, 2)
    assert measured.itl_seconds is not None
    assert (measured.itl_seconds.count, measured.itl_seconds.mean) == (4, 2)
    assert measured.e2e_seconds is not None
    assert measured.e2e_seconds.p50 == pytest.approx(5.5)


def test_pieces_of_several_tokens_are_told_apart_from_tokens() -> None:
    """Three pieces of four tokens each, as an engine that speculates sends them."""
    measured = figures(observed(answer(0, 1, 2, 3, tokens=12), window=(0, 4)), Slo())
    assert measured.itl_seconds is not None
    assert measured.itl_seconds.mean == 1
    assert measured.tpot_seconds is not None
    assert measured.tpot_seconds.mean == pytest.approx(2 / 11)
    assert measured.output_tokens_per_second == pytest.approx(12 / 4)


def test_goodput_is_of_requests_that_keep_every_part_of_the_objective() -> None:
    observation = observed(answer(0, 1, 2), answer(0, 3, 4), answer(0, 1, 4), answer(0, 1), window=(0, 4))
    rate = figures(observation, Slo()).requests_per_second
    assert rate is not None
    for slo, share in (
        (Slo(ttft_seconds=2), 3 / 4),
        (Slo(tpot_seconds=2), 3 / 4),
        (Slo(ttft_seconds=2, tpot_seconds=2), 2 / 4),
    ):
        assert figures(observation, slo).goodput_requests_per_second == pytest.approx(rate * share)


def _line(model: str, kind: str) -> Roofline:
    family, accelerator = families.find_model(model), catalog.accelerator_type(kind)
    assert family is not None
    assert accelerator is not None
    return Roofline(model=family, accelerator=accelerator, devices=accelerator.devices)


def test_the_published_475552_tokens_a_second_would_be_most_of_four_chips_before_attention() -> None:
    """W1's prefill of 26B-A4B on v6e-4: 16,384-token prompts at 1,024 users."""
    published = Figures(
        requests=1, requests_failed=0, input_tokens_per_second=475_552, output_tokens_per_second=475_552 / 16_384
    )
    share = _line("google/gemma-4-26B-A4B-it", "v6e-4").peak_share(published)
    assert share == pytest.approx(0.80, abs=0.01)


def test_a_measured_grid_of_e2b_on_one_chip_is_far_from_its_peak() -> None:
    """8,192 tokens at 4.80 requests/s (2 users), read from a real grid."""
    read = Figures(requests=1, requests_failed=0, input_tokens_per_second=4.80 * 8_192, output_tokens_per_second=4.80)
    share = _line("google/gemma-4-E2B-it", "v6e-1").peak_share(read)
    assert share is not None
    assert 0.1 < share < 0.2


@pytest.mark.parametrize(
    ("engine", "streams", "context", "service"),
    [
        ({}, 4, 10**9, None),
        ({"max_model_len": "100"}, 4, 91, ServingAnswer.REFUSED),
        ({"max_model_len": "100"}, 4, 90, None),
        ({"kv_cache_tokens": "256", "block_size": "64"}, 4, 54, ServingAnswer.FITS),
        ({"kv_cache_tokens": "256", "block_size": "64"}, 5, 54, ServingAnswer.QUEUES),
        ({"kv_cache_tokens": "256", "block_size": "64"}, 3, 55, ServingAnswer.QUEUES),
    ],
)
def test_an_engine_of_which_no_profile_is_known_is_taken_at_its_word(
    engine: dict[str, str], streams: int, context: int, service: ServingAnswer | None
) -> None:
    feasibility = feasible(Point(concurrency=streams, context_tokens=context, output_tokens=10), None, engine)
    assert (None if feasibility is None else feasibility.service) == service


@pytest.mark.parametrize("context", [1, 4, 8, 9, 300])
def test_prompts_have_their_length_and_none_is_another_ones_beginning(context: int) -> None:
    drawn = prompts(context, seed=7)
    texts = [f"[{drawn.own(number)}{drawn.rest}]" for number in range(1, 200)]
    tokens = [json.loads(text) for text in texts]
    assert {len(each) for each in tokens} == {context}
    assert len({tuple(each[:16]) for each in tokens}) == len(tokens)
    assert len(set(map(len, texts))) == 1
    assert prompts(context, seed=8).own(1) != drawn.own(1) or context < 8


@pytest.mark.parametrize(
    ("vocabulary", "first", "last"),
    [
        (None, 10_000, 29_999),
        (262_144, 10_000, 29_999),
        (30_000, 10_000, 29_999),
        (29_999, 10_000, 29_998),
        (12_000, 1_000, 9_999),
        (384, 100, 383),
        (120, 10, 99),
        (10, 0, 9),
    ],
)
def test_prompts_have_the_ids_of_one_length_that_a_vocabulary_has_most_of(
    vocabulary: int | None, first: int, last: int
) -> None:
    ids = ids_within(vocabulary)
    assert (ids.first, ids.last) == (first, last)
    texts = prompts(300, seed=7, vocabulary=vocabulary)
    tokens = json.loads(f"[{texts.own(1)}{texts.rest}]")
    assert all(first <= token <= last for token in tokens)
    assert len({len(f"{texts.own(number)}{texts.rest}") for number in range(50)}) == 1


def test_numbers_double_within_a_span_and_come_in_order_once() -> None:
    assert counts("8,1..8, 3") == (1, 2, 3, 4, 8)
    assert counts("3..20") == (3, 6, 12)
    points = grid((1, 2), (8, 16), (4,))
    assert [(p.context_tokens, p.concurrency) for p in points] == [(8, 1), (8, 2), (16, 1), (16, 2)]


def test_sizes_of_one_generation_are_compared_whatever_their_names_look_like() -> None:
    one, four = (published()[f"agent-e2b-v6e-{size}"] for size in (1, 4))
    smaller = replace(one, subject=replace(one.subject, accelerator_type="ct5p-hightpu-1t-tpu"))
    larger = replace(four, subject=replace(four.subject, accelerator_type="v5p-8"))
    assert [scaling.chips for scaling in compare([smaller, larger]).scalings] == [4]
    assert not compare([one, larger]).scalings


def test_a_device_of_two_on_a_chip_has_half_of_its_peaks() -> None:
    family, chip = families.find_model("google/gemma-4-E2B-it"), catalog.accelerator_type("tpu7x-4")
    assert family is not None
    assert chip is not None
    whole = Roofline(model=family, accelerator=chip, devices=chip.devices)
    device = Roofline(model=family, accelerator=chip, devices=1)
    rates = Figures(requests=1, requests_failed=0, input_tokens_per_second=1000.0, output_tokens_per_second=100.0)
    assert device.peak_share(rates) == pytest.approx(8 * (whole.peak_share(rates) or 0.0))
