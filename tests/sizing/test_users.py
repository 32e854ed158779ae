"""Can it serve so many users at that context? At once, by queueing, or never."""

from __future__ import annotations

from sizing.vectors import ngram, sized

from tpudeploy.sizing.serve import ServingAnswer, can_serve


def test_a_thousand_users_of_16k_queue_on_the_published_deployment() -> None:
    published = sized(
        "26B-A4B", "v6e-4", kv_dtype="fp8", utilization=0.90, speculation=ngram(3), is_async=False, padding_gap=512
    )
    verdict = can_serve(published, users=1_024, context=16_000, output=1)
    assert verdict.service is ServingAnswer.QUEUES
    assert verdict.at_once == 23
    assert "KV cache" in verdict.why


def test_a_prompt_of_full_length_is_refused_because_its_answer_has_no_room() -> None:
    budget = sized("E2B", "v6e-1", max_model_len=32_768)
    verdict = can_serve(budget, users=1, context=32_768, output=1)
    assert verdict.service is ServingAnswer.REFUSED
    assert "32767 prompt tokens" in verdict.why
    assert can_serve(budget, users=1, context=32_767, output=1).service is ServingAnswer.FITS


def test_a_request_for_no_output_is_refused() -> None:
    assert can_serve(sized("E2B", "v6e-1"), users=1, context=8, output=0).service is ServingAnswer.REFUSED


def test_short_requests_are_limited_by_max_num_seqs_alone() -> None:
    budget = sized("E2B", "v6e-1")
    assert can_serve(budget, users=256, context=8, output=100).service is ServingAnswer.FITS
    verdict = can_serve(budget, users=257, context=8, output=100)
    assert verdict.service is ServingAnswer.QUEUES
    assert verdict.at_once == 256
    assert "max_num_seqs" in verdict.why


def test_copies_serve_as_many_times_more_users() -> None:
    one = sized("E2B", "v6e-1")
    four = sized("E2B", "v6e-4", tensor_parallel=1, data_parallel=4)
    at_once = can_serve(one, users=10**6, context=16_000, output=100).at_once
    assert can_serve(four, users=10**6, context=16_000, output=100).at_once == 4 * at_once


def test_what_does_not_fit_serves_nobody() -> None:
    assert can_serve(sized("31B", "v6e-1"), users=1, context=8, output=1).service is ServingAnswer.REFUSED
